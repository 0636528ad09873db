"""The primary key that a table of the source had when a statement ran there (I26)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import pairwise
from typing import Final

from setl.clock import SystemClock
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, Clause, Role, TableDdl, parse_table_ddl
from setl.codec.sql.tokens import Quoting
from setl.load.sink import SchemaChange
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.statements_ahead import finds_statement
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.ddl.table_state import Name, key_of

_LIMIT: Final = 120.0  # seconds to read ahead
_OF_INDEXES: Final = frozenset({"KEY", "INDEX"})
_BEFORE_KEY: Final = frozenset({"ADD", "DROP", "ALTER", "RENAME", "UNIQUE", "FOREIGN", "FULLTEXT"})


def key_at_statement(
    source: MysqlEndpoint, change: SchemaChange, table: Name, key: tuple[str, ...], *, made: bool
) -> tuple[str, ...]:
    """A table's primary key at the source after a schema change, in lower case.

    It is the key of now if nothing in the binlog ahead changes it. If something does, it is that of
    the target's table, provided that this came in the stream.

    Args:
        source: the source's server.
        change: the schema change.
        table: the table at the source.
        key: that of its table at the target.
        made: whether the target's table is one of `made_by`.

    Returns:
        () if there is none or it is not known.

    Raises:
        SetlError: the source does not answer.
    """
    with closing(connect(source)) as connection:
        now = key_of(connection, table)
    if not isinstance(change.position, BinlogPosition):
        return now
    ahead = finds_statement(
        source,
        change.position,
        lambda schema, text: changes_key(table, schema, text),
        SystemClock(),
        _LIMIT,
    )
    if ahead is False:
        return now
    return key if made else ()


def changes_key(table: Name, schema: str, text: str) -> bool:
    """Whether a statement may give a table another primary key, or the name to another table.

    Args:
        table: the table.
        schema: the database of names without one.
        text: any statement.
    """
    if table[1].lower() not in text.lower():
        return False
    ddl = parse_table_ddl(text, schema, Quoting())
    if ddl is None or tuple(map(str.lower, table)) not in [
        (name.schema.lower(), name.table.lower()) for name in ddl.names
    ]:
        return False
    if ddl.action in (Action.TRUNCATE, Action.INDEX):
        return "primary" in text.lower()
    return ddl.action is not Action.ALTER or not all(map(_retains_key, ddl.clauses()))


def made_by(done: Iterable[TableDdl]) -> set[Name]:
    """The tables of a target that it has from the stream, so that their keys are the source's.

    Args:
        done: what was replicated to the target, in order; its beginning may be missing.
    """
    made: set[Name] = set()
    for ddl in done:
        named = [(name.schema, name.table) for name in ddl.names]
        if ddl.action is Action.CREATE:
            like = [(n.schema, n.table) for n in ddl.names if n.role is Role.LIKE]
            made.discard(named[0])
            # With IF NOT EXISTS it may have been there, with another key.
            if not ddl.conditional and made.issuperset(like):
                made.add(named[0])
        elif ddl.action is Action.DROP:
            made.difference_update(named)
        else:
            old: list[Name] = []
            for name in ddl.names:
                if name.role is Role.SUBJECT:
                    old = [(name.schema, name.table)]
                elif name.role is Role.NEW_NAME:
                    moved = made.intersection(old)
                    made -= {*moved, (name.schema, name.table)}
                    made |= {(name.schema, name.table)} if moved else set()
    return made


def _retains_key(clause: Clause) -> bool:
    words = [token.word for token in clause.tokens]
    verb = words[0]
    if verb == "CHANGE" or (verb == "RENAME" and words[1] not in _OF_INDEXES):
        return False
    if verb == "DROP" and clause.columns:
        return False  # a column that is dropped leaves the key, too
    if any(name_of(token).upper() == "PRIMARY" for token in clause.tokens):
        return False
    # KEY behind a type means PRIMARY KEY.
    return all(one in _BEFORE_KEY for one, other in pairwise(words) if other == "KEY")
