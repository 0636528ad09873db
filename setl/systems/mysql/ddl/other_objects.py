"""Leaves out of a schema change what it does to views and sequences.

RENAME TABLE, ALTER TABLE and DROP TABLE take these for tables, too. They are not carried, so the
target has nothing of that name; only the source can tell what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.table_ddl import Action, Role, TableDdl, TableName
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.ddl.plan import Routing
from setl.systems.mysql.ddl.table_state import Name, kind_of

_NO_TABLE: Final = frozenset({"VIEW", "SEQUENCE", ""})


def without_other_objects(
    ddl: TableDdl, routing: Routing, target: Connection[Any], source: MysqlEndpoint | None
) -> TableDdl:
    """A statement without the names that are views or sequences at the source.

    A name counts as one only if the target has no such table. So a table that became a view after
    the statement ran is still a table here. What is gone from the source by now, and is not at the
    target, needs nothing either: if it was a table, the first of its rows is an error.
    """
    if source is None or ddl.action not in (Action.RENAME, Action.ALTER, Action.DROP):
        return ddl
    lacking = [
        chain
        for chain in _chains(ddl)
        if (routes := routing.route(chain[0].schema, chain[0].table))
        and not any(kind_of(target, route.target) for route in routes)
    ]
    if not lacking:
        return ddl
    with closing(connect(source)) as connection:
        left = [
            name
            for chain in lacking
            if kind_of(connection, (chain[-1].schema, chain[-1].table)) in _NO_TABLE
            for name in chain
        ]
    return replace(ddl, names=tuple(name for name in ddl.names if name not in left))


def _chains(ddl: TableDdl) -> Iterator[list[TableName]]:
    """The names of each table that a statement alters, renames or drops, in order."""
    if ddl.action is Action.ALTER:
        yield [name for name in ddl.names if name.role in (Role.SUBJECT, Role.NEW_NAME)]
        return
    if ddl.action is Action.DROP:
        # Of several, or with IF EXISTS, any may be missing at the target.
        if len(ddl.names) == 1 and not ddl.conditional:
            yield [*ddl.names]
        return
    chains: dict[Name, list[TableName]] = {}  # by what the table is called after the pairs so far
    for old, new in zip(ddl.names[::2], ddl.names[1::2], strict=True):
        chain = chains.pop((old.schema, old.table), [])
        chains[new.schema, new.table] = [*chain, old, new]
    yield from chains.values()
