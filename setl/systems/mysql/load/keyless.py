"""Writes the changes of tables without a key: each of them once, counted, in stream order.

Such a table may hold a row several times. Rows that agree in all values are the same to everybody,
so a table is what it has of each row, and how often. An insert is one more, a delete one less, and
an update one less of what the row was and one more of what it is. What a load makes of a table is
the sum of these, whatever their order (`net`). So first goes what is less, then comes what is more:
a unique value (of a column that takes NULL) that moves between two rows is free when it is taken.

Why it is right
    A row more is a row more each time. So each change has to be applied once, and not merely end
    in the same state: `setl.systems.mysql.sink.loaded.beyond_what_is_loaded` leaves out what the
    table has already, told by a number that is kept in the same transaction. One task writes the
    table, so what it has is a beginning of the stream, never more.

    A row that goes is told by all of its values, as a replica of the server tells it: NULL is NULL,
    text is its bytes, 0 is not -0. Rows that only differ in what a collation, or a number's digits,
    leaves out are two rows. If the target has less of a row than is to go, somebody has written to
    it, or it was another table to begin with: that is an error. Nothing else is taken in its place.

Columns that only the target has are filled again, since an update is a row that goes and one that
comes. The conditions of a delete begin with what an index of the target can answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

from pymysql.connections import Connection

from setl import failpoints
from setl.errors import ConfigurationError, DataError
from setl.model.change import Row, TargetChanges, Value
from setl.model.schema import Column, Kind
from setl.systems.mysql.connection import is_mariadb, waiting
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.load.row_statement import Limits, bytes_of
from setl.systems.mysql.load.rows import Refuse, write_rows
from setl.systems.mysql.load.statements import TableWrites
from setl.systems.mysql.values.fit import Numbers, as_numbers
from setl.systems.mysql.values.literals import encode, render_columns

Part = tuple[TableWrites, TargetChanges]
"""Changes of one shape of rows, and how they are written."""

_AS_TEXT: Final = frozenset({Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON})
_INDEXED_UP_TO: Final = 256  # characters of a text that are said once more, for an index
_NO_LABEL: Final = 1 << 64
_REMOVAL_SECONDS: Final = 4 * 3600.0  # that the rows of a table may take to be removed

MISSING_ROW: Final = (
    "Somebody has written to the target's table, or it had not the source's rows when the pipeline"
    " began. Load the table (`setl load --table`), or give it the row that is missing, with all of"
    " its columns; then start the pipeline again. Or leave the table out with `except`"
)


class Net(NamedTuple):
    """What changes make of a table.

    Attributes:
        more: rows that come, as often as they do, in stream order.
        less: rows that go, how often, and the version of the change that says so first.
    """

    more: list[Row]
    less: list[tuple[Row, int, int]]


def net(changes: TargetChanges) -> Net:
    """The sum of changes of rows of one shape."""
    floats = [i for i, column in enumerate(changes.columns) if column.kind is Kind.FLOAT]
    same = _distinguishable(floats)
    counts: dict[Row, int] = {}
    for row in changes.upserts:
        comparable = same(row)
        counts[comparable] = counts.get(comparable, 0) + 1
    for row in changes.deletes:
        comparable = same(row)
        counts[comparable] = counts.get(comparable, 0) - 1
    more: list[Row] = []
    for row in reversed(changes.upserts):  # the later ones are there in the end
        comparable = same(row)
        if counts[comparable] > 0:
            counts[comparable] -= 1
            more.append(row)
    less: list[tuple[Row, int, int]] = []
    for row, version in zip(changes.deletes, changes.delete_versions, strict=True):
        comparable = same(row)
        if counts[comparable] < 0:
            less.append((row, -counts[comparable], version))
            counts[comparable] = 0
    return Net(more[::-1], less)


def _distinguishable(floats: Sequence[int]) -> Callable[[Row], Row]:
    """Makes of a row what is equal for equal rows only: to Python, 0.0 is -0.0."""
    if not floats:
        return lambda row: row

    def comparable(row: Row) -> Row:
        signs = tuple(str(row[i]) for i in floats)
        return (*row, *signs)

    return comparable


@dataclass(frozen=True, slots=True)
class KeylessLoad:
    """Changes of one shape of rows of a table without a key, inside the load's transaction.

    Attributes:
        connection: its session.
        plan: how rows are written.
        changes: those that the table does not have yet.
        limits: of statements.
        refuse: is told of a row that does not go in; raises.
    """

    connection: Connection[Any]
    plan: TableWrites
    changes: TargetChanges
    limits: Limits
    refuse: Refuse

    def run(self) -> None:
        """Write.

        Raises:
            ConfigurationError: the table has columns that it computes, and keeps.
            DataError: it lacks a row that is to go, or refuses one.
            pymysql.MySQLError, FatalError: as `write_rows`.
        """
        refuse_computed(self.plan)
        result = net(self.changes)
        # -0 is none to MariaDB.
        zeros = not is_mariadb(self.connection)
        for row, times, version in result.less:
            try:
                self._remove(row, times, signed_zeros=zeros)
            except DataError as error:
                error.at(version=version)
                raise
        write_rows(self.connection, self.plan.inserts, result.more, self.limits, self.refuse)

    def _remove(self, row: Row, times: int, *, signed_zeros: bool) -> None:
        changes = self.changes
        statement = removal(self.plan, changes, row, times, signed_zeros=signed_zeros)
        if len(statement) > self.limits.packet:
            raise DataError(
                f"to find a row takes a statement of {len(statement)} bytes; the target accepts"
                f" {self.limits.packet}",
                hint="Raise max_allowed_packet on the target",
                table=self.plan.inserts.table,
                key=self.plan.inserts.key_text(row),
            )
        with self.limits.timings.one():
            cast("Any", self.connection).query(statement)
        gone = cast("Any", self.connection).affected_rows()
        if gone != times:
            raise DataError(
                f"the source, whose table has no key, has changed or deleted {times} of a row, and"
                f" the target has {gone} of it",
                hint=MISSING_ROW,
                table=self.plan.inserts.table,
                key=self.plan.inserts.key_text(row),
            )


def refuse_computed(plan: TableWrites) -> None:
    """Refuse a target whose columns may be others than the source's.

    Raises:
        ConfigurationError: the table has columns that it computes, and keeps.
    """
    if plan.generated.compared:
        raise ConfigurationError(
            "the source's table has no key, and the target's computes columns that it keeps or"
            " has in an index: whether they are what they are at the source is unknown of"
            " a row that may be there several times",
            hint="Give both tables a primary key, or make these columns plain ones at the"
            " target (ALTER TABLE … MODIFY … without GENERATED), or name columns that are"
            " unique under `key` in its mapping",
            table=plan.inserts.table,
        )


def replace_all(
    connection: Connection[Any],
    plan: TableWrites,
    target: tuple[str, str],
    rows: Iterable[Sequence[Row]],
    limits: Limits,
) -> int:
    """Remove all rows of a table, and write others; inside the load's transaction.

    Args:
        connection: its session.
        plan: how rows are written.
        target: the table.
        rows: some at a time.
        limits: of statements.

    Returns:
        How many rows were written.

    Raises:
        SetlError, pymysql.MySQLError: as `write_rows`, and what reading raises.
    """
    refuse_computed(plan)
    with waiting(connection, _REMOVAL_SECONDS), limits.timings.one():
        cast("Any", connection).query(f"DELETE FROM {qualified(*target)}")
    count = 0
    for some in rows:
        failpoints.reached("tables.read")
        write_rows(connection, plan.inserts, some, limits, _refuse)
        count += len(some)
    return count


def _refuse(_: int, error: DataError) -> None:
    raise error


class KeylessParts(NamedTuple):
    """Changes of tables without a key among those of a transaction, in stream order.

    A table may get a key, or lose it, within a load: then they are of one of its two ends.

    Attributes:
        first: what is written before the changes of tables with keys.
        last: what is written after them.
    """

    first: list[Part]
    last: list[Part]


def keyless_apart(parts: Sequence[Part]) -> tuple[KeylessParts, list[Part]]:
    """The changes of tables without a key, and the others in their order."""
    keyed = [part for part in parts if not part[1].keyless]
    apart = KeylessParts([], [])
    for part in sorted((part for part in parts if part[1].keyless), key=_first_version):
        target = part[1].target
        before = [_first_version(other) for other in keyed if other[1].target == target]
        late = bool(before) and min(before) < _first_version(part)
        (apart.last if late else apart.first).append(part)
    return apart, keyed


def _first_version(part: Part) -> int:
    return min([*part[1].upsert_versions, *part[1].delete_versions], default=0)


def removal(
    plan: TableWrites, changes: TargetChanges, row: Row, times: int, *, signed_zeros: bool
) -> bytes:
    """The statement that removes a row some times, in UTF-8.

    Raises:
        DataError: a value is not of the form that its kind has.
    """
    stored_columns = plan.generated.stored
    fitted = [
        replace(column, capacity=stored.capacity)
        for column, stored in zip(changes.columns, stored_columns, strict=True)
    ]
    columns, numbers = as_numbers(fitted)
    number_of = {each.column_index: each for each in numbers}
    parts: list[str] = []
    for column_index, (column, stored) in enumerate(zip(columns, stored_columns, strict=True)):
        if stored.generated:
            continue
        value = _numbered(row[column_index], number_of.get(column_index))
        parts += _conditions(quote(stored.name), column, stored, value, signed_zeros=signed_zeros)
    table = qualified(*changes.target)
    text = f"DELETE FROM {table} WHERE {' AND '.join(parts)} LIMIT {times}"
    return encode(changes.columns, [[value] for value in row], text)


def _numbered(value: Value, numbers: Numbers | None) -> Value:
    if numbers is None or value is None:
        return value
    return cast("int", numbers.of([value], lacking=_NO_LABEL)[0])


def _conditions(
    name: str, column: Column, stored: Column, value: Value, *, signed_zeros: bool
) -> list[str]:
    """What is true of a column of the rows that hold this value, and of no others."""
    if value is None:
        return [f"{name} IS NULL"]
    (literal,) = render_columns([column], [[value]], for_key=True)
    held = stored.capacity
    if held is not None and held.type == "json":
        return [f"CAST({name} AS CHAR)<=>CAST(CAST({literal} AS JSON) AS CHAR)"]
    if stored.kind is Kind.GEOMETRY or (held is not None and held.type == "vector"):
        # MySQL compares neither of them with bytes.
        return [f"HEX({name})<=>HEX({literal})"]
    # By the largest number of a FLOAT(M,D), MySQL finds a row in an expression only.
    bounded = held is not None and held.digits
    found = f"{name}*1e0<=>{literal}" if bounded else f"{name}<=>{literal}"
    if value == 0 and isinstance(value, float) and signed_zeros:
        signed = int(str(value).startswith("-"))
        return [found, f"(LEFT(CAST({name} AS CHAR),1)='-')={signed}"]
    is_text = stored.kind is Kind.TEXT and held is not None and held.charset
    if not (is_text and isinstance(value, str) and column.kind in _AS_TEXT):
        return [found]
    exact = f"{bytes_of(name)}<=>x'{value.encode('utf-8', 'surrogatepass').hex()}'"
    return [found, exact] if len(value) <= _INDEXED_UP_TO else [exact]
