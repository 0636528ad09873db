"""A statement that takes any number of rows of one shape, and how much goes into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from setl.clock import SystemClock
from setl.codec.charset import in_characters
from setl.codec.columns.column_rows import ColumnRows
from setl.errors import DataError
from setl.load.timings import Timings
from setl.model.change import Row
from setl.model.labels import is_marked, shown
from setl.model.schema import Column, Kind
from setl.printable import printable
from setl.systems.mysql.load.columns.fit import Fit, rows_at_once
from setl.systems.mysql.load.columns.literals import rendered_columns
from setl.systems.mysql.load.packed import Packed, packed_rows
from setl.systems.mysql.values.conditions import is_compared_apart
from setl.systems.mysql.values.fit import ChangedValueError, Guard, Numbers
from setl.systems.mysql.values.literals import encode, literal_of_bytes, render_columns
from setl.systems.mysql.values.lost_text import is_lost

_FILLED: Final = 0.8  # of what a statement may hold, as far as its size is foreseen
_SAMPLE: Final = 16
_NO_LABEL: Final = 1 << 64  # no SET has a number as large


@dataclass(frozen=True, slots=True)
class Limits:
    """How much goes into one statement.

    Attributes:
        rows: rows at most.
        size: bytes above which a statement is divided.
        bulk_rows: fewer are not worth a statement that has to be prepared, nor a transaction that
            may have to be repeated.
        packet: bytes that the server accepts at all (``max_allowed_packet``).
        timings: measures statements.
    """

    rows: int = 1_000
    size: int = 1 << 20
    packet: int = 16 << 20
    bulk_rows: int = 8
    timings: Timings = field(default_factory=lambda: Timings(SystemClock()), compare=False)


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
        by_key: whether the rows are keys that are looked for, see `render_columns`.
        limited: whether the statement ends with a LIMIT of the number of its rows.
        never_null: indexes in a row that must not be NULL although the server would take it.
        guards: what finds values that the table would change; their indexes are in `columns`.
        watched: whether only the server's notes tell that it changed a value.
        computed: the table's columns that the statement has no values for, in lower case:
            generated ones, and what rows lack.
        blanks: indexes in a row of ENUM columns, each with how the row holds what is no label,
            which the server takes only from a session that is not strict.
        numbers: makes numbers of labels that text may not find; their indexes are in `columns`.
        counts: of rows that lack columns of the table, how many are there by their keys.
        bytewise: the quoted names of the columns rendered, if keys are to be found byte by byte,
            else empty.
        exact_json: see `setl.systems.mysql.values.json_literal.json_literal`.
        by_bytes: gets the names of columns whose text was written as its bytes, which is right as
            long as they have the same character set.
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
    computed: frozenset[str] = frozenset()
    blanks: tuple[tuple[int, str], ...] = ()
    numbers: tuple[Numbers, ...] = ()
    between: str = ","
    bytewise: tuple[str, ...] = ()
    counts: RowStatement | None = None
    exact_json: bool = False
    by_bytes: set[str] = field(default_factory=set[str], compare=False)

    def text(self, rows: Sequence[Row]) -> bytes:
        """The whole statement for `rows`, in UTF-8. Raises DataError as `render_columns` does."""
        pieces, held = self.rendered(rows)
        tail = f"{self.tail}{self._by_bytes(held)}" if self.bytewise else self.tail
        limit = f" LIMIT {len(rows)}" if self.limited else ""
        text = f"{self.head}{self.between.join(pieces)}{tail}{limit}"
        try:
            return text.encode()
        except UnicodeEncodeError:
            held = self._in_characters(held)
            pieces = self._pieces(held, by_bytes=True)
            text = f"{self.head}{self.between.join(pieces)}{tail}{limit}"
            self.by_bytes.update(
                column.name
                for column, values in zip(self.columns, held, strict=True)
                if any(map(is_lost, values))
            )
            return encode(self.columns, held, text)

    def rendered(self, rows: Sequence[Row]) -> tuple[list[str], list[Sequence[Any]]]:
        """Each row as the statement has it, and the values of each column.

        Raises:
            DataError: as `render_columns` does, or the target would change a value.
        """
        held = self._values_of(rows)
        # Rendering first: guards rely on values having the form of their kinds.
        pieces = self._pieces(held)
        self._refuse_changed(held)
        return pieces, held

    def _pieces(self, held: Sequence[Sequence[Any]], *, by_bytes: bool = False) -> list[str]:
        return render_columns(
            self.columns,
            held,
            for_key=self.by_key,
            by_bytes=by_bytes,
            exact_json=self.exact_json,
        )

    def _in_characters(self, held: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """Text that goes to a column of another character set by its characters, but not in keys.

        Two rows whose keys only their encodings distinguish would become one.
        """
        picks = self.picks or range(len(self.columns))
        return [
            values
            if self.by_key or column_index in self.key
            else [in_characters(v, unless=_charset_of(column)) for v in values]
            for column_index, column, values in zip(picks, self.columns, held, strict=True)
        ]

    @property
    def takes_parameters(self) -> bool:
        """Whether the same statement with a parameter for each value does the same for a row."""
        return not (self.by_key or self.watched or self.counts)

    @property
    def with_parameters(self) -> str:
        """The statement for one row, with a parameter for each value."""
        return f"{self.head}({','.join('?' * len(self.columns))}){self.tail}"

    def packed(self, rows: Sequence[Row]) -> Packed:
        """Each row as parameters of the statement.

        Raises:
            DataError: as `rendered`, or a value has no binary form.
        """
        held = self._values_of(rows)
        packed = packed_rows(self.columns, held)
        self._refuse_changed(held)
        return packed

    def fit(self) -> Fit:
        """What it asks of the values of rows that are packed by column."""
        guards: dict[int, list[Guard]] = {}
        for guard in self.guards:
            guards.setdefault(guard.column_index, []).append(guard)
        return Fit(
            self.columns,
            range(len(self.columns)) if self.picks is None else self.picks,
            self.never_null,
            guards,
            {numbers.column_index: numbers for numbers in self.numbers},
            self.exact_json,
        )

    def _values_of(self, rows: Sequence[Row]) -> list[Sequence[Any]]:
        """The values of each column; DataError if one is NULL that must not be."""
        for column_index in self.never_null:
            if None in [row[column_index] for row in rows]:
                raise DataError("a value that identifies the row is NULL")
        if self.picks is not None:
            rows = [tuple(row[i] for i in self.picks) for row in rows]
        held: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for numbers in self.numbers:
            try:
                # A key with a label that the table lacks is no row's.
                found = numbers.of(
                    held[numbers.column_index], lacking=_NO_LABEL if self.by_key else None
                )
            except LookupError:
                raise self._lacking(numbers, held[numbers.column_index]) from None
            held[numbers.column_index] = found
        return held

    def blanks_in(self, rows: Sequence[Row]) -> int:
        """How many values of some rows are ENUM's for what is no label."""
        if isinstance(rows, ColumnRows):
            return sum(len(rows.numbers_of(*blank)) for blank in self.blanks)
        # One loop over all rows: a call for each of them takes ten times as long.
        return sum(
            row[column_index] == blank for column_index, blank in self.blanks for row in rows
        )

    def blank_rows(self, rows: Sequence[Row]) -> set[int]:
        """Numbers of the rows that have such a value."""
        if isinstance(rows, ColumnRows):
            return {n for blank in self.blanks for n in rows.numbers_of(*blank)}
        return {
            n
            for column_index, blank in self.blanks
            for n, row in enumerate(rows)
            if row[column_index] == blank
        }

    def _lacking(self, numbers: Numbers, values: Sequence[Any]) -> DataError:
        value = numbers.first_without_label(values)
        if is_marked(value):
            return _unclear(self.columns[numbers.column_index], value)
        name = self.columns[numbers.column_index].name
        return ChangedValueError(f"the target's column {name} would lack that label")

    def _refuse_changed(self, held: Sequence[Sequence[Any]]) -> None:
        for guard in self.guards:
            if guard.finds(held[guard.column_index]):
                marked = next(filter(is_marked, held[guard.column_index]), None)
                if marked is not None:
                    raise _unclear(self.columns[guard.column_index], marked)
                name = self.columns[guard.column_index].name
                raise ChangedValueError(f"the target's column {name} would {guard.reason}")

    def _by_bytes(self, held: Sequence[Sequence[Any]]) -> str:
        """A second condition, which the index does not know: text is what its bytes are."""
        names: list[str] = []
        literals: list[Sequence[str]] = []
        for name, column, values in zip(self.bytewise, self.columns, held, strict=True):
            charset = _charset_of_lost(column, values)
            if column.kind is not Kind.TEXT:
                names.append(name)
                rendered = render_columns((column,), (values,), for_key=True)
                literals.append([literal[1:-1] for literal in rendered])
            elif not charset:
                names.append(bytes_of(name))
                literals.append([_utf8(value) for value in values])
            else:
                # In UTF-8, all text is one that has no character there.
                names.append(f"CAST({name} AS BINARY)")
                literals.append([_in_charset(value, charset) for value in values])
        keys = [f"({','.join(row)})" for row in zip(*literals, strict=True)]
        found = f"({','.join(names)})"
        if any(is_compared_apart(column) for column in self.columns):
            return f" AND ({' OR '.join([f'{found}={key}' for key in keys])})"
        return f" AND {found} IN ({','.join(keys)})"

    def divided(self, rows: Sequence[Row], limits: Limits) -> Iterator[tuple[bytes, Sequence[Row]]]:
        """Statements for all `rows`, none above the limits, each with the rows it holds.

        Raises:
            DataError: as `text`, or one row alone is more than the server accepts; names the
                table and the row.
        """
        if isinstance(rows, ColumnRows):
            yield from self._divided_columns(rows, limits)
            return
        # Too long a text costs as much as one that fits, and then that of its halves.
        fitting = int(min(limits.size, limits.packet) * _FILLED) // size_about(rows)
        step = max(1, min(limits.rows, fitting))
        for start in range(0, len(rows), step):
            yield from self._fitting(rows[start : start + step], limits)

    def _divided_columns(
        self, rows: ColumnRows, limits: Limits
    ) -> Iterator[tuple[bytes, Sequence[Row]]]:
        head, tail = self.head.encode(), self.tail.encode()
        most = min(limits.size, limits.packet) - len(head) - len(tail)
        fit, step = self.fit(), rows_at_once(rows)
        for first in range(0, len(rows), step):
            part = rows.part(first, first + step)
            made = rendered_columns(fit, part, b",") if self.between == "," else None
            if made is None or made.longest > most:
                yield from self.divided(list(part), limits)
                continue
            for start, stop in made.divided(limits.rows, most):
                # What stands behind the last row is between two rows.
                text = b"".join((head, made.between(start, stop)[:-1], tail))
                yield text, part.part(start, stop)

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
        # It may be the very text that has no UTF-8 form, and is to be logged.
        return printable(", ".join(shown(str(row[i])) for i in self.key))[:200]


def _unclear(column: Column, value: str) -> ChangedValueError:
    return ChangedValueError(
        f"column {column.name} is {shown(value)} at the source, where another value has that"
        " text, too, and the target's column does not distinguish them",
        hint="Give the target's column the same labels in the same order, or correct the row at"
        " the source",
    )


def _charset_of(column: Column) -> str:
    return column.capacity.charset if column.capacity is not None else ""


def _charset_of_lost(column: Column, values: Sequence[Any]) -> str:
    """The column's character set, if any of these keys is text that has no UTF-8 form; else ""."""
    if column.kind is not Kind.TEXT or column.capacity is None or not any(map(is_lost, values)):
        return ""
    return column.capacity.charset


def _utf8(value: str) -> str:
    # What is no UTF-8 is refused with the whole statement.
    return f"x'{value.encode('utf-8', 'surrogatepass').hex()}'"


def _in_charset(value: str, charset: str) -> str:
    """SQL for the bytes of a key in a character set."""
    own = literal_of_bytes(value, charset)
    return (
        f"CAST({own} AS BINARY)"
        if own
        else f"CAST(CONVERT(_utf8mb4 {_utf8(value)} USING {charset}) AS BINARY)"
    )


def bytes_of(value: str) -> str:
    """SQL for the bytes of a text in UTF-8, whatever its character set and collation."""
    return f"CAST(CONVERT({value} USING utf8mb4) AS BINARY)"


def size_about(rows: Sequence[Row]) -> int:
    """Bytes that a row takes in a statement, about; at least 1. Known from some of the rows."""
    if isinstance(rows, ColumnRows):
        return 1 + rows.mean_bytes
    some = rows[:: max(1, len(rows) // _SAMPLE)]
    values = [value for row in some for value in row]
    texts = sum([len(value) for value in values if isinstance(value, str | bytes)])
    return 1 + (texts + 4 * len(values)) // max(1, len(some))
