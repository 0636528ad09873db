"""Carries out what foreign keys do at the source when parents are deleted or change their keys.

The target's tables have the same keys. A sink's session does not check foreign keys, so that
nothing acts. Here they are checked for single statements, inside the load's transaction:

- Of a deleted parent, the children are found by the values that they refer to, not through the
  parent's row, which may be missing. They are deleted, or get NULL, with keys checked, so that the
  server goes on from there as the source's did: to their own children, and theirs.
- A parent whose key changes is updated with keys checked, and the server changes its children.

All other changes of the load are written without checks, deletes before the actions: rows that the
source had deleted itself, so that nothing referred to a parent any more, are in nobody's way.

Nothing of this starts triggers, and an action leaves columns alone that the server sets in updates
(``ON UPDATE CURRENT_TIMESTAMP``), as at the source.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import pymysql
from pymysql.connections import Connection

from setl.errors import FatalError
from setl.model.change import Row, TargetChanges
from setl.model.key_action import KeyAction, KeyMove, Name
from setl.model.schema import RowSchema
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.load.row_statement import Limits, RowStatement
from setl.systems.mysql.load.statements import TableWrites, by_key, moving

Part = tuple[TableWrites, TargetChanges]
"""Changes of one shape of rows, and how they are written."""

_REFERRED: Final = 1451
_OTHERS: Final = (
    "The target has rows that the source has not, or not any more: compare the tables with `setl"
    " verify`, remove them, and start the pipeline again"
)


def acts_on(parts: Iterable[Part], actions: Sequence[KeyAction]) -> list[tuple[Part, KeyAction]]:
    """The keys that act on deletes, each with the deletes of its parent."""
    return [
        ((plan, change), action)
        for plan, change in parts
        if change.deletes and not change.keyless
        for action in actions
        if action.on_delete and action.parent == change.target
    ]


def delete_children(
    connection: Connection[Any],
    acting: Iterable[tuple[Part, KeyAction]],
    described: Callable[[Name], RowSchema],
    limits: Limits,
) -> None:
    """Delete the children of deleted rows, or set their columns to NULL.

    Args:
        connection: in the load's transaction.
        acting: see `acts_on`.
        described: tells what a child is like.
        limits: of statements.

    Raises:
        FatalError: something else refers to a child row, or the key is not that of the rows.
        DataError: a key cannot be written into a statement.
        pymysql.MySQLError: any other error of the server.
    """
    with _checking(connection):
        for (plan, change), action in acting:
            indexes = _indexes(change, action.parent_columns)
            statement = _found_by(plan, change, indexes, action.columns, _what(action, described))
            keys = list(dict.fromkeys(tuple(row[i] for i in indexes) for row in change.deletes))
            _run(connection, statement, keys, limits)


def move_keys(
    connection: Connection[Any], parts: Sequence[Part], moves: Sequence[KeyMove], limits: Limits
) -> None:
    """Change the keys of parents, one after another; raises as `delete_children`.

    One that is there already has been changed before: the batch was applied, and comes again.
    """
    with _checking(connection):
        for move in moves:
            names = [column.name for column in move.columns]
            own = [part for part in parts if part[1].target == move.target]
            for plan, change in own[:1]:
                indexes = _indexes(change, names)
                table = qualified(*move.target)
                count = _found_by(plan, change, indexes, names, f"SELECT COUNT(*) FROM {table}")
                with connection.cursor() as cursor:
                    cursor.execute(count.text([move.new]) + b" FOR UPDATE")
                    [(found,)] = cursor.fetchall()
                if not int(found):
                    sets = ",".join(
                        f"{quote(name)}={_literal(count, i, move.new)}"
                        for i, name in enumerate(names)
                    )
                    update = replace(count, head=count.head.replace(
                        f"SELECT COUNT(*) FROM {table}", f"UPDATE {table} SET {sets}", 1
                    ))  # fmt: skip
                    _run(connection, update, [move.old], limits)


def _literal(statement: RowStatement, index: int, row: Row) -> str:
    """One value of a key as SQL."""
    numbers = tuple(
        n._replace(column_index=0) for n in statement.numbers if n.column_index == index
    )
    own = replace(statement, columns=(statement.columns[index],), numbers=numbers, key=(0,))
    (piece,), _ = own.rendered([(row[index],)])
    return piece


def _what(action: KeyAction, described: Callable[[Name], RowSchema]) -> str:
    """The statement without its condition."""
    child = qualified(*action.child)
    if action.on_delete == "CASCADE":
        return f"DELETE FROM {child}"
    sets = [f"{quote(name)}=NULL" for name in action.columns]
    given = [name.lower() for name in action.columns]
    sets += [f"{n}={n}" for n in map(quote, moving(described(action.child), given))]
    return f"UPDATE {child} SET {','.join(sets)}"


def _indexes(change: TargetChanges, names: Sequence[str]) -> list[int]:
    """Where columns are among those of a key."""
    key = [change.columns[i].name.lower() for i in change.key]
    if sorted(key) != sorted(name.lower() for name in names):
        raise FatalError(
            f"a foreign key refers to {', '.join(names)}, and rows of its parent are "
            f"distinguished by"
            f" {', '.join(key)}",
            hint="Start the pipeline again: keys have changed",
            table=".".join(change.target),
        )
    return [key.index(name.lower()) for name in names]


def _found_by(
    plan: TableWrites,
    change: TargetChanges,
    indexes: Sequence[int],
    names: Sequence[str],
    what: str,
) -> RowStatement:
    """A statement for rows that have these values of a key in columns of these names."""
    deletes = plan.deletes
    stored = [
        replace(plan.generated.stored[change.key[i]], name=n)
        for i, n in zip(indexes, names, strict=True)
    ]
    condition = by_key(stored)
    return replace(
        deletes,
        head=f"{what} WHERE {condition.head}",
        tail=condition.tail,
        between=condition.between,
        columns=tuple(
            replace(deletes.columns[i], name=n) for i, n in zip(indexes, names, strict=True)
        ),
        numbers=tuple(
            each._replace(column_index=indexes.index(each.column_index)) for each in deletes.numbers
        ),
        key=tuple(range(len(indexes))),
        limited=False,
        bytewise=(),
    )


def _run(
    connection: Connection[Any], statement: RowStatement, keys: Sequence[Row], limits: Limits
) -> None:
    for start in range(0, len(keys), limits.rows):
        for text, _ in statement.divided(keys[start : start + limits.rows], limits):
            try:
                with limits.timings.one():
                    cast("Any", connection).query(text)
            except pymysql.MySQLError as error:
                if error_number(error) != _REFERRED:
                    raise
                raise FatalError(
                    f"an action of a foreign key is refused: {error.args[-1]}",
                    hint=_OTHERS,
                    table=statement.table,
                ) from error


@contextmanager
def _checking(connection: Connection[Any]) -> Generator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION foreign_key_checks = 1")
        try:
            yield
        finally:
            # If this fails, the connection is given up with the transaction.
            cursor.execute("SET SESSION foreign_key_checks = 0")
