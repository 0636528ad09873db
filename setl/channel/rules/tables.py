"""Rules about `conflict`, `read` and `unchanged` of tables, over raw parts of a channel file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from setl.channel.rules.spark_sql import bare_column
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, items, part

_NOT_WITH_CONFLICT = ("where", "group", "key", "processor")
_NOT_WITH_READ = {
    "processor": "it is given changes, and a row that is read is none",
    "key": "rows are looked up by the table's own key, which has an index",
    "routing": "the document of a row that was routed in another way would not be found",
    "nested": "documents with nested rows are looked up at the source anyway",
}
_NOT_WITH_UNCHANGED = {
    "where": "a row may pass after an update that passed not before",
    "processor": "what a function makes of a change, only the function knows",
    "nested": "the documents show rows of other tables, too",
}


def policy_of(table: Raw) -> str | tuple[str] | None:
    """A table's policy: ``home``, or the column of ``newest`` as a tuple; None for neither."""
    value = table.get("conflict")
    if value == "home":
        return "home"
    newest = part(value).get("newest")
    return (newest,) if isinstance(newest, str) else None


def wrong_policies(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """What a policy asks of its pipeline and of the mapping that it stands in."""
    for i, table in enumerate(tables):
        if policy_of(table) is None:
            continue
        path: Path = ("tables", i, "conflict")
        if target.get("type") != "mysql":
            yield path, "needs a target of type mysql, where conflicts can be found"
        if source.get("partitions") is not None:
            yield path, "needs the changes in one order, and `partitions` gives several"
        for key in _NOT_WITH_CONFLICT:
            if table.get(key):
                yield path, f"cannot be combined with `{key}`: both sites must hold the same rows"
        for name in _expressions(table.get("columns")):
            reason = f"cannot be combined with the expression of `{name}`"
            yield path, f"{reason}: both sites must hold the same rows"


def _expressions(columns: object) -> Iterator[str]:
    """Target columns that are more than another name of a source column."""
    if isinstance(columns, Mapping):
        for name, text in cast("Mapping[str, Any]", columns).items():
            if isinstance(text, str) and bare_column(text) is None:
                yield name


def wrong_pair(channel: Raw) -> Iterator[tuple[Path, str]]:
    """Policies need two pipelines, one for each direction, that say the same of each table."""
    pipelines = [part(p) for p in items(channel.get("pipelines"))]
    home, names = channel.get("home"), [p.get("name") for p in pipelines]
    if isinstance(home, str) and home not in names:
        yield ("home",), f"names no pipeline of the channel; there are {', '.join(map(str, names))}"
    policies = [_policies(pipeline) for pipeline in pipelines]
    for i, of_tables in enumerate(policies):
        for text, (at, policy) in of_tables.items():
            path: Path = ("pipelines", i, "tables", at, "conflict")
            if len(pipelines) != 2:
                if policy is not None:
                    yield path, "needs a channel of two pipelines, one for each direction"
                continue
            other = policies[1 - i].get(text)
            if i == 0 and other is not None and _differ(policy, other[1]):
                yield path, f"must be the same as in pipelines[1].tables[{other[0]}]"


def _policies(pipeline: Raw) -> dict[str, tuple[int, str | tuple[str] | None]]:
    """`from` → place and policy of the table mappings."""
    found: dict[str, tuple[int, str | tuple[str] | None]] = {}
    for i, table in enumerate(map(part, items(pipeline.get("tables")))):
        text = table.get("from", table.get("from_"))
        if isinstance(text, str):
            found.setdefault(text, (i, policy_of(table)))
    return found


def _differ(one: object, other: object) -> bool:
    """Whether two policies surely differ; a column may have another name at the other site."""
    return type(one) is not type(other)


def wrong_rereads(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """What does not go together with `read: source`."""
    if target.get("type") == "kafka":
        return  # a relay does not know it, which `wrong_relay` says
    for i, table in enumerate(tables):
        if table.get("read") != "source":
            continue
        reasons: list[str] = []
        if source.get("type") == "kafka" and not source.get("database"):
            reasons.append("needs `database:` in the source, since rows are looked up there")
        reasons += _not_with(table, _NOT_WITH_READ)
        if policy_of(table) is not None:
            reason = "what each site wrote stands in the changes alone"
            reasons.append(f"cannot be combined with a `conflict` policy: {reason}")
        if reasons:
            yield ("tables", i, "read"), "; it ".join(reasons)


def wrong_unchanged(tables: Sequence[Raw], target: Raw) -> Iterator[tuple[Path, str]]:
    """What does not go together with `unchanged: skip`."""
    if target.get("type") == "kafka":
        return  # a relay does not know it, which `wrong_relay` says
    for i, table in enumerate(tables):
        if table.get("unchanged") != "skip":
            continue
        reasons = _not_with(table, _NOT_WITH_UNCHANGED)
        texts = [str(text) for text in part(table.get("columns")).values()]
        if any(bare_column(text) is None for text in texts):
            reasons.append(
                "cannot be combined with expressions in `columns`: which columns they use is not"
                " looked at"
            )
        if table.get("read") == "source":
            reasons.append("cannot be combined with `read: source`: the change is not looked at")
        if policy_of(table) is not None:
            reasons.append(
                "cannot be combined with a `conflict` policy: every change counts for it"
            )
        if table.get("include") is None and not table.get("exclude"):
            reasons.append(
                "needs `include` or `exclude`: where all columns go, each update changes one"
            )
        if reasons:
            yield ("tables", i, "unchanged"), "; it ".join(reasons)


def _not_with(table: Raw, reasons: Mapping[str, str]) -> list[str]:
    """Sentences about the keys of an entry that do not go together with another one.

    Args:
        table: the entry.
        reasons: why, by key.
    """
    return [
        f"cannot be combined with `{key}`: {reason}"
        for key, reason in reasons.items()
        if table.get(key)
    ]
