"""Maps the columns of a source table to those of the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, Final, Protocol, Self, overload

from setl.codec.columns.column_rows import ColumnRows
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, RowSchema

READ_AT_SOURCE: Final = "What is in the stream already arrives with `read: source` for the table"
"""The hint where a change does not say its whole row."""


class ColumnRules(Protocol):
    """What a table mapping says about columns.

    Names of columns are compared without regard to case, as MySQL compares them.
    """

    @property
    def index(self) -> int:
        """Place of the mapping in the pipeline's `tables`, for messages."""
        ...

    @property
    def include(self) -> tuple[str, ...] | None:
        """The only columns that pass under their own names; None if all do."""
        ...

    @property
    def exclude(self) -> tuple[str, ...]:
        """Columns that do not pass under their own names."""
        ...

    @property
    def renames(self) -> Mapping[str, str]:
        """Target column → the source column whose values it takes."""
        ...

    @property
    def expressions(self) -> Mapping[str, str]:
        """Target column → Spark SQL that computes it."""
        ...

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that identify a row where the table's own key is not to be used; or none."""
        ...

    @property
    def routing(self) -> str | None:
        """A column that identifies a document beside the key, or None."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """How rows of one source schema become rows of the target, as far as no expression is needed.

    Attributes:
        columns: the target's columns, as their values come; without those that expressions
            compute.
        sources: for each of them, its index in a source row.
        key: indexes of the columns in `columns` that identify a row, see `identity_indexes`.
    """

    columns: tuple[Column, ...]
    sources: tuple[int, ...]
    key: tuple[int, ...]
    _project: Callable[[Any], Row] | None

    @classmethod
    def build(
        cls,
        schema: RowSchema,
        rules: ColumnRules,
        *,
        incomplete: bool = False,
        keyless: bool = False,
    ) -> Self:
        """Plan for one schema; once for each, not for each row.

        A column that `renames` takes, or that an expression or a rename replaces under its own
        name, does not pass under that name as well.

        Args:
            schema: the source's columns.
            rules: what the table mapping says.
            incomplete: the schema has only the columns that some record mentioned (see
                `setl.transform.survivors.Survivors.partial`), so names may be missing from it.
            keyless: rows have no key; all columns that pass identify one then.

        Raises:
            ConfigurationError: the mapping names columns that the source does not have, or
                leaves out a key column; says all that is wrong, with its position in the mapping.
        """
        names = {name.lower(): i for i, name in enumerate(schema.names)}
        problems = [] if incomplete else _missing(names, rules)
        chosen = _chosen(schema, rules)
        key = () if keyless else identity_indexes(schema, rules.key, rules.routing)
        positions = {source: i for i, (source, _) in reversed(list(enumerate(chosen)))}
        problems += [_key_lost(schema, rules, i) for i in key if i not in positions]
        if problems:
            raise ConfigurationError(
                f"the columns of {schema.name} do not fit their mapping: " + "; ".join(problems),
                hint="`setl check` compares mappings with the tables",
                table=schema.name,
            )
        sources = tuple(source for source, _ in chosen)
        columns = tuple(
            column if column.name == name else replace(column, name=name)
            for column, name in ((schema.columns[source], name) for source, name in chosen)
        )
        if rules.key:
            # Nobody knows whether the source compares such columns to identify its rows.
            columns = tuple(replace(c, collation=0) if c.collation else c for c in columns)
        found = tuple(range(len(columns))) if keyless else tuple(positions[i] for i in key)
        return cls(columns, sources, found, _projector(schema, sources))

    def row(self, row: Row) -> Row:
        """One source row as a target row."""
        return row if self._project is None else self._project(row)

    @overload
    def rows(self, rows: list[Row]) -> list[Row]: ...
    @overload
    def rows(self, rows: Sequence[Row]) -> Sequence[Row]: ...
    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Many at once; the same rows where nothing changes."""
        if self._project is None:
            return rows
        if isinstance(rows, ColumnRows):
            return rows.picked(self.sources)
        return list(map(self._project, rows))


def image_key(
    schema: RowSchema, positions: Sequence[int], image: Row, other: Row | None, what: str
) -> Row:
    """The values at some places of an image, which say what a change is about.

    Args:
        schema: the columns.
        positions: of the values.
        image: the row before or after the change.
        other: the other of the two, which has what this one lacks; None if there is none.
        what: they say, for the error.

    Raises:
        DataError: neither image has a value.
    """
    values: list[Value] = []
    for position in positions:
        value = image[position]
        if value is ABSENT and other is not None:
            value = other[position]
        if value is ABSENT:
            raise DataError(
                f"a record of {schema.name} does not say {what}",
                hint="Set binlog_row_image=FULL at the source, or subscribe to all columns",
                table=schema.name,
                column=schema.names[position],
            )
        values.append(value)
    return tuple(values)


def key_indexes(schema: RowSchema, names: Sequence[str] = ()) -> tuple[int, ...]:
    """Indexes of the columns that identify a row of this schema, in key order.

    Args:
        schema: the columns.
        names: columns to use instead of the primary key; none for the primary key.

    Raises:
        ConfigurationError: there is no key, or a named column does not exist.
    """
    if not names:
        if schema.key:
            return schema.key
        raise ConfigurationError(
            f"{schema.name} has no primary key, nor a unique one without nullable columns, so its"
            " rows cannot be distinguished",
            hint="Give it a primary key, or name columns that are unique and never null under"
            " `key` in its mapping, or leave the table out",
            table=schema.name,
        )
    positions = {name.lower(): i for i, name in enumerate(schema.names)}
    missing = [name for name in names if name.lower() not in positions]
    if missing:
        raise ConfigurationError(
            f"{schema.name} has no column {', '.join(missing)}, named under `key`",
            hint=f"Its columns are {', '.join(schema.names)}",
            table=schema.name,
        )
    return tuple(positions[name.lower()] for name in names)


def identity_indexes(
    schema: RowSchema, names: Sequence[str] = (), routing: str | None = None
) -> tuple[int, ...]:
    """Indexes of the columns that identify a row in its target: its key, then the routing column.

    A document is on the shard that its routing says. Counted as part of its key, a row that is
    routed again is deleted under its old routing by the same means as a row with a new key.

    Raises:
        ConfigurationError: as for `key_indexes`, or there is no such routing column.
    """
    key = key_indexes(schema, names)
    if routing is None:
        return key
    position = schema.folded.get(routing.lower(), -1)
    if position < 0:
        raise ConfigurationError(
            f"{schema.name} has no column {routing}, named under `routing`",
            hint=f"Its columns are {', '.join(schema.names)}",
            table=schema.name,
        )
    return key if position in key else (*key, position)


def _missing(names: Mapping[str, int], rules: ColumnRules) -> list[str]:
    position = f"tables[{rules.index}]"
    named = [
        *((f"{position}.include", name) for name in rules.include or ()),
        *((f"{position}.exclude", name) for name in rules.exclude),
        *((f"{position}.columns.{target}", source) for target, source in rules.renames.items()),
    ]
    return [
        f"{path} names {name}, which the source does not have"
        for path, name in named
        if name.lower() not in names
    ]


def _chosen(schema: RowSchema, rules: ColumnRules) -> list[tuple[int, str]]:
    """(source index, target name) of each target column, in the order of the source."""
    include = None if rules.include is None else {name.lower() for name in rules.include}
    renamed: dict[str, list[str]] = {}
    for target, source in rules.renames.items():
        renamed.setdefault(source.lower(), []).append(target)
    replaced = {name.lower() for name in (*rules.renames, *rules.expressions, *rules.exclude)}
    chosen: list[tuple[int, str]] = []
    for i, name in enumerate(schema.names):
        lowered = name.lower()
        if lowered in renamed:
            chosen += [(i, target) for target in renamed[lowered]]
        elif lowered not in replaced and (include is None or lowered in include):
            chosen.append((i, name))
    return chosen


def _key_lost(schema: RowSchema, rules: ColumnRules, index: int) -> str:
    name, position = schema.names[index], f"tables[{rules.index}]"
    if any(target.lower() == name.lower() for target in (*rules.renames, *rules.expressions)):
        return (
            f"{position}.columns replaces the key column {name}, so that deletes would not find"
            " their rows"
        )
    how = "excludes" if any(n.lower() == name.lower() for n in rules.exclude) else "leaves out"
    part = "exclude" if how == "excludes" else "include"
    return f"{position}.{part} {how} the key column {name}"


def _projector(schema: RowSchema, sources: tuple[int, ...]) -> Callable[[Any], Row] | None:
    if sources == tuple(range(len(schema.columns))):
        return None
    # itemgetter gives a bare value for one index.
    return itemgetter(*sources) if len(sources) > 1 else partial(_pick, sources)


def _pick(sources: tuple[int, ...], row: Row) -> Row:
    return tuple(row[i] for i in sources)
