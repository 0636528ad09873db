"""Table groups: a table is in one group only, and a table without a group is its own.

Over raw parts of a channel file, as `setl.channel.rules.mappings`.

Which entries a table goes by is decided by their `from` (see `setl.channel.routes.routing`): an
exact name before all wildcards, and of wildcards the first that matches. So an exact name may take
a table out of the group of a wildcard; that is plain to see. It is not where a wildcard puts tables
in a group that go by another wildcard above it, which leaves them where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from setl.channel.fields.endpoints import takes_rows
from setl.channel.names.overlaps import overlap
from setl.channel.names.patterns import PatternError, TablePattern, parse_table_target
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, pattern_of
from setl.channel.text.references import has_reference


class _Entry(NamedTuple):
    number: int
    pattern: TablePattern
    group: str | None
    target: tuple[str, str] | None

    @property
    def location(self) -> str:
        """Where it has its tables, for messages."""
        named = f"in `{self.group}`" if self.group else "in no group"
        return f"tables[{self.number}] has {{}} {named}"


def wrong_groups(tables: Sequence[Raw], target: Raw) -> Iterator[tuple[Path, str]]:
    """Where entries put one table in two groups, or bring two groups into one table."""
    entries = [e for e in (_entry(i, t, target) for i, t in enumerate(tables)) if e is not None]
    for at, entry in enumerate(entries):
        problem = next(filter(None, (_problem(first, entry) for first in entries[:at])), None)
        if problem is not None:
            path = ("group",) if entry.group is not None else ()
            yield ("tables", entry.number, *path), problem


def _problem(first: _Entry, entry: _Entry) -> str | None:
    if first.group == entry.group:
        return None
    if first.pattern == entry.pattern:
        return f"puts a table in two groups: {first.location.format('it')}"
    if first.target is not None and first.target == entry.target:
        return (
            f"brings rows into {'.'.join(first.target)} as tables[{first.number}] does, but its"
            " tables are not in the same group"
        )
    wildcards = first.pattern.exact is None and entry.pattern.exact is None
    if wildcards and entry.group is not None and overlap(first.pattern, entry.pattern):
        return (
            f"puts tables in a group that go by tables[{first.number}], which comes first:"
            f" {first.location.format('them')}"
        )
    return None


def _entry(number: int, table: Raw, target: Raw) -> _Entry | None:
    pattern, group = pattern_of(table), table.get("group")
    if pattern is None or not isinstance(group, str | None):
        return None
    into = _only_target(pattern, table.get("to")) if takes_rows(target) else None
    return _Entry(number, pattern, group, into)


def _only_target(pattern: TablePattern, to: object) -> tuple[str, str] | None:
    """The one table that an entry brings rows into; None if it is not one, or not known."""
    if to is None:
        return pattern.exact
    if not isinstance(to, str) or has_reference(to):
        return None
    try:
        parsed = parse_table_target(to, pattern)
    except PatternError:
        return None
    schema = pattern.schema.literal if parsed.schema is None else parsed.schema.literal
    table = parsed.table.literal
    return None if schema is None or table is None else (schema, table)
