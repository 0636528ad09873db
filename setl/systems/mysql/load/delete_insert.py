"""Makes rows again: deletes them by their keys, and inserts them.

A row that is refused then stays as it was, as everywhere else: the stream has not removed it. That
it is refused only shows once it is deleted, so all is undone and done again without it. What stays
may conflict with others, which are refused then, too. Where unique values have moved along many
rows, that could go on for as many rounds, and end with as many dead letters: it is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pymysql.connections import Connection

from setl.errors import DataError
from setl.model.change import Row
from setl.systems.mysql.load.row_statement import Limits
from setl.systems.mysql.load.rows import HALF_A_ROW, Refuse, write_or_raise, write_rows
from setl.systems.mysql.load.statements import Strategy, TableWrites

_BEFORE: Final = "setl_anew"
_MOST_ROUNDS: Final = 20
_NOT_FOUND: Final = (
    "no unique key of the target finds this row, so it would be made again, and the record of its"
    " update does not say all columns"
)


@dataclass(frozen=True, slots=True)
class DeleteInsertRows:
    """Rows of one shape.

    Attributes:
        plan: how they are written.
        key: positions of their keys.
        rows: the rows.
        refuse: what is told of those that are refused; may raise.
        partial: whether they lack columns of their table. Nothing is deleted for those.
    """

    plan: TableWrites
    key: tuple[int, ...]
    rows: Sequence[Row]
    refuse: Refuse
    partial: bool = False


def delete_insert_rows(
    connection: Connection[Any], parts: Sequence[DeleteInsertRows], limits: Limits
) -> None:
    """Delete all rows, then insert them, in the caller's transaction.

    Raises:
        DataError: what `DeleteInsertRows.refuse` raises, or rows are in each other's way
            indefinitely.
        pymysql.MySQLError, FatalError: as `write_rows`.
    """
    left = [_whole(part) for part in parts]
    ask = cast("Any", connection).query
    rounds, refused = 0, list[DataError]()
    while any(left):
        rounds += 1
        if rounds > _MOST_ROUNDS:
            raise _not_put_aside(refused[0])
        ask(f"SAVEPOINT {_BEFORE}")
        for part, numbers in zip(parts, left, strict=True):
            if not part.partial:
                _clear(connection, part, numbers, limits)
        remaining = [
            _insert(connection, part, numbers, limits, refused)
            for part, numbers in zip(parts, left, strict=True)
        ]
        if remaining == left:
            return
        ask(f"ROLLBACK TO SAVEPOINT {_BEFORE}")
        left = remaining


def _not_put_aside(first: DataError) -> DataError:
    return DataError(
        f"{first.message}; it is not put aside, since what stays for it conflicts with another"
        " row, and so on",
        hint=first.hint,
        **first.where,
    )


def _whole(part: DeleteInsertRows) -> list[int]:
    """The numbers of the rows that can be made again; the others are refused."""
    if not (part.partial and part.plan.strategy is Strategy.DELETE_INSERT):
        return list(range(len(part.rows)))
    for number, row in enumerate(part.rows):
        where = {"table": part.plan.inserts.table, "key": part.plan.inserts.key_text(row)}
        part.refuse(number, DataError(_NOT_FOUND, hint=HALF_A_ROW, **where))
    return []


def _clear(
    connection: Connection[Any], part: DeleteInsertRows, numbers: Sequence[int], limits: Limits
) -> None:
    # A row that lacks its key is found when it is to be written.
    keys = [tuple(part.rows[n][i] for i in part.key) for n in numbers]
    keys = [k for k in keys if None not in k]
    write_or_raise(connection, part.plan.deletes, keys, limits)


def _insert(
    connection: Connection[Any],
    part: DeleteInsertRows,
    numbers: Sequence[int],
    limits: Limits,
    refused: list[DataError],
) -> list[int]:
    """Insert rows; returns the numbers of those that are not refused, and tells why of others."""
    left_out: set[int] = set()

    def take(index: int, error: DataError) -> None:
        part.refuse(numbers[index], error)
        left_out.add(numbers[index])
        refused.append(error)

    write_rows(connection, part.plan.inserts, [part.rows[n] for n in numbers], limits, take)
    return [n for n in numbers if n not in left_out]
