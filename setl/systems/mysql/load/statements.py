"""Builds the statements that write changes into a MySQL table, once for each table.

No two rows of the source may become one, and no row may go that the stream did not remove (I21),
whatever unique keys and collations the table has. So no statement here touches a row but the one
that its key names:

* ``INSERT … ON DUPLICATE KEY UPDATE`` updates whatever row collides on any unique key, known or
  not. Its first assignment compares the key of the row found with that of the row given, and
  makes the server refuse the statement if they differ (`_on_duplicate`). A key that somebody adds
  to the table a moment ago can therefore stop a load, but not mislead it.
* ``REPLACE`` removes whatever conflicts with it. It is only used where that is about to come again,
  see `setl.systems.mysql.load.exact`.
* ``DELETE`` compares text byte by byte where the column's collation may take two keys of the
  source for one.

How rows get into a table, by what its unique keys allow:

* UPSERT: only the key that identifies rows can collide, and it tells the target's rows apart as
  it does the source's: its columns compare byte by byte, or with the source's very collation.
* EXACT: something else can collide: a further unique key (whether the source has it too, nobody
  can tell from a stream), a key over prefixes or expressions, a key that the target compares in
  another way. `setl.systems.mysql.load.exact` says how they are loaded.
* RENEW, ``DELETE`` and ``INSERT``: no unique key of the target lies within the key of the mapping,
  so nothing but a delete keeps a row from being there twice. Needs an index to be fast.
  So are rows of a table with a key WITHOUT OVERLAPS.

* KEYLESS: the source's table has no key, and its rows are counted, see
  `setl.systems.mysql.load.keyless`.

Columns that only the target has keep their values, except in rows that EXACT makes again.

Deletes of all tables of a call come before all its upserts. A key may be deleted under one
spelling and written under another that a case-insensitive collation takes for the same ('a' became
'A'): written first, the new row would conflict with nobody but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple

from setl.errors import ConfigurationError
from setl.model.labels import LABELLED, is_numbered
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.load.row_statement import RowStatement, bytes_of
from setl.systems.mysql.values.conditions import is_compared_apart
from setl.systems.mysql.values.fit import (
    as_numbers,
    blanks_of,
    guards_for,
    hidden_label_guards,
    is_watched,
)
from setl.systems.mysql.values.lost_text import may_be_lost
from setl.systems.mysql.values.row_text import within

_MOMENTS: Final = frozenset({Kind.DATETIME, Kind.TIMESTAMP})
_DATED: Final = _MOMENTS | {Kind.DATE}


class Strategy(Enum):
    """How rows are brought into a table; see the module's text."""

    UPSERT = "upsert"
    EXACT = "exact"
    DELETE_INSERT = "renew"
    KEYLESS = "keyless"


@dataclass(frozen=True, slots=True)
class TableWrites:
    """How one shape of rows is written into one table.

    Attributes:
        strategy: how its rows get into it.
        inserts: brings rows in.
        deletes: removes rows by their keys.
        single_writer: whether one task has to write all rows of the table, and each change once:
            some may conflict with others.
        fills: whether the rows have all columns of the table, so that nothing is lost in one
            that is made again.
        numbered: the columns whose labels are written as their numbers.
        gives_all: whether they have all columns in which the table takes no NULL. Where they have
            not, INSERT is refused if there is no default, and LOAD DATA makes a value up.
        generated: which columns of the table the server computes, and whether a session decides
            about them; see `GeneratedColumns`.
    """

    strategy: Strategy
    inserts: RowStatement
    deletes: RowStatement
    single_writer: bool = False
    fills: bool = True
    gives_all: bool = True
    numbered: tuple[Column, ...] = ()
    generated: GeneratedColumns = field(default_factory=lambda: GeneratedColumns())  # noqa: PLW0108 - it is defined below


@dataclass(frozen=True, slots=True)
class GeneratedColumns:
    """What the server computes of the rows of one shape, see `setl.systems.mysql.load.generated`.

    Attributes:
        stored: the table's columns for the values of a row, in their order.
        compared: indexes in a row of generated columns whose values the server keeps, in the
            table or in an index. The rows say what they have to be.
        moments: indexes in a row of columns that are a TIMESTAMP at the target.
        any: whether the table has generated columns at all.
        in_unique_keys: whether a unique key has one, or an expression.
    """

    stored: tuple[Column, ...] = ()
    compared: tuple[int, ...] = ()
    moments: tuple[int, ...] = ()
    any: bool = False
    in_unique_keys: bool = False

    @classmethod
    def of(cls, stored: Sequence[Column], target: RowSchema) -> GeneratedColumns:
        """Find out; `stored` are the table's columns for those of the rows."""
        generated = {i for i, column in enumerate(target.columns) if column.generated}
        keyed = {i for key in (target.key, *target.unique) for i in key}
        return cls(
            tuple(stored),
            tuple(i for i, column in enumerate(stored) if column.materialized),
            tuple(i for i, column in enumerate(stored) if column.kind is Kind.TIMESTAMP),
            bool(generated),
            bool(generated & keyed) or target.odd_keys,
        )

    def shiftable(self, columns: Sequence[Column]) -> bool:
        """Whether the rows' values for TIMESTAMP columns can be written in another time zone."""
        return all(columns[i].kind in _DATED for i in self.moments)


def lacking(target: RowSchema, columns: Iterable[str]) -> list[str]:
    """Those of some columns that a table does not have."""
    # MySQL takes names of columns for the same whatever their case.
    return [name for name in columns if name.lower() not in target.folded]


def plan_writes(
    columns: tuple[Column, ...],
    key: tuple[int, ...],
    target: RowSchema,
    *,
    row_alias: bool = False,
    partial: bool = False,
    exact_json: bool = False,
    keyless: bool = False,
) -> TableWrites:
    """Decide how rows with these columns, identified by these of them, get into a table.

    Args:
        columns: the columns of the rows, in the order of their values.
        key: indexes of the columns that identify a row.
        target: the table as its server describes it.
        row_alias: whether the server wants a name for the new row, in place of VALUES().
        partial: whether rows lack columns, which are to stay as the table has them.
        exact_json: see `setl.systems.mysql.values.json_literal.json_literal`.
        keyless: see `TargetChanges.keyless`.

    Raises:
        ConfigurationError: the rows have no key, or columns that the table lacks.
    """
    if missing := lacking(target, [c.name for c in columns]):
        raise ConfigurationError(
            f"the target table lacks the columns {', '.join(missing)}",
            hint="Add them, or leave them out with `exclude`",
            table=target.name,
        )
    if not key:
        raise ConfigurationError(
            "the target table has rows without a key",
            hint="Name the columns that identify a row with `key`",
            table=target.name,
        )
    there = {c.name.lower(): c for c in target.columns}
    stored = [there[c.name.lower()] for c in columns]
    names = [c.name.lower() for c in stored]
    collisions = _KEYLESS if keyless else Collisions.of(columns, stored, key, target)
    strategy, identity = collisions.strategy, collisions.identity
    written = tuple(i for i, c in enumerate(stored) if not c.generated)
    watched = any(is_watched(columns[i], stored[i]) for i in written)
    for i in () if keyless else key:
        stored[i] = _without_bound(stored[i])
    columns = tuple(replace(c, capacity=s.capacity) for c, s in zip(columns, stored, strict=True))
    keys, key_numbers = as_numbers([columns[i] for i in key])
    filling = [columns[i] for i in written]
    given, numbers = as_numbers(filling)
    table = qualified(target.schema, target.table)
    found_by = by_key([stored[i] for i in key])
    bytewise = collisions.bytewise and any(_is_loose(stored[i]) for i in key)
    filled = ",".join(quote(stored[i].name) for i in written)
    condition = f"{'(' if bytewise else ''}{found_by.head}"
    deletes = RowStatement(
        table=target.name,
        head=f"DELETE FROM {table} WHERE {condition}",
        tail=f"{found_by.tail}{')' if bytewise else ''}",
        columns=keys,
        picks=None,
        key=tuple(range(len(key))),
        by_key=True,
        # LIMIT cuts nothing off, since each key is one row at most. It keeps the server from
        # reading a small table from end to end, which would lock rows of other tasks.
        limited=bool(identity),
        between=found_by.between,
        bytewise=tuple(quote(stored[i].name) for i in key) if bytewise else (),
        numbers=key_numbers,
        guards=hidden_label_guards(keys),
    )
    counts = replace(deletes, head=f"SELECT COUNT(*) FROM {table} WHERE {condition}", limited=False)
    return TableWrites(
        strategy,
        RowStatement(
            table=target.name,
            head=f"INSERT INTO {table} ({filled}) VALUES ",
            tail=""
            if strategy in (Strategy.DELETE_INSERT, Strategy.KEYLESS)
            else _on_duplicate(
                stored,
                key,
                table,
                exact=collisions.bytewise,
                row_alias=row_alias,
                unchanged=moving(target, names) if partial else (),
            ),
            columns=given,
            picks=None if len(written) == len(columns) else written,
            key=key,
            by_key=False,
            # A primary key takes no NULL anyway; other unique keys take any number of them.
            never_null=() if keyless or (identity and identity == _key_names(target)) else key,
            guards=guards_for(filling),
            watched=watched,
            computed=frozenset(c.name.lower() for c in target.columns)
            - {names[i] for i in written},
            blanks=tuple(blank for blank in blanks_of(columns) if blank[0] in written),
            numbers=numbers,
            counts=counts if partial and strategy is not Strategy.DELETE_INSERT else None,
            exact_json=exact_json,
        ),
        deletes,
        single_writer=collisions.single_writer,
        fills={c.name.lower() for c in target.columns if not c.generated} <= set(names),
        numbered=tuple(filling[index] for index, _ in numbers),
        gives_all={c.name.lower() for c in target.columns if _takes_no_null(c)} <= set(names),
        generated=GeneratedColumns.of(stored, target),
    )


def replacing(inserts: RowStatement) -> RowStatement:
    """The statement that removes whatever conflicts with its rows."""
    return replace(inserts, head=inserts.head.replace("INSERT", "REPLACE", 1), tail="", counts=None)


def _number_of(labels: str) -> str:
    """SQL for the number of an ENUM or SET; MySQL would round one of 64 bits in a sum."""
    return f"CAST({labels} AS UNSIGNED)"


class Collisions(NamedTuple):
    """What rows of one shape can collide on in a table.

    Attributes:
        strategy: how they get into it.
        identity: the unique key of the target that identifies a row; empty for RENEW.
        single_writer: see `TableWrites.single_writer`.
        bytewise: whether text of keys is to be compared byte by byte, since the column's
            collation may not be the source's.
    """

    strategy: Strategy
    identity: frozenset[str]
    single_writer: bool
    bytewise: bool

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        stored: Sequence[Column],
        key: tuple[int, ...],
        target: RowSchema,
    ) -> Collisions:
        """Find out; `stored` are the table's columns for `columns`."""
        names = [c.name.lower() for c in stored]
        mapped = frozenset(names[i] for i in key)
        others = (frozenset(target.names[i].lower() for i in u) for u in target.unique)
        unique = [u for u in (_key_names(target), *others) if u]
        # The primary key comes first. A part of the mapping's key finds its rows as well.
        identity = next((u for u in unique if u <= mapped), frozenset[str]())
        numbered = {c.name.lower() for c in target.columns if _is_numbered(c)} - set(names)
        # A key that holds the identity collides with the same row only, and one that the target
        # fills with numbers of its own with none.
        further = target.odd_keys or any(
            not (u >= identity and identity) for u in unique if u - numbered
        )
        if target.overlapless:
            # INSERT … ON DUPLICATE KEY UPDATE is refused there. Rows that give parts of their
            # periods to each other are in each other's way as those that give unique values.
            return cls(Strategy.DELETE_INSERT, frozenset(), single_writer=True, bytewise=True)
        if not identity:
            return cls(Strategy.DELETE_INSERT, identity, single_writer=further, bytewise=True)
        coarse = identity != mapped or any(
            _is_loose(stored[i]) and columns[i].collation != (stored[i].collation or -1)
            for i in key
        )
        if further or coarse:
            return cls(Strategy.EXACT, identity, single_writer=True, bytewise=True)
        return cls(Strategy.UPSERT, identity, single_writer=False, bytewise=False)


_KEYLESS: Final = Collisions(Strategy.KEYLESS, frozenset(), single_writer=True, bytewise=False)


def _is_loose(column: Column) -> bool:
    """Whether two texts may be one to a column's collation."""
    return column.kind is Kind.TEXT and not column.binary_order


def _is_exact(column: Column) -> bool:
    """Whether values that a unique key takes for one are the same."""
    return column.binary_order or is_numbered(column)


def _takes_no_null(column: Column) -> bool:
    held = column.capacity
    if held is None or held.nullable or column.generated:
        return False
    # What replaces NULL in a TIMESTAMP is not what LOAD DATA makes up: a zero date.
    return not _is_numbered(column)


def _is_numbered(column: Column) -> bool:
    """Whether the server gives each row a number of its own."""
    return (
        column.kind is Kind.INTEGER and column.capacity is not None and column.capacity.fills_null
    )


def _key_names(target: RowSchema) -> frozenset[str]:
    return frozenset(target.names[i].lower() for i in target.key)


class ByKey(NamedTuple):
    """The texts around keys in a condition."""

    head: str
    between: str
    tail: str


def by_key(key: Sequence[Column]) -> ByKey:
    """The texts around keys of these columns of a table."""
    names = ",".join(quote(c.name) for c in key)
    charsets = {c.capacity.charset for c in key if c.capacity is not None and c.capacity.charset}
    if len(key) > 1 and (any(map(is_compared_apart, key)) or charsets - {"utf8mb4"}):
        # MariaDB 10.11 compares the bytes of a list of rows with those of the columns, whatever
        # their charsets: ('é', 1) in UTF-8 is not found in a latin1 column.
        return ByKey(f"({names})=", f" OR ({names})=", "")
    return ByKey(f"({names}) IN (", ",", ")")


COLLIDES: Final = "18446744073709551615 + (1 + ("
"""How the server quotes the sum by which `_on_duplicate` refuses a row, with error 1690."""


def moving(target: RowSchema, given: Sequence[str]) -> list[str]:
    """Columns besides the given ones that an update of others may set (ON UPDATE)."""
    return [
        column.name
        for column in target.columns
        if column.kind in _MOMENTS and not column.generated and column.name.lower() not in given
    ]


def _without_bound(column: Column) -> Column:
    """A column of a key, which has to take its values as they are.

    MySQL finds no row by the 100000 that FLOAT(10,5) holds for its largest number: it is sure that
    the column cannot have that. So such a row must not be written.
    """
    if column.capacity is None or not column.capacity.digits:
        return column
    return replace(column, capacity=replace(column.capacity, digits=0))


def _within(column: Column, value: str) -> str:
    return value if column.capacity is None else within(column.capacity, value)


def _on_duplicate(
    stored: Sequence[Column],
    key: tuple[int, ...],
    table: str,
    *,
    exact: bool,
    row_alias: bool,
    unchanged: Sequence[str] = (),
) -> str:
    """``ON DUPLICATE KEY UPDATE`` for all columns but those of the key that stay as they are.

    Before all else the key of the row found is compared with that of the row given. If they
    differ, a sum overflows, which is an error in any SQL mode; otherwise it is not worked out.

    Args:
        stored: the table's columns.
        key: indexes of those that identify a row.
        table: its quoted name.
        exact: whether text of the key is compared byte by byte, else as its column does.
        row_alias: see `plan_writes`.
        unchanged: columns to leave as they are by name, which the server may set by itself else.
    """
    new = "`new row`.{}" if row_alias else "VALUES({})"

    def equal(column: Column) -> str:
        name = quote(column.name)
        # The alias has the columns that are given alone.
        given = f"VALUES({name})" if column.generated else new.format(name)
        held = f"{table}.{name}"
        if exact and _is_loose(column):
            # In UTF-8, all text is one that has no character there.
            own = may_be_lost(column.capacity)
            bytewise = "CAST({} AS BINARY)".format if own else bytes_of
            held, given = bytewise(held), bytewise(given)
        elif is_numbered(column):
            held, given = _number_of(held), _number_of(given)
        return f"{held}<=>{given}"

    written = [i for i, c in enumerate(stored) if not c.generated]

    def is_set(i: int) -> bool:
        # Under most collations the row found may spell its key in another way. And a time that
        # nobody sets the server may set itself (ON UPDATE), which moves the row to another key.
        return i not in key or not (exact or _is_exact(stored[i])) or stored[i].kind in _MOMENTS

    sets = [i for i in written if is_set(i)]
    compared = [i for i in key if i in written] or list(key)
    # As a label, a value that is none would be refused, so labels are the last choice.
    bearer = min(
        [*(i for i in compared if i in written), *sets] or [key[0]],
        key=lambda i: stored[i].kind in LABELLED,
    )
    name = quote(stored[bearer].name)
    value = _within(stored[bearer], new.format(name))
    if stored[bearer].kind in LABELLED:
        value = _number_of(value)

    def given(column: Column) -> str:
        # From column to column, servers copy labels by their text.
        value = new.format(quote(column.name))
        return _number_of(value) if is_numbered(column) else _within(column, value)

    same = " AND ".join(equal(stored[i]) for i in compared)
    probe = f"{table}.{quote(stored[key[0]].name)}"
    guard = f"{name}=IF({same} OR {COLLIDES}{probe} IS NULL)),{value},{value})"
    others = (f"{quote(stored[i].name)}={given(stored[i])}" for i in sets if i != bearer)
    alias = " AS `new row`" if row_alias else ""
    same_again = (f"{n}={table}.{n}" for n in map(quote, unchanged))
    changed = ",".join([guard, *others, *same_again])
    return f"{alias} ON DUPLICATE KEY UPDATE {changed}"
