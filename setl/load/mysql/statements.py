"""Which statements write changes into a MySQL table: decided once per table, then only filled.

Three ways to bring a row into a table, by what its unique keys allow:

* UPSERT, ``INSERT … ON DUPLICATE KEY UPDATE``: the key that identifies rows is the only one that
  a row can collide with. Columns that only the target has keep their values.
* REPLACE, ``REPLACE INTO``: there are further unique keys. A unique value may move from row to row
  (1 gives 'a' to 2, or both swap), and which of the two arrives first is open; an upsert would
  fail on the value that is still held, or worse, update the row that holds it. REPLACE removes
  whatever holds a value of the new row. That loses nothing: all rows of a load as they are at its
  end stand side by side in the source, so the row removed is not as it is at its end. Either its
  own change is in this load and not yet written, or the target holds it from later, when an older
  stretch of the stream is applied again, and its change is in a later load.
* RENEW, ``DELETE`` and ``INSERT``: no unique key of the target lies within the key of the mapping,
  so nothing but a delete keeps a row from being there twice. Needs an index to be fast.

REPLACE makes rows anew, so columns that only the target has (a number that it gives, a note) would
fall back to their defaults each time. Where rows do not fill the whole table they are upserted,
and rivals, rows that hold one of their unique values under another key, are deleted before. Only
those are made anew then. This takes two to three times as long.

Triggers of the target see all of this: REPLACE is to them a delete and an insert.

Deletes of all tables of a call come before all its upserts. A key may be deleted under one
spelling and written under another that a case-insensitive collation takes for the same ('a' became
'A'): written first, the new row would be deleted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from setl.errors import ConfigurationError, DataError
from setl.load.mysql.fit import Guard, blank_places, guards_for, is_watched
from setl.load.mysql.literals import encode, render_columns, render_rows
from setl.model.change import Row
from setl.model.schema import Column, RowSchema
from setl.mysql.identifiers import qualified, quote

_FILLED: Final = 0.8  # of what a statement may hold, as far as its size is foreseen
_SAMPLE: Final = 16


class Strategy(Enum):
    """How rows are brought into a table; see the module's text."""

    UPSERT = "upsert"
    REPLACE = "replace"
    RENEW = "renew"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much goes into one statement.

    Attributes:
        rows: rows at most.
        size: bytes above which a statement is divided.
        packet: bytes that the server accepts at all (``max_allowed_packet``).
    """

    rows: int = 1_000
    size: int = 1 << 20
    packet: int = 16 << 20


@dataclass(frozen=True, slots=True)
class RowStatement:
    """A statement that takes any number of rows of one shape.

    Attributes:
        table: ``schema.table``, for messages.
        head: the text before the rows.
        tail: the text after them.
        between: the text between two of them.
        columns: the columns of what is rendered of a row.
        picks: indexes of these in a row; None if they are the whole row.
        key: indexes of the key in a row.
        by_key: whether the rows are keys that are looked for, see `render_rows`.
        limited: whether the statement ends with a LIMIT of the number of its rows.
        never_null: indexes in a row that must not be NULL although the server would take it.
        guards: what finds values that the table would change; their places are in `columns`.
        watched: whether only the server's notes tell that it changed a value.
        blanks: indexes in a row of ENUM columns in which empty text stands for what is no label,
            which the server takes only from a session that is not strict.
    """

    table: str
    head: str
    tail: str
    columns: tuple[Column, ...]
    picks: tuple[int, ...] | None
    key: tuple[int, ...]
    by_key: bool
    limited: bool = False
    never_null: tuple[int, ...] = ()
    guards: tuple[Guard, ...] = ()
    watched: bool = False
    blanks: tuple[int, ...] = ()
    between: str = ","

    def text(self, rows: Sequence[Row]) -> bytes:
        """The whole statement for `rows`, in UTF-8. Raises DataError as `render_rows` does."""
        for place in self.never_null:
            if None in [row[place] for row in rows]:
                raise DataError("a value that identifies the row is NULL")
        if self.picks is not None:
            rows = [tuple(row[i] for i in self.picks) for row in rows]
        held = list(zip(*rows, strict=True))
        # Rendering first: guards rely on values having the form of their kinds.
        rendered = self.between.join(render_columns(self.columns, held, for_key=self.by_key))
        for guard in self.guards:
            if guard.finds(held[guard.place]):
                name = self.columns[guard.place].name
                raise DataError(f"the target's column {name} would {guard.reason}")
        limit = f" LIMIT {len(rows)}" if self.limited else ""
        return encode(self.columns, rows, f"{self.head}{rendered}{self.tail}{limit}")

    def divided(self, rows: Sequence[Row], limits: Limits) -> Iterator[tuple[bytes, Sequence[Row]]]:
        """Statements for all `rows`, none above the limits, each with the rows it holds.

        Raises:
            DataError: as `text`, or one row alone is more than the server accepts; names the
                table and the row.
        """
        # Too long a text costs as much as one that fits, and then that of its halves.
        fitting = int(min(limits.size, limits.packet) * _FILLED) // _size_about(rows)
        step = max(1, min(limits.rows, fitting))
        for start in range(0, len(rows), step):
            yield from self._fitting(rows[start : start + step], limits)

    def _fitting(
        self, rows: Sequence[Row], limits: Limits
    ) -> Iterator[tuple[bytes, Sequence[Row]]]:
        try:
            text = self.text(rows)
        except DataError:
            self._name_row(rows)
            raise
        if len(rows) > 1 and len(text) > min(limits.size, limits.packet):
            half = len(rows) // 2
            yield from self._fitting(rows[:half], limits)
            yield from self._fitting(rows[half:], limits)
        elif len(text) > limits.packet:
            raise DataError(
                f"a row makes a statement of {len(text)} bytes; the target accepts {limits.packet}",
                hint="Raise max_allowed_packet on the target",
                table=self.table,
                key=self.key_text(rows[0]),
            )
        else:
            yield text, rows

    def _name_row(self, rows: Sequence[Row]) -> None:
        for row in rows:
            try:
                self.text((row,))
            except DataError as error:
                raise error.at(table=self.table, key=self.key_text(row)) from None

    def key_text(self, row: Row) -> str:
        """A row's key, for messages."""
        text = ", ".join(str(row[i]) for i in self.key)
        # It may be the very text that has no UTF-8 form, and is to be logged.
        return text.encode("utf-8", "backslashreplace").decode()[:200]


@dataclass(frozen=True, slots=True)
class RivalStatement(RowStatement):
    """Deletes rows that hold a unique value of the rows given, under another key.

    `columns` and `picks` are those of the unique key, then those of the key that tells rows
    apart.

    Attributes:
        unique: how many of them are the unique key's.
        names: the quoted names of both, in lists.
    """

    unique: int = 0
    names: tuple[str, str] = ("", "")

    def text(self, rows: Sequence[Row]) -> bytes:
        """See `RowStatement.text`; a LIMIT, since each row has one rival at most."""
        picked = [tuple(row[i] for i in self.picks or ()) for row in rows]
        cut, (theirs, own) = self.unique, self.names
        values = render_rows(self.columns[:cut], [row[:cut] for row in picked], for_key=True)
        keys = render_rows(self.columns[cut:], [row[cut:] for row in picked], for_key=True)
        pairs = zip(values, keys, strict=True)
        rivals = " OR ".join(f"({theirs})={value} AND NOT ({own})={key}" for value, key in pairs)
        return encode(self.columns, picked, f"{self.head}{rivals} LIMIT {len(rows)}")

    def divided(self, rows: Sequence[Row], limits: Limits) -> Iterator[tuple[bytes, Sequence[Row]]]:
        """See `RowStatement.divided`; rows with a NULL in the unique key have no rivals."""
        places = (self.picks or ())[: self.unique]
        whole = [row for row in rows if all(row[i] is not None for i in places)]
        return RowStatement.divided(self, whole, limits)


@dataclass(frozen=True, slots=True)
class TableWrites:
    """How one shape of rows is written into one table.

    Attributes:
        strategy: how its rows get into it.
        inserts: brings rows in.
        deletes: removes rows by their keys.
        rivals: to be run for the same rows before `inserts`.
    """

    strategy: Strategy
    inserts: RowStatement
    deletes: RowStatement
    rivals: tuple[RivalStatement, ...] = ()


def plan_writes(
    columns: tuple[Column, ...],
    key: tuple[int, ...],
    target: RowSchema,
    *,
    row_alias: bool = False,
) -> TableWrites:
    """Decide how rows with these columns, identified by these of them, get into a table.

    Args:
        columns: the columns of the rows, in the order of their values.
        key: indexes of the columns that identify a row.
        target: the table as its server describes it.
        row_alias: whether the server wants a name for the new row, in place of VALUES().

    Raises:
        ConfigurationError: the rows have no key, or columns that the table lacks.
    """
    # MySQL takes names of columns for the same whatever their case.
    there = {c.name.lower(): c for c in target.columns}
    missing = [c.name for c in columns if c.name.lower() not in there]
    if missing or not key:
        what = f"lacks the columns {', '.join(missing)}" if missing else "has rows without a key"
        raise ConfigurationError(
            f"the target table {what}",
            hint="Add them, or leave them out with `exclude`"
            if missing
            else "Name the columns that identify a row with `key`",
            table=target.name,
        )
    stored = [there[c.name.lower()] for c in columns]
    names = [c.name.lower() for c in stored]
    strategy, identity, rivals = _strategy(names, key, target)
    written = tuple(i for i, c in enumerate(stored) if not c.generated)
    watched = any(is_watched(columns[i], stored[i]) for i in written)
    columns = tuple(replace(c, capacity=s.capacity) for c, s in zip(columns, stored, strict=True))
    keys = tuple(columns[i] for i in key)
    table = qualified(target.schema, target.table)
    by_key = _by_key([stored[i] for i in key])
    return TableWrites(
        strategy,
        RowStatement(
            table=target.name,
            head=_insert_head(strategy, table, [stored[i].name for i in written]),
            tail=_on_duplicate(stored, key, row_alias) if strategy is Strategy.UPSERT else "",
            columns=tuple(columns[i] for i in written),
            picks=None if len(written) == len(columns) else written,
            key=key,
            by_key=False,
            # A primary key takes no NULL anyway; other unique keys take any number of them.
            never_null=() if identity and identity == _key_names(target) else key,
            guards=guards_for([columns[i] for i in written]),
            watched=watched,
            blanks=tuple(i for i in blank_places(columns) if i in written),
        ),
        RowStatement(
            table=target.name,
            head=f"DELETE FROM {table} WHERE {by_key.head}",
            tail=by_key.tail,
            columns=keys,
            picks=None,
            key=tuple(range(len(key))),
            by_key=True,
            # LIMIT cuts nothing off, since each key is one row at most. It keeps the server from
            # reading a small table from end to end, which would lock rows of other tasks.
            limited=bool(identity),
            between=by_key.between,
        ),
        tuple(_rivals(columns, stored, key, unique, target) for unique in rivals),
    )


def _rivals(
    columns: tuple[Column, ...],
    stored: Sequence[Column],
    key: tuple[int, ...],
    unique: frozenset[str],
    target: RowSchema,
) -> RivalStatement:
    places = tuple(i for i, c in enumerate(stored) if c.name.lower() in unique)
    picks = places + key
    table = qualified(target.schema, target.table)
    theirs, own = (",".join(quote(stored[i].name) for i in part) for part in (places, key))
    return RivalStatement(
        table=target.name,
        head=f"DELETE FROM {table} WHERE ",
        tail="",
        columns=tuple(columns[i] for i in picks),
        picks=picks,
        key=key,
        by_key=True,
        unique=len(places),
        names=(theirs, own),
    )


def _key_names(target: RowSchema) -> frozenset[str]:
    return frozenset(target.names[i].lower() for i in target.key)


def _strategy(
    names: Sequence[str], key: tuple[int, ...], target: RowSchema
) -> tuple[Strategy, frozenset[str], list[frozenset[str]]]:
    """How rows get into a table.

    Returns:
        The strategy; the unique key of the target that identifies a row (empty for RENEW); the
        unique keys whose rivals are to be deleted before.
    """
    mapped = frozenset(names[i] for i in key)
    others = (frozenset(target.names[i].lower() for i in u) for u in target.unique)
    unique = [u for u in (_key_names(target), *others) if u]
    # The primary key comes first. A part of the mapping's key is as good as the whole of it.
    identity = next((u for u in unique if u <= mapped), frozenset[str]())
    computed = {c.name.lower() for c in target.columns if c.generated}
    carried = frozenset(names) - computed
    if not identity:
        return Strategy.RENEW, identity, [u for u in unique if u <= carried]
    given = computed.union(names)
    # A key that holds the identity collides with the same row only; one whose columns all come
    # from the target (an AUTO_INCREMENT of its own) with none.
    rivals = [u for u in unique if not u >= identity and u & given]
    whole = carried.union(computed).issuperset(name.lower() for name in target.names)
    # What the server computes or fills in is not known here, so rivals there cannot be named.
    if rivals and (whole or not all(u <= carried for u in rivals)):
        return Strategy.REPLACE, identity, []
    return Strategy.UPSERT, identity, rivals


def _insert_head(strategy: Strategy, table: str, names: Sequence[str]) -> str:
    verb = "REPLACE" if strategy is Strategy.REPLACE else "INSERT"
    return f"{verb} INTO {table} ({','.join(map(quote, names))}) VALUES "


def _size_about(rows: Sequence[Row]) -> int:
    """Bytes that a row takes in a statement, about; at least 1. Known from some of the rows."""
    some = rows[:: max(1, len(rows) // _SAMPLE)]
    values = [value for row in some for value in row]
    texts = sum([len(value) for value in values if isinstance(value, str | bytes)])
    return 1 + (texts + 4 * len(values)) // max(1, len(some))


class _ByKey(NamedTuple):
    """The texts around keys in a condition."""

    head: str
    between: str
    tail: str


def _by_key(key: Sequence[Column]) -> _ByKey:
    names = ",".join(quote(c.name) for c in key)
    charsets = {c.capacity.charset for c in key if c.capacity is not None and c.capacity.charset}
    if len(key) > 1 and charsets - {"utf8mb4"}:
        # MariaDB 10.11 compares the bytes of a list of rows with those of the columns, whatever
        # their charsets: ('é', 1) in UTF-8 is not found in a latin1 column.
        return _ByKey(f"({names})=", f" OR ({names})=", "")
    return _ByKey(f"({names}) IN (", ",", ")")


def _on_duplicate(stored: Sequence[Column], key: tuple[int, ...], row_alias: bool) -> str:  # noqa: FBT001
    """``ON DUPLICATE KEY UPDATE`` for all columns but those of the key that cannot differ."""
    names = [
        c.name
        for i, c in enumerate(stored)
        # Under most collations the row found may spell its key in another way.
        if not c.generated and (i not in key or not c.binary_order)
    ]
    if not names:
        names = [stored[key[0]].name]
    if row_alias:
        new = quote("new row")
        sets = ",".join(f"{quote(n)}={new}.{quote(n)}" for n in names)
        return f" AS {new} ON DUPLICATE KEY UPDATE {sets}"
    sets = ",".join(f"{quote(n)}=VALUES({quote(n)})" for n in names)
    return f" ON DUPLICATE KEY UPDATE {sets}"
