"""Which tables go where: the `tables` of a pipeline, compiled.

Exact names come before wildcards; among wildcards the first entry that matches counts. All
entries with the same `from` as the one that counts apply, so that one table can go to several
targets. System schemas never match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from setl.config.channel import MysqlTarget, Pipeline, TableMapping
from setl.config.patterns import (
    PatternError,
    TablePattern,
    TargetPattern,
    index_problem,
    is_system,
    parse_from,
    parse_index_target,
    parse_table_target,
)
from setl.errors import ConfigurationError

# Tables come and go, and their names with them; the answers can always be found again.
_ROUTES_KEPT = 10_000

# Words that look like columns but mean something to Spark SQL without parentheses.
_SPARK_WORDS = frozenset({
    "null", "true", "false", "current_catalog", "current_database", "current_date",
    "current_schema", "current_time", "current_timestamp", "current_user", "localtimestamp",
})  # fmt: skip
_BARE = re.compile(r"(?!\d)\w+")
_IN_BACKTICKS = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True)
class Route:
    """Where the rows of one source table go, and how. Picklable: it travels to Spark tasks.

    Attributes:
        index: place of the entry in the pipeline's `tables`.
        target: (schema, table), or ("", index) for Elasticsearch.
        include: the only source columns that pass under their own names; None for all.
        exclude: source columns that do not pass under their own names.
        renames: target column → the source column whose values it takes. The source column
            does not pass under its own name then.
        expressions: target column → Spark SQL expression over the source's columns.
        where: Spark SQL condition over the source's columns, or None.
        group: name of the table group, or None.
        key: source columns that identify a row; empty for the primary key.
    """

    index: int
    target: tuple[str, str]
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    expressions: Mapping[str, str] = field(default_factory=dict[str, str])
    where: str | None = None
    group: str | None = None
    key: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether rows go to the target as they are, under another table name at most."""
        changed = self.include is not None or self.exclude or self.renames or self.expressions
        return not changed and self.where is None


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """One entry of a pipeline's `tables`, compiled.

    Attributes:
        index: its place in `tables`.
        pattern: its `from`.
        target: its `to`; None for the default.
        mapping: the entry.
    """

    index: int
    pattern: TablePattern
    target: TargetPattern | None
    mapping: TableMapping


class Router:
    """Answers where the rows of a table go. Picklable; not thread-safe."""

    def __init__(self, pipeline: Pipeline) -> None:
        """Compile the pipeline's `tables`.

        Raises:
            ConfigurationError: a pattern is malformed, which a checked channel file rules out.
        """
        self._into_index = not isinstance(pipeline.target, MysqlTarget)
        self.entries = tuple(
            _compiled(i, mapping, into_index=self._into_index)
            for i, mapping in enumerate(pipeline.tables)
        )
        self._exact: dict[tuple[str, str], list[RoutedTable]] = {}
        self._wildcards: list[RoutedTable] = []
        for entry in self.entries:
            name = entry.pattern.exact
            if name is None:
                self._wildcards.append(entry)
            else:
                self._exact.setdefault(name, []).append(entry)
        self._known: dict[tuple[str, str], tuple[Route, ...]] = {}

    def route(self, schema: str, table: str) -> tuple[Route, ...]:
        """The routes of a table in the order of the file, none if it is not mapped.

        Raises:
            ConfigurationError: the table's name makes no valid index name.
        """
        found = self._known.get((schema, table))
        if found is None:
            found = tuple(self._routes(schema, table))
            if len(self._known) >= _ROUTES_KEPT:
                self._known.clear()
            self._known[schema, table] = found
        return found

    def _routes(self, schema: str, table: str) -> Iterator[Route]:
        if is_system(schema):
            return
        entries: Sequence[RoutedTable] = self._exact.get((schema, table), ())
        carried: tuple[str, ...] | None = ()
        if not entries:
            first = next((e for e in self._wildcards if e.pattern.match(schema, table)), None)
            if first is None:
                return
            entries = [e for e in self._wildcards if e.pattern == first.pattern]
            carried = first.pattern.match(schema, table)
        for entry in entries:
            yield _route(entry, self._target(entry, schema, table, carried or ()))

    def _target(
        self, entry: RoutedTable, schema: str, table: str, carried: tuple[str, ...]
    ) -> tuple[str, str]:
        if not self._into_index:
            return entry.target.fill(schema, carried) if entry.target else (schema, table)
        index = entry.target.fill("", carried)[1] if entry.target else table
        # What is carried over, or the table's name itself, may be in upper case.
        index = index.lower()
        if reason := index_problem(index):
            raise ConfigurationError(
                f"the index name `{index}`, made from {schema}.{table}, {reason}",
                hint=f"Name an index in tables[{entry.index}].to",
            )
        return "", index


def _compiled(index: int, mapping: TableMapping, *, into_index: bool) -> RoutedTable:
    try:
        pattern = parse_from(mapping.from_)
        target = None
        if mapping.to is not None:
            parse = parse_index_target if into_index else parse_table_target
            target = parse(mapping.to, pattern)
    except PatternError as error:
        raise ConfigurationError(f"tables[{index}]: `from` or `to` {error}") from error
    return RoutedTable(index, pattern, target, mapping)


def _route(entry: RoutedTable, target: tuple[str, str]) -> Route:
    mapping = entry.mapping
    renames: dict[str, str] = {}
    expressions: dict[str, str] = {}
    for column, text in mapping.columns.items():
        source = bare_column(text)
        if source is None:
            expressions[column] = text
        else:
            renames[column] = source
    return Route(
        index=entry.index,
        target=target,
        include=None if mapping.include is None else tuple(mapping.include),
        exclude=tuple(mapping.exclude),
        renames=renames,
        expressions=expressions,
        where=mapping.where,
        group=mapping.group,
        key=tuple(mapping.key or ()),
    )


def bare_column(text: str) -> str | None:
    """The column that an expression consists of, None if it is more than a column's name.

    A word such as ``current_date``, which Spark SQL takes for a function, is an expression;
    a column of that name is written in backticks.
    """
    word = text.strip()
    quoted = _IN_BACKTICKS.fullmatch(word)
    if quoted:
        return quoted.group(1).replace("``", "`")
    return word if _BARE.fullmatch(word) and word.lower() not in _SPARK_WORDS else None


def passing_columns(route: Route, names: Sequence[str]) -> list[tuple[int, str]]:
    """Which source columns go to which target columns, apart from expressions.

    Names are compared without regard to case, as MySQL compares them.

    Args:
        route: the route.
        names: the source's columns.

    Returns:
        (index in `names`, target column), in the order of the source.
    """
    include = None if route.include is None else {n.lower() for n in route.include}
    replaced = {n.lower() for n in (*route.exclude, *route.renames, *route.expressions)}
    passing: list[tuple[int, str]] = []
    for i, name in enumerate(names):
        lowered = name.lower()
        targets = [t for t, source in route.renames.items() if source.lower() == lowered]
        if not targets and lowered not in replaced and (include is None or lowered in include):
            targets = [name]
        passing += [(i, target) for target in targets]
    return passing
