"""Makes the plan of a channel file, from what the cluster keeps and what servers have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.values import Channel, PipelineId
from setl.channel.file import ChannelFile, Pipeline
from setl.channel.reading import resolve_and_parse
from setl.channel.routes.routing import Router
from setl.channel.text.problems import ChannelFileError
from setl.errors import ConfigurationError, NodeNotReadyError, SetlError
from setl.load.deadletters.ambiguous import is_remapped
from setl.load.deadletters.dead_letter import DeadLetter
from setl.load.deadletters.store import DeadLetterStore
from setl.operate import units
from setl.operate.applying import revision_of, stored_channel
from setl.operate.check import check_channel
from setl.operate.dead_letters import WAITING, letters_of
from setl.operate.plan import Change, Plan, plan_of
from setl.operate.positions.stored import without_used_starts
from setl.systems.finding import Finding
from setl.systems.pipeline_check import ExpressionCheck
from setl.systems.registry import system_of


def make_plan(
    arbiter: Arbiter,
    definition: Mapping[str, Any],
    channel: ChannelFile,
    environment: Mapping[str, str],
    *,
    expressions: ExpressionCheck | None = None,
    ask_servers: bool = True,
) -> Plan:
    """The plan of a channel file. Nothing is changed anywhere.

    Args:
        arbiter: keeps the channel as it is.
        definition: the channel as it is to be, as it is written.
        channel: the same, its references resolved.
        environment: where references of the stored definition get their values from.
        expressions: see `check_channel`.
        ask_servers: whether the servers that it names are asked.
    """
    seen = stored_channel(arbiter, channel.channel)
    findings: Sequence[Finding] = ()
    stranded: Sequence[Change] = ()
    if ask_servers:
        findings = check_channel(without_used_starts(channel, arbiter), expressions=expressions)
        before, _ = _read(seen, environment)
        stranded = tuple(stranded_letters(before, channel)) if before is not None else ()
    found = compared(seen, definition, channel, environment, findings)
    return replace(found, changes=(*found.changes, *stranded))


def compared(
    seen: Channel | None,
    definition: Mapping[str, Any],
    channel: ChannelFile,
    environment: Mapping[str, str],
    findings: Sequence[Finding] = (),
) -> Plan:
    """The plan of a channel file, compared with what was read of the cluster before. Pure.

    Args:
        seen: the channel as the cluster keeps it, None if it keeps none.
        definition: see `make_plan`.
        channel: see `make_plan`.
        environment: see `make_plan`.
        findings: what a check of `channel` has found.
    """
    before, unreadable = _read(seen, environment)
    return plan_of(
        before,
        channel,
        findings,
        rewritten=seen is None or bool(seen.damage) or seen.definition != dict(definition),
        unreadable=unreadable,
        base=revision_of(seen),
    )


def _read(seen: Channel | None, environment: Mapping[str, str]) -> tuple[ChannelFile | None, str]:
    """A channel as the cluster keeps it, and why it cannot be read."""
    if seen is None:
        return None, ""
    if seen.damage:
        return None, f"it {seen.damage}"
    try:
        return resolve_and_parse(seen.definition, environment), ""
    except ChannelFileError as error:
        return None, str(error)


_FIRST = "Load them again before the file is applied"


def stranded_letters(before: ChannelFile, after: ChannelFile) -> Iterator[Change]:
    """What the new file means for dead letters put aside under the old one, by pipeline.

    Asks the targets of pipelines that change.

    Args:
        before: the channel as the cluster keeps it.
        after: the channel as it is to be.
    """
    new = {pipeline.name: pipeline for pipeline in after.pipelines}
    for pipeline in before.pipelines:
        if pipeline.stores_dead_letters:
            ident = PipelineId(before.channel, pipeline.name)
            yield from _of_pipeline(ident, pipeline, new.get(pipeline.name))


def _of_pipeline(ident: PipelineId, before: Pipeline, after: Pipeline | None) -> Iterator[Change]:
    why = _out_of_reach(before, after)
    if not why and after is not None and before.tables == after.tables:
        return  # nothing about them changes, so no server need be asked
    try:
        with system_of(before.target).dead_letters() as store:
            if why or after is None:
                waiting = store.tally(str(ident)).open
                if waiting:
                    yield Change(before.name, _waiting(waiting), f"{why}. {_FIRST}", warns=True)
            else:
                yield from _remapped(ident, store, Router(before), Router(after))
    except SetlError as error:
        if isinstance(error, ConfigurationError) and not isinstance(error, NodeNotReadyError):
            return  # it has no place for them, so there are none; a check says so
        what = f"whether dead letters wait is not known: {error}"
        yield Change(before.name, what, "those that do may be out of reach then", warns=True)


def _out_of_reach(before: Pipeline, after: Pipeline | None) -> str:
    """Why no letter of a pipeline can be loaded any more, "" if they can."""
    if after is None:
        return "no pipeline loads them then, and no command shows them"
    if before.target.address != after.target.address:
        return (
            f"they stay at {before.target.address}, where no command looks then, unless"
            f" {after.target.address} is the same server"
        )
    if not after.stores_dead_letters:
        return "nothing loads them then, since the pipeline puts no faulty row aside any more"
    return ""


def _remapped(
    ident: PipelineId, store: DeadLetterStore, old: Router, new: Router
) -> Iterator[Change]:
    """Letters that `setl deadletter retry` takes now, and would not take any more."""
    found: Counter[str] = Counter()
    waiting = [i for i, state in store.states(str(ident)).items() if state in WAITING]
    for letters in letters_of(store, ident, waiting):
        found.update(_table(x) for x in letters if is_remapped(x, new) and not is_remapped(x, old))
    for table, number in sorted(found.items()):
        yield Change(
            ident.pipeline,
            f"{_waiting(number)} of {table}, put aside under the mapping before",
            "`setl deadletter retry` takes them only with --force then. Load them again before the"
            " file is applied, or send the rows as they are then with `setl resend`",
            warns=True,
        )


def _table(letter: DeadLetter) -> str:
    return letter.source or letter.target


def _waiting(number: int) -> str:
    return units.count(number, "open dead letter")
