"""Refuses schema changes that move rows between tables, where the target's would be other rows.

EXCHANGE PARTITION and MariaDB's CONVERT move a partition's rows. Nothing says which these are, so
both tables have to be at the target as they are at the source, with the same partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

import pymysql
from pymysql.connections import Connection

from setl.channel.routes.routing import Route
from setl.codec.sql.names import behind_condition, name_of
from setl.codec.sql.table_ddl import Role, TableDdl, TableName
from setl.errors import FatalError
from setl.systems.mysql.connection import MysqlEndpoint, connect, error_number
from setl.systems.mysql.ddl.advice import LOAD_AFTER, not_replicated
from setl.systems.mysql.ddl.table_state import key_of
from setl.systems.mysql.identifiers import qualified, quote

_MOVES: Final = frozenset({
    ("EXCHANGE", "PARTITION"), ("CONVERT", "PARTITION"), ("CONVERT", "TABLE"),
})  # fmt: skip
_BOTH_LATER: Final = (
    "Nothing has to be made at the target: mark the change as done, as follows, and load the mapped"
    " ones of these tables with `setl load --replace` when the pipeline runs again. In the future,"
    " have both tables mapped as they are"
)
_NOT_THERE: Final = frozenset({1146, 1735, 1747})  # the table, the partition, any partitions
_PARTITIONS: Final = (
    "SELECT PARTITION_NAME, SUBPARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION,"
    " SUBPARTITION_METHOD, SUBPARTITION_EXPRESSION, PARTITION_DESCRIPTION"
    " FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    " AND PARTITION_NAME IS NOT NULL"
)


def moved_by(ddl: TableDdl) -> tuple[TableName, TableName] | None:
    """The tables between which a statement moves rows of a partition; None for other ones."""
    others = [name for name in ddl.names if name.role is Role.OTHER]
    if len(others) == 1 and any(clause.words[:2] in _MOVES for clause in ddl.clauses()):
        return ddl.subjects[0], others[0]
    return None


def exchanges(ddl: TableDdl) -> bool:
    """Whether two tables exchange rows, and stay as they are but for that."""
    return moved_by(ddl) is not None and any(c.words[0] == "EXCHANGE" for c in ddl.clauses())


def table_of_partition(ddl: TableDdl) -> tuple[str, str] | None:
    """The table that a statement makes of a partition, None if it makes none."""
    moved = moved_by(ddl)
    if moved is None or exchanges(ddl) or not _partition_of(ddl):
        return None
    return moved[1].schema, moved[1].table


def refuse_second_move(ddl: TableDdl | None) -> None:
    """Refuse a statement that moves rows, of a pipeline that has gone back to before it.

    Rows from before it have gone to the tables as they were after it.
    """
    if ddl is not None and moved_by(ddl) is not None:
        raise _refused(ddl, "it moved rows between tables already, before the pipeline went back")


def refuse_moves(
    ddl: TableDdl,
    routes: Sequence[Route],
    into: Sequence[Route],
    gathers: Callable[[Route], bool],
    *,
    both_ways: bool,
) -> None:
    """Refuse a statement that moves rows between tables, unless both are whole at the target."""
    moved = moved_by(ddl)
    if moved is None:
        other = next(name for name in ddl.names if name.role is Role.OTHER)
        raise _refused(
            ddl,
            f"it moves rows between tables, and {_said(other)} may not have them at the target",
            LOAD_AFTER,
        )
    for name, found in zip(moved, (routes, into), strict=True):
        if not found:
            raise _refused(ddl, f"it moves rows between tables, and {_said(name)} is not mapped")
        for route in found:
            if not route.plain or len(found) > 1:
                why = (
                    f"it moves rows between tables, and not all of {_said(name)} goes to one table"
                )
                raise _refused(ddl, why)
            if gathers(route):
                why = f"it moves rows of {_said(name)}, which go beside rows of other tables"
                raise _refused(ddl, why)
            if route.rereads:
                raise _refused(
                    ddl, f"it moves rows of {_said(name)}, which are read at the source by now"
                )
    if both_ways:
        raise _refused(
            ddl,
            "it moves rows between tables, and rows that clients of the target wrote may be on"
            " their way to the tables as they were",
            "Have nobody write to these tables, let both pipelines catch up, and make the change on"
            " the target by hand, after SET SESSION sql_log_bin = 0; then compare with `setl"
            " verify`",
        )


class _Partition(NamedTuple):
    name: str
    sub: str | None
    method: str
    expression: str | None
    sub_method: str | None
    sub_expression: str | None
    description: str | None

    @property
    def rule(self) -> tuple[str, str | None, str | None, str | None]:
        """What is common to all partitions of a table."""
        return self.method, self.expression, self.sub_method, self.sub_expression


def reason_partitions_differ(
    source: MysqlEndpoint | None,
    target: Connection[Any],
    ddl: TableDdl,
    names: tuple[tuple[str, str], tuple[str, str]],
) -> str:
    """Why a partition may have other rows at the target than at the source, or "".

    The source may have given up partitions since, and made others: what both have counts.
    """
    named = _partition_of(ddl) if moved_by(ddl) is not None else ""
    if not named:
        return ""  # where a table becomes a partition, the server looks at its rows
    there = _partitions(target, names[1])
    mine = {p for p in there if named in (p.name.lower(), (p.sub or "").lower())}
    if not mine:
        return f"{'.'.join(names[1])} has no partition {named} at the target"
    if source is None:
        return f"whether {'.'.join(names[1])} has the source's partitions is not known"
    with closing(connect(source)) as connection:
        here = _partitions(connection, names[0])
    if not here:
        return f"the source has no partitions in {'.'.join(names[0])} by now"
    if _differ(here, there):
        return f"{'.'.join(names[1])} has other partitions than the source"
    return ""


def rows_of_exchange(connection: Connection[Any], ddl: TableDdl) -> str:
    """What tells whether tables have exchanged their rows, "" where their definitions do.

    Their definitions stay. So it is their first and last rows, or all of one if these are alike.
    Where all are alike, it does not matter.
    """
    if not exchanges(ddl):
        return ""
    (whole, part), partition = reversed([qualified(*t) for t in ddl.tables]), _partition_of(ddl)
    key = [quote(column) for column in key_of(connection, ddl.tables[0])]
    if key:
        one = _ends(connection, whole, key)
        other = _ends(connection, f"{part} PARTITION ({quote(partition)})", key)
        if one != other:
            return f"{one} {other}"
    with connection.cursor() as cursor:
        cursor.execute(f"CHECKSUM TABLE {whole} EXTENDED")
        return str(cursor.fetchone())


def _ends(connection: Connection[Any], table: str, key: Sequence[str]) -> list[Any]:
    """The rows of a table with the lowest and the highest key."""
    found: list[Any] = []
    with connection.cursor() as cursor:
        for way in ("ASC", "DESC"):
            order = ", ".join(f"{column} {way}" for column in key)
            try:
                cursor.execute(f"SELECT * FROM {table} ORDER BY {order} LIMIT 1")
            except pymysql.MySQLError as error:
                if error_number(error) not in _NOT_THERE:
                    raise
                return []
            found.append(cursor.fetchone())
    return found


def _differ(here: Sequence[_Partition], there: Sequence[_Partition]) -> bool:
    if here[0].rule != there[0].rule:
        return True
    counted = any(m and ("HASH" in m or "KEY" in m) for m in (here[0].method,))
    if counted and len(here) != len(there):
        return True
    ours, theirs = _described(here), _described(there)
    common = ours.keys() & theirs.keys()
    return any(ours[name] != theirs[name] for name in common)


def _described(partitions: Sequence[_Partition]) -> dict[str, tuple[str | None, list[str]]]:
    found: dict[str, tuple[str | None, list[str]]] = {}
    for partition in partitions:
        held = found.setdefault(partition.name.lower(), (partition.description, []))
        held[1].append((partition.sub or "").lower())
    return found


def _partitions(connection: Connection[Any], name: tuple[str, str]) -> list[_Partition]:
    with connection.cursor() as cursor:
        cursor.execute(f"{_PARTITIONS} ORDER BY PARTITION_ORDINAL_POSITION", name)
        return [_Partition(*row) for row in cursor.fetchall()]


def _partition_of(ddl: TableDdl) -> str:
    """The partition whose rows go, in lower case; "" where a table becomes one."""
    for clause in ddl.clauses():
        if clause.words[:2] in _MOVES and clause.words[1] == "PARTITION":
            return name_of(clause.tokens[behind_condition(clause.tokens, 2)]).lower()
    return ""


def _said(name: TableName) -> str:
    return f"{name.schema}.{name.table}"


def _refused(ddl: TableDdl, why: str, hint: str = _BOTH_LATER) -> FatalError:
    return not_replicated(why, ddl.text, hint)
