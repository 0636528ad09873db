"""Rules between the tables and the two ends of a pipeline, over raw parts of a channel file.

Values may be of any type here: what has the wrong type is reported elsewhere and passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from setl.config.patterns import (
    PatternError,
    TablePattern,
    parse_from,
    parse_index_target,
    parse_table_target,
)
from setl.config.problems import Path
from setl.config.references import has_reference

Raw = Mapping[str, Any]
"""A part of a channel file before validation; any value in it may be of any type."""


def part(value: Any) -> Raw:
    """A part of the raw file as a mapping, be it one already or a model made by code."""
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return cast("Raw", value) if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """The items of a list; none for anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def wrong_targets(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """What is wrong with each `to`, given the ends of the pipeline."""
    to_itself = _same_server(source, target)
    for i, table in enumerate(tables):
        pattern = _pattern(table)
        to = table.get("to")
        if pattern is None or (to is not None and not _known(to)):
            continue
        try:
            same = _keeps_name(pattern, to, target.get("type"))
        except PatternError as error:
            yield ("tables", i, "to"), str(error)
            continue
        if to_itself and same:
            reason = "must name another table, since source and target are the same server"
            yield ("tables", i, "to"), reason


def repeated_sources(tables: Sequence[Raw]) -> Iterator[tuple[Path, str]]:
    """Entries for the same tables must differ in their target and agree in their group."""
    groups: dict[TablePattern, tuple[int, str]] = {}
    targets: dict[tuple[TablePattern, str | None], int] = {}
    for i, table in enumerate(tables):
        pattern, to, group = _pattern(table), table.get("to"), table.get("group")
        if pattern is None:
            continue
        if isinstance(to, str | None):
            first = targets.setdefault((pattern, to), i)
            if first != i:
                yield ("tables", i), f"has the same `from` and `to` as tables[{first}]"
        if isinstance(group, str):
            at, other = groups.setdefault(pattern, (i, group))
            if other != group:
                reason = f"puts a table in two groups: tables[{at}] has it in `{other}`"
                yield ("tables", i, "group"), reason


def _pattern(table: Raw) -> TablePattern | None:
    text = table.get("from", table.get("from_"))
    if not _known(text):
        return None
    try:
        return parse_from(cast("str", text))
    except PatternError:
        return None


def _known(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and not has_reference(text)


def _keeps_name(pattern: TablePattern, to: str | None, target_type: object) -> bool:
    """Whether rows go to a table of the same name; PatternError if `to` is malformed."""
    if to is None:
        return target_type == "mysql"
    if target_type == "elasticsearch":
        parse_index_target(to, pattern)
    elif target_type == "mysql":
        parsed = parse_table_target(to, pattern)
        exact = pattern.exact
        return exact is not None and parsed.wildcards == 0 and parsed.fill(exact[0], ()) == exact
    return False


def _same_server(source: Raw, target: Raw) -> bool:
    ends = [(e.get("type"), e.get("host"), str(e.get("port", 3306))) for e in (source, target)]
    return ends[0] == ends[1] and ends[0][0] == "mysql"
