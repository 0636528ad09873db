"""Gives generated columns the values that they have at the source (I25).

No statement can write a generated column: the server computes it, under the session that writes.
The source's session may have had another time zone, or may not have been strict. The binlog does
not say so, but its rows have the results. So after rows are written, the generated columns that the
server keeps are compared with the rows. Rows that differ, and rows that the server refuses for
something that a session decides, are written again under other settings until nothing differs. The
settings that served a table are tried first from then on. So a source whose sessions are all in one
time zone costs one more SELECT for each load of such a table.

Rows that no settings make right are refused, since the target would hold other values than the
source. So are rows for which the index over a virtual column differs: the server computes the
column again when it removes the index entry, under the session of that moment, and would not find
the entry.

Runs in the transaction of the load. Redelivered rows end in the same state, since they are compared
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pymysql.connections import Connection

from setl.bulk.comparing import Form, forms
from setl.errors import CollisionError, DataError
from setl.model.change import Row, TargetChanges, Value
from setl.model.schema import Column, Kind
from setl.systems.mysql.connection import UNFIT, error_number
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.load.delete_insert import DeleteInsertRows, delete_insert_rows
from setl.systems.mysql.load.row_statement import Limits
from setl.systems.mysql.load.rows import Refuse
from setl.systems.mysql.load.source_session import (
    UTC,
    SourceSession,
    UnknownZoneError,
    session_like,
)
from setl.systems.mysql.load.statements import TableWrites
from setl.systems.mysql.values.conditions import keyed_conditions
from setl.systems.mysql.values.fit import ChangedValueError
from setl.systems.mysql.values.row_values import decoded, decoders, select_list, undecoded

Part = tuple[TableWrites, TargetChanges]
"""Changes of one shape of rows, and how they are written."""

RefuseOf = Callable[[TargetChanges], Refuse]
WriteParts = Callable[[Sequence[Part], RefuseOf], None]
"""Writes the upserts of parts of one table, and says which rows are refused."""

_ADDRESSES: Final = frozenset({"uuid", "inet4", "inet6"})
_BEFORE: Final = "setl_generated"
_MOST_ROUNDS: Final = 20
_CHECK_FAILED: Final = 3819  # MySQL; a MariaDB does not check, see `setl.systems.mysql.load.writer`
_NOT_STRICT: Final = frozenset(
    {1264, 1265, 1292, 1300, 1365, 1366, 1406, 1411, 1690, *range(4035, 4041)}
)
"""What a server that is strict says of a value that a generated column cannot hold."""
_PLAIN: Final = (
    "make it a plain column at the target (ALTER TABLE … MODIFY … without GENERATED), which takes"
    " the source's values as they are; then start the pipeline again"
)
_MAKE_PLAIN: Final = f"{_PLAIN[0].upper()}{_PLAIN[1:]}"
_MAYBE_GENERATED: Final = f"If a generated column cannot hold the value: {_PLAIN}"
_NO_INDEX: Final = f"Drop the index over it at the target. Or {_PLAIN}"


class KnownSessions:
    """The settings that have served each table last. Belongs to one sink."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[tuple[str, str], SourceSession] = {}

    def of(self, table: tuple[str, str]) -> SourceSession:
        """Those to begin with."""
        return self._known.get(table, UTC)

    def served(self, table: tuple[str, str], session: SourceSession) -> None:
        """Remember them."""
        # A session that is not strict lets values pass that have to be compared one by one.
        self._known[table] = replace(session, strict=True)


@dataclass(slots=True)
class _Rows:
    """The rows of a part that are being written.

    Attributes:
        plan: how.
        change: all rows of the part.
        left_out: numbers of rows that are refused for good.
        wrong: numbers of rows that are not as they have to be, and why.
    """

    plan: TableWrites
    change: TargetChanges
    left_out: set[int] = field(default_factory=set[int])
    wrong: dict[int, DataError] = field(default_factory=dict[int, DataError])

    @property
    def numbers(self) -> Sequence[int]:
        """Of the rows that are to be written."""
        everything = range(len(self.change.upserts))
        return [n for n in everything if n not in self.left_out] if self.left_out else everything

    def rows(self, numbers: Sequence[int], session: SourceSession) -> Sequence[Row]:
        """These rows as they are written in a session."""
        picked = [self.change.upserts[n] for n in numbers]
        return session.shifted(picked, self.plan.generated.moments)


@dataclass(frozen=True, slots=True)
class GeneratedLoad:
    """Upserts of one table with generated columns, or with CHECKs of a MySQL.

    Attributes:
        connection: its session, in UTC and strict, in the load's transaction.
        write: writes rows in the way that suits the table.
        refuse: what is told of faulty rows; may raise.
        limits: of statements.
        known: what has served before.
    """

    connection: Connection[Any]
    write: WriteParts
    refuse: RefuseOf
    limits: Limits
    known: KnownSessions

    def run(self, parts: Sequence[Part]) -> None:
        """Write the upserts of these parts, which are of one table.

        Raises:
            DataError: what `refuse` raises, or rows are in each other's way indefinitely.
            pymysql.MySQLError, FatalError: as `write_rows`.
        """
        held = [_Rows(plan, change) for plan, change in parts]
        ask = cast("Any", self.connection).query
        compared = any(plan.generated.compared for plan, _ in parts)
        for _ in range(_MOST_ROUNDS):
            if compared:
                ask(f"SAVEPOINT {_BEFORE}")
            self._attempt(held, compared=compared)
            wrong = [(rows, n, error) for rows in held for n, error in rows.wrong.items()]
            for rows, number, error in wrong:
                if rows.plan.generated.any and error.hint in ("", UNFIT):
                    error.hint = ". ".join(filter(None, (error.hint, _MAYBE_GENERATED)))
                self.refuse(rows.change)(number, error)
                rows.left_out.add(number)
            if not (compared and wrong):
                return
            # What is refused stays as it was before, as everywhere else.
            ask(f"ROLLBACK TO SAVEPOINT {_BEFORE}")
        raise DataError(
            "rows that are put aside would conflict with others for ever",
            hint="Correct the first of the rows that the dead letters name",
            table=parts[0][0].inserts.table,
        )

    def _attempt(self, held: Sequence[_Rows], *, compared: bool) -> None:
        first = self.known.of(held[0].change.target)
        for rows in held:
            rows.wrong = {}
        with session_like(self.connection, first):
            self._write_all(held, first)
        if compared and not all(r.plan.fills and not r.change.partial for r in held):
            self._write_all_again(held, first)
            return
        for session in self._candidates(held, first):
            before = _count(held)
            with suppress(UnknownZoneError), session_like(self.connection, session):
                self._write_wrong(held, session)
            if _count(held) < before:
                self.known.served(held[0].change.target, session)

    def _write_all_again(self, held: Sequence[_Rows], first: SourceSession) -> None:
        """Look for settings that make the most rows right, where no row can be made again.

        A row that is deleted loses the columns that only the target has. And written over what is
        there, it keeps what the server has computed: MariaDB does so if no other column changes.
        """
        best, least = first, _count(held)
        last = first
        for session in self._candidates(held, first):
            with suppress(UnknownZoneError), session_like(self.connection, session):
                last = session
                self._write_instead(held, session)
                if _count(held) < least:
                    best, least = session, _count(held)
        if last != best:
            with session_like(self.connection, best):
                self._write_instead(held, best)
        self.known.served(held[0].change.target, best)

    def _write_instead(self, held: Sequence[_Rows], session: SourceSession) -> None:
        cast("Any", self.connection).query(f"ROLLBACK TO SAVEPOINT {_BEFORE}")
        for rows in held:
            rows.wrong = {}
        self._write_all(held, session)

    def _candidates(self, held: Sequence[_Rows], first: SourceSession) -> Iterator[SourceSession]:
        """What to try, as long as there are rows that it may help."""
        if not all(rows.plan.generated.shiftable(rows.change.columns) for rows in held):
            return
        refused = any(
            error_number(e.__cause__) in _NOT_STRICT for rows in held for e in rows.wrong.values()
        )
        for session in first.others(lenient=refused):
            if not any(_may_help(rows) for rows in held):
                return
            yield session

    def _write_all(self, held: Sequence[_Rows], session: SourceSession) -> None:
        """Write the rows in the way that suits the table, and compare."""
        numbers = [rows.numbers for rows in held]
        parts = [
            (rows.plan, _written(rows, own, session))
            for rows, own in zip(held, numbers, strict=True)
        ]
        by_change = {
            id(change): (rows, own)
            for (_, change), rows, own in zip(parts, held, numbers, strict=True)
        }

        def refuse_of(change: TargetChanges) -> Refuse:
            rows, own = by_change[id(change)]
            return lambda at, error: self._refused(rows, own[at], error)

        self.write(parts, refuse_of)
        for rows, own in zip(held, numbers, strict=True):
            if rows.plan.generated.compared or not session.strict:
                self._compare(rows, [n for n in own if n not in rows.wrong], session)

    def _refused(self, rows: _Rows, number: int, error: DataError) -> None:
        if not _is_of_a_session(rows.plan, error):
            self.refuse(rows.change)(number, error)
            rows.left_out.add(number)
        else:
            rows.wrong[number] = error

    def _write_wrong(self, held: Sequence[_Rows], session: SourceSession) -> None:
        """Make rows again that are not right, and compare."""
        numbers = [[n for n in rows.wrong if _helps(rows, n)] for rows in held]
        before = [dict(rows.wrong) for rows in held]

        def refuse_of(rows: _Rows, own: Sequence[int]) -> Refuse:
            return lambda index, error: rows.wrong.setdefault(own[index], error) and None

        parts: list[DeleteInsertRows] = []
        for rows, own in zip(held, numbers, strict=True):
            for number in own:
                del rows.wrong[number]
            upserts = rows.rows(own, session)
            parts.append(
                DeleteInsertRows(
                    rows.plan,
                    rows.change.key,
                    upserts,
                    refuse_of(rows, own),
                    # Nothing is deleted whose other columns would be lost.
                    rows.change.partial or not rows.plan.fills,
                )
            )
        delete_insert_rows(self.connection, parts, self.limits)
        for rows, own, errors in zip(held, numbers, before, strict=True):
            self._compare(rows, [n for n in own if n not in rows.wrong], session)
            for number in own:
                if number in rows.wrong:
                    rows.wrong[number] = errors[number]  # the first one says most

    def _compare(self, rows: _Rows, numbers: Sequence[int], session: SourceSession) -> None:
        """Find the rows among these whose columns do not have the values that they say."""
        generated = rows.plan.generated
        indexes = generated.compared
        if not session.strict:
            indexes = _changeable(rows.change.columns, generated.stored)
        if not (indexes and numbers):
            return
        upserts = rows.rows(numbers, session)
        for number, differing in _differences(
            self.connection, rows.plan, rows.change, upserts, indexes
        ):
            rows.wrong[numbers[number]] = _other_value(
                rows.plan, rows.change.upserts[numbers[number]], differing
            )


def _written(rows: _Rows, numbers: Sequence[int], session: SourceSession) -> TargetChanges:
    """The changes with these rows only, as they are written in a session."""
    change = rows.change
    if len(numbers) == len(change.upserts) and not session.offset:
        return change
    versions = change.upsert_versions
    return replace(
        change,
        upserts=list(rows.rows(numbers, session)),
        upsert_versions=[versions[n] for n in numbers] if versions else [],
    )


class GeneratedValueError(ChangedValueError):
    """The target computes another value for a generated column than the source has.

    Attributes:
        settable: whether another session may make it right.
    """

    settable = True


def _other_value(plan: TableWrites, row: Row, columns: Sequence[Column]) -> GeneratedValueError:
    indexed = [column.name for column in columns if column.materialized == "indexed"]
    names = ", ".join(indexed or [column.name for column in columns])
    error = GeneratedValueError(
        f"the target computes another value for {names} than the source has; it depends on the"
        " session that writes the row, such as on its time zone or sql_mode",
        hint=_NO_INDEX if indexed else _MAKE_PLAIN,
        table=plan.inserts.table,
        key=plan.inserts.key_text(row),
    )
    error.settable = not indexed
    return error


def _is_of_a_session(plan: TableWrites, error: DataError) -> bool:
    """Whether a row that is refused may be taken under other settings."""
    number = error_number(error.__cause__)
    if number == _CHECK_FAILED:
        return True
    if isinstance(error, CollisionError):
        return plan.generated.in_unique_keys
    return plan.generated.any and number in _NOT_STRICT


def _count(held: Sequence[_Rows]) -> int:
    return sum(len(rows.wrong) for rows in held)


def _helps(rows: _Rows, number: int) -> bool:
    error = rows.wrong[number]
    return not isinstance(error, GeneratedValueError) or error.settable


def _may_help(rows: _Rows) -> bool:
    return any(_helps(rows, number) for number in rows.wrong)


def _differences(
    connection: Connection[Any],
    plan: TableWrites,
    change: TargetChanges,
    rows: Sequence[Row],
    indexes: Sequence[int],
) -> Iterator[tuple[int, list[Column]]]:
    """Numbers of rows that the table has with other values in these columns, and in which."""
    stored = plan.generated.stored
    key = [stored[i] for i in change.key]
    columns = [stored[i] for i in indexes]
    compared = forms(columns)
    keys = [tuple(row[i] for i in change.key) for row in rows]
    found = _read(connection, change.target, key, columns, keys)
    for number, row in enumerate(rows):
        values = found.get(keys[number])
        if values is None:
            # The server writes the key in another way than the row, such as with more digits.
            values = next(
                iter(_read(connection, change.target, key, columns, [keys[number]]).values()), None
            )
        given = [row[i] for i in indexes]
        if values is None:
            yield number, columns
        elif list(values) != given:  # in whatever form
            differing = [
                column
                for column, form, one, other in zip(columns, compared, given, values, strict=True)
                if not _equal(form, one, other)
            ]
            if differing:
                yield number, differing


def _changeable(columns: Sequence[Column], stored: Sequence[Column]) -> tuple[int, ...]:
    """Columns of which a session that is not strict may have made another value.

    An address or UUID of the row is bytes, and that of the table reads as text.
    """
    return tuple(
        i
        for i, (given, held) in enumerate(zip(columns, stored, strict=True))
        if given.kind is not Kind.BINARY
        or held.capacity is None
        or held.capacity.type not in _ADDRESSES
    )


def _equal(form: Form, one: Value, other: Value) -> bool:
    if one is None or other is None:
        return one is other
    return form(one) == form(other)


def _read(
    connection: Connection[Any],
    table: tuple[str, str],
    key: Sequence[Column],
    columns: Sequence[Column],
    keys: Sequence[Row],
) -> dict[Row, Row]:
    """What a table has in some columns, by key."""
    selected = [*key, *columns]
    decode, found = decoders(selected), dict[Row, Row]()
    name = ".".join(map(identifier, table))
    head = f"SELECT {select_list(selected)} FROM {name} WHERE "
    with undecoded(connection) as cursor:
        for condition in keyed_conditions(key, keys):
            cursor.execute(head + condition.sql, condition.values)
            for raw in cursor.fetchall():
                row = decoded(decode, raw)
                found[row[: len(key)]] = row[len(key) :]
    return found
