"""What applying a channel file would change, before it is applied. Pure.

`differences` compares two definitions of a channel. What servers have to say of the new one comes
from `setl.operate.check`; `creations` picks from it what setl would create.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from setl.channel.file import ChannelFile, Pipeline
from setl.channel.routes.routing import Router
from setl.run.table_loads.choice import entries_to_load
from setl.systems.finding import Finding

_OWN = frozenset({"name", "source", "target", "tables"})
"""Fields of a pipeline that are told of in words of their own."""

_ENDS = frozenset({"host", "port", "hosts", "brokers", "topic", "database", "type"})
"""Fields of an endpoint that say which server it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that applying would change.

    Attributes:
        where: the pipeline, or the channel.
        what: what is different.
        effect: what comes of it, "" for nothing more.
        warns: whether somebody should think about it.
    """

    where: str
    what: str
    effect: str = ""
    warns: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that applying would change.

    Attributes:
        channel: its name.
        new: whether the cluster does not know it yet.
        changes: what would change, pipeline by pipeline.
        restarted: pipelines that end in order and restart by the new file.
        creations: tables and indexes that setl would create.
        findings: what the servers have to say; empty if they were not asked.
        base: revision of the stored file that the new one was compared with.
    """

    channel: str
    new: bool
    changes: Sequence[Change]
    restarted: Sequence[str]
    creations: Sequence[Finding] = ()
    findings: Sequence[Finding] = ()
    base: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing would change."""
        return not self.new and not self.changes and not self.restarted


def plan_of(
    before: ChannelFile | None,
    after: ChannelFile,
    findings: Sequence[Finding] = (),
    *,
    rewritten: bool = True,
    unreadable: str = "",
    base: str = "",
) -> Plan:
    """The plan.

    Args:
        before: the channel as the cluster keeps it, None if it keeps none that can be read.
        after: the channel as it is to be.
        findings: what a check of `after` has found.
        rewritten: whether the definition differs as it is written; nodes compare it so.
        unreadable: why what the cluster keeps cannot be read here, "" if it can or is not there.
        base: revision of what the cluster keeps.
    """
    changes = tuple(differences(before, after))
    if unreadable:
        what = f"what the cluster keeps cannot be compared: {unreadable}"
        changes = (Change(after.channel, what, "all of it is replaced", warns=True),)
    return Plan(
        after.channel,
        before is None and not unreadable,
        changes,
        restarted=_restarted(before, after) if rewritten else (),
        creations=creations(findings),
        findings=findings,
        base=base,
    )


def creations(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What setl would create: findings that are well, with what it will run itself."""
    return tuple(f for f in findings if f.level == "ok" and (f.hint or f.mapping is not None))


def differences(before: ChannelFile | None, after: ChannelFile) -> Iterator[Change]:
    """What is different, pipeline by pipeline, in the order of the new file."""
    if before is None:
        yield Change(after.channel, "the channel is new", "it is stored, and stopped until started")
    else:
        yield from _of_channel(before, after)
    known = {p.name: p for p in before.pipelines} if before else {}
    for pipeline in after.pipelines:
        old = known.get(pipeline.name)
        if old is None:
            yield Change(pipeline.name, "the pipeline is new", _beginning(pipeline))
            yield from _loads(pipeline, ())
        else:
            yield from _of_pipeline(old, pipeline)
    for name in known.keys() - {p.name for p in after.pipelines}:
        yield Change(
            name,
            "the pipeline is removed",
            "it ends in order; its checkpoint and its rows stay in the target",
            warns=True,
        )


def _restarted(before: ChannelFile | None, after: ChannelFile) -> tuple[str, ...]:
    """Any change of a channel's file ends all of its runs, since a run knows the whole file."""
    if before is None:
        return ()
    known = {p.name for p in before.pipelines}
    return tuple(p.name for p in after.pipelines if p.name in known)


def _of_channel(before: ChannelFile, after: ChannelFile) -> Iterator[Change]:
    if before.mark_id != after.mark_id or before.otter_info != after.otter_info:
        yield Change(
            after.channel,
            "the channel's mark is another one",
            "what it wrote under the old one and is still in the stream would come back: stop it,"
            " and let it come to the end first",
            warns=True,
        )
    if before.home != after.home:
        yield Change(after.channel, f"home is {after.home or 'the first pipeline'}", warns=True)
    for field in ("verify", "alarms"):
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield Change(after.channel, f"{field}: {_written(old)} → {_written(new)}")


def _beginning(pipeline: Pipeline) -> str:
    start = getattr(pipeline.source, "start", None)
    where = "its `start`" if start is None else f"`start: {_shown(start)}`"
    return f"it begins at {where}, unless the target has a checkpoint of it"


def _of_pipeline(before: Pipeline, after: Pipeline) -> Iterator[Change]:
    name = after.name
    yield from _of_end(name, "source", before.source, after.source)
    yield from _of_end(name, "target", before.target, after.target)
    yield from _of_tables(before, after)
    old, new = _fields(before), _fields(after)
    for field in [f for f in new if f not in _OWN and old.get(f) != new[f]]:
        effect = "it begins at `start` again" if field == "generation" else ""
        yield Change(
            name,
            f"{field}: {_shown(old.get(field))} → {_shown(new[field])}",
            effect,
            warns=field in ("generation", "checkpoint", "checkpoint_file"),
        )


def _of_end(name: str, end: str, before: Any, after: Any) -> Iterator[Change]:
    if before == after:
        return
    old, new = _fields(before), _fields(after)
    changed = [field for field in {**old, **new} if old.get(field) != new.get(field)]
    moved = [field for field in changed if field in _ENDS]
    if moved:
        effect = {
            "source": "its position is one of the server before; see `setl position`",
            "target": "the checkpoint lies in the target before; without one it begins at `start`",
        }[end]
        what = f"the {end} is {after.address}, no longer {before.address}"
        yield Change(name, what, effect, warns=True)
    # Values are left out: some are secrets, resolved by now.
    rest = [field for field in changed if field not in _ENDS]
    if rest:
        effect = "it counts only where there is no checkpoint yet" if rest == ["start"] else ""
        yield Change(name, f"the {end} has another {', '.join(rest)}", effect)


def _of_tables(before: Pipeline, after: Pipeline) -> Iterator[Change]:
    old = {entry.name: entry.mapping for entry in Router(before).entries}
    new = {entry.name: entry.mapping for entry in Router(after).entries}
    for entry in new.keys() - old.keys():
        yield Change(after.name, f"table {_entry(entry)} is added", "its changes pass from now on")
    for entry in old.keys() - new.keys():
        yield Change(
            after.name,
            f"table {_entry(entry)} is removed",
            "its changes pass no longer; its rows stay in the target",
            warns=True,
        )
    for entry in [name for name in new if name in old and old[name] != new[name]]:
        fields = [f for f, v in _fields(new[entry]).items() if _fields(old[entry]).get(f) != v]
        yield Change(
            after.name,
            f"table {_entry(entry)}: another {', '.join(fields)}",
            "rows that are in the target already stay as they are; `setl resend` or `setl load"
            " --table` sends them again",
        )
    yield from _loads(after, old, before=before)


def _loads(
    after: Pipeline, known: Iterable[str], *, before: Pipeline | None = None
) -> Iterator[Change]:
    """Which tables are loaded, and which new ones are not."""
    wanted = entries_to_load(after)
    had = () if before is None else entries_to_load(before)
    for entry in wanted:
        if entry not in had:
            yield Change(after.name, f"table {_entry(entry)} is loaded", "its rows, once")
    for entry in [e.name for e in Router(after).entries]:
        if entry not in known and entry not in wanted and before is not None:
            yield Change(
                after.name,
                f"table {_entry(entry)} is not loaded",
                "rows that it has already do not pass; say `load: true` there, or run `setl load"
                " --table`",
                warns=True,
            )


def _entry(name: str) -> str:
    return name.removesuffix("->").strip()


def _fields(model: BaseModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in type(model).model_fields}


def _written(value: BaseModel | None) -> str:
    """What a part says in the file; what it leaves out is as ever."""
    said = {} if value is None else value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    return str(said) if said else "none"


def _shown(value: object) -> str:
    dump = getattr(value, "model_dump", None)
    return str(dump(exclude_defaults=True) if dump else value)
