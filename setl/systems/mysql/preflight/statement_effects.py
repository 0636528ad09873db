"""What else happens at a server when a table is written by a statement, as far as it tells.

A trigger, a view, a foreign key with an action: each may change rows of other tables, and none of
that is in the binlog where the statement itself is. The server is asked as it is now. What was
dropped since the statement ran is not seen any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from setl.clock import Clock
from setl.codec.sql.row_statement import Name, calls_in
from setl.codec.sql.stored_program import tables_of_view
from setl.extract.statements import Reach
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.server import Server

_SECONDS: Final = 60.0
_MAX_CACHED: Final = 10_000  # tables, whose names are a pool without bound
# Neither server lets anybody make triggers there, and managed ones let nobody look.
_OF_THE_SERVER: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
_MERGED: Final = "MERGE"
_ACTIONS: Final = ("CASCADE", "SET NULL", "SET DEFAULT")


class StatementEffects:
    """The effects at one server; each answer counts for a minute. For one thread."""

    def __init__(self, endpoint: MysqlEndpoint, clock: Clock) -> None:
        """Ask nobody yet.

        Args:
            endpoint: the server.
            clock: tells when to ask again.
        """
        self._endpoint = endpoint
        self._clock = clock
        self._known: dict[tuple[str, str, bool], Reach] = {}
        self._until = 0.0

    def of_writing(self, schema: str, table: str) -> Reach:
        """See `setl.extract.statements.Effects`."""
        return self._reach(schema, table, writes=True)

    def of_reading(self, schema: str, table: str) -> Reach:
        """See `setl.extract.statements.Effects`."""
        return self._reach(schema, table, writes=False)

    def forget(self) -> None:
        """See `setl.extract.statements.Effects`."""
        self._known.clear()

    def _reach(self, schema: str, table: str, *, writes: bool) -> Reach:
        now = self._clock.monotonic()
        if now >= self._until or len(self._known) >= _MAX_CACHED:
            self._known.clear()
            self._until = now + _SECONDS
        asked = (schema, table, writes)
        if asked not in self._known:
            with Server.opened(self._endpoint) as server:
                self._known[asked] = reach_of(server, (schema, table), writes=writes)
        return self._known[asked]


def reach_of(server: Server, name: Name, *, writes: bool = True) -> Reach:
    """What `StatementEffects` says of a table, asked now.

    Raises:
        SetlError: the server does not answer.
    """
    kind = _kind(server, name)
    if kind == "":
        return _of_unseen(server, name)
    if kind == "VIEW":
        return Reach("is a view") if writes else _of_view(server, name, frozenset())
    if kind == _MERGED and writes:
        return Reach("is a MERGE table, whose rows are those of other tables")
    return _of_table(server, name) if writes else Reach()


def _kind(server: Server, name: Name) -> str:
    found = server.rows(
        "SELECT IF(LOWER(ENGINE) = 'mrg_myisam', 'MERGE', TABLE_TYPE)"
        " FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        name,
    )
    return str(found[0][0]) if found else ""


def _of_unseen(server: Server, name: Name) -> Reach:
    schema, _ = name
    if schema.lower() in _OF_THE_SERVER:
        return Reach()
    if not server.holds("SELECT", schema):
        return Reach(
            f"is not shown to the account {server.account}",
            server.grant(["SELECT", "TRIGGER"], server.scope_of(schema)),
        )
    return Reach("is not there any more, so that it is unknown what it was")


def _of_table(server: Server, name: Name) -> Reach:
    schema, _ = name
    if schema.lower() not in _OF_THE_SERVER:
        if not server.holds("TRIGGER", schema):
            return Reach(
                f"may have triggers, which are not shown to the account {server.account}",
                server.grant(["TRIGGER"], server.scope_of(schema)),
            )
        triggers = server.rows(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS"
            " WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s ORDER BY 1",
            name,
        )
        if triggers:
            return Reach(f"has the trigger {triggers[0][0]}")
    return Reach(tables=tuple(_children(server, name)))


def _children(server: Server, name: Name) -> Iterable[Name]:
    """Tables whose rows foreign keys change with those of a table, directly or not.

    MariaDB shows foreign keys only to accounts that may do more than SELECT. There, the parents of
    a mapped table that has one with an action are mapped, too, or it is refused, see
    `setl.systems.mysql.foreign_keys.check_cascades`.
    """
    found: dict[Name, None] = {}
    left = [name]
    while left:
        rows = server.rows(
            "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UPDATE_RULE, DELETE_RULE"
            " FROM information_schema.REFERENTIAL_CONSTRAINTS"
            " WHERE UNIQUE_CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s",
            left.pop(),
        )
        for schema, table, *rules in rows:
            child = str(schema), str(table)
            if child not in found and any(str(rule) in _ACTIONS for rule in rules):
                found[child] = None
                left.append(child)
    return found


def _of_view(server: Server, name: Name, seen: frozenset[Name]) -> Reach:
    """What reading a view does: its text may call functions, which may write."""
    found = server.rows(
        "SELECT VIEW_DEFINITION FROM information_schema.VIEWS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        name,
    )
    text = str(found[0][0] or "") if found else ""
    if not text:
        return Reach(
            f"is a view whose text is not shown to the account {server.account}",
            server.grant(["SHOW VIEW"], server.scope_of(name[0])),
        )
    calls = calls_in(text, name[0])
    if calls is None or calls:
        called = f"calls {'.'.join(calls[0])}" if calls else "is not understood"
        return Reach(f"is a view that {called}, which may write any table")
    for behind in sorted(tables_of_view(text) - seen):
        if _kind(server, behind) == "VIEW":
            reach = _of_view(server, behind, seen | {name})
            if reach.reason:
                return reach
    return Reach()
