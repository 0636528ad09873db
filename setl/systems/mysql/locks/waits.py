"""Shows what the connections of one leadership do, and whom they wait for.

Asked only when a pipeline stands still. `setl.systems.mysql.locks.lists` knows the servers' lists.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.load.target_view import LockWait, Statement
from setl.systems.mysql.connection import MysqlEndpoint, connect, error_number, translating
from setl.systems.mysql.locks.lists import (
    UNREADABLE,
    WAITS_PERFORMANCE_SCHEMA,
    LockLists,
    lists_of,
    rows_of,
)
from setl.systems.mysql.stored.writers import is_commit

_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 3.0

# Not allowed to look, or the server does not have it: then one goes on with what can be seen.
_CANNOT_BE_SEEN = frozenset({1044, 1109, 1142, 1146, 1193, 1227})

_FENCE = "retl.setl_fence"

_LACKS_PRIVILEGES = (
    "row locks cannot be seen, since the account on the target lacks PROCESS, or on MySQL SELECT on"
    " performance_schema"
)

_HANGS_SECONDS = 10.0
"""Seconds after which a commit is told of at all; who is told decides whether that is long."""

_PAUSES = (0.0, 0.12, 0.15, 0.3, 0.5)
"""Seconds before each attempt to see InnoDB's lists up to date. All but the first are longer than
InnoDB wants to be left alone, and they grow, so that several who look at once get out of step."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of one leadership on a server.

    Attributes:
        recorded: ids that are recorded as its writers.
        waits: those that wait for a lock.
        statements: statements that run, those that wait for a lock left out.
        open: connections with a transaction open but no statement running.
        gone: recorded connections that the server does not have any more.
        hanging: the commit of anybody that has lasted longest, if it has lasted long.
        modified: connection → transaction and rows that it has changed so far; two looks that
            differ here show that something advances.
        blind: what could not be seen, and why; "" if everything could.
    """

    recorded: tuple[int, ...] = ()
    waits: tuple[LockWait, ...] = ()
    statements: tuple[Statement, ...] = ()
    open: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    hanging: Statement | None = None
    modified: tuple[tuple[int, str, int], ...] = ()
    blind: str = ""


@dataclass(frozen=True, slots=True)
class _Process:
    id: int
    who: str
    command: str
    seconds: float
    state: str

    @property
    def doing(self) -> str:
        if self.command == "Sleep":
            return "idle in its transaction"
        return f"runs a statement, {self.state}" if self.state else "runs a statement"


@dataclass(slots=True)
class _Findings:
    """What the queries found."""

    processes: dict[int, _Process] = field(default_factory=dict[int, _Process])
    waits: list[LockWait] = field(default_factory=list[LockWait])
    modified: list[tuple[int, str, int]] = field(default_factory=list[tuple[int, str, int]])
    blind: str = ""


def look(endpoint: MysqlEndpoint, pipeline_key: str, epoch: int) -> Connections:
    """What the connections of one leadership do, over a short-lived connection of its own.

    Takes no locks. The account should have PROCESS, and on MySQL SELECT on performance_schema;
    without them locks of others are not seen, and `Connections.blind` says so.

    Args:
        endpoint: the server; its time limits are shortened to a few seconds.
        pipeline_key: ``channel/pipeline``.
        epoch: the leadership.

    Raises:
        SetlError: the server does not answer in time, or not to this account.
    """
    hasty = replace(
        endpoint,
        connect_timeout=min(endpoint.connect_timeout, _CONNECT_SECONDS),
        read_timeout=min(endpoint.read_timeout, _ANSWER_SECONDS),
    )
    with translating(hasty):
        connection = connect(hasty, lock_wait=1)
        try:
            return _look(connection, pipeline_key, epoch)
        finally:
            connection.close()


def _explained(state: str) -> str:
    """A thread's state, with what it means if it lasts."""
    return f"{state}; mostly its disk is full" if is_commit(state) else state


def _look(connection: Connection[Any], pipeline_key: str, epoch: int) -> Connections:
    # InnoDB tells when transactions began in the server's own time zone.
    rows_of(connection, "SET SESSION time_zone = 'SYSTEM'")
    recorded = tuple(
        int(row[0])
        for row in rows_of(
            connection,
            "SELECT conn_id FROM retl.setl_writer WHERE pipeline = %s AND epoch = %s",
            (pipeline_key, epoch),
        )
    )
    lists = lists_of(connection)
    findings = _Findings(processes=_processes(connection, lists, recorded, pipeline_key))
    present = sorted(findings.processes)
    if present:
        _look_inside(connection, lists, present, findings)
    waiting = {wait.waiting for wait in findings.waits}
    statements = tuple(
        Statement(p.id, p.seconds, _explained(p.state))
        for p in findings.processes.values()
        if p.command not in {"Sleep", "Killed"} and p.id not in waiting
    )
    running = {statement.connection for statement in statements}
    return Connections(
        recorded=recorded,
        waits=tuple(_with_holders(connection, lists, findings.waits)),
        statements=statements,
        open=tuple(m[0] for m in findings.modified if m[0] not in running | waiting),
        gone=tuple(sorted(set(recorded) - set(findings.processes))),
        hanging=_hanging_commit(connection, lists),
        modified=tuple(sorted(findings.modified)),
        blind=findings.blind,
    )


def _processes(
    connection: Connection[Any], lists: LockLists, recorded: Sequence[int], pipeline_key: str
) -> dict[int, _Process]:
    """Our connections: those recorded, and one that asks for the fence and is not recorded yet."""
    found: dict[int, _Process] = {}
    listed = rows_of(
        connection,
        "SELECT id, user, host, command, time, state, info"
        f" FROM {lists.processes}"
        f" WHERE id <> CONNECTION_ID() AND (id IN ({_listed(recorded)}) OR info LIKE %s)",
        (f"%{_FENCE}%",),
    )
    for ident, user, host, command, seconds, state, info in listed:
        if ident in recorded or pipeline_key in (info or ""):
            found[int(ident)] = _process((ident, user, host, command, seconds, state))
    return found


def _hanging_commit(connection: Connection[Any], lists: LockLists) -> Statement | None:
    """See `Connections.hanging`.

    It may be of a connection that was given up, or of one that is not recorded yet.
    """
    listed = rows_of(
        connection,
        f"SELECT id, time, state FROM {lists.processes}"
        " WHERE command <> 'Sleep' AND time >= %s ORDER BY time DESC",
        (_HANGS_SECONDS,),
    )
    return next(
        (
            Statement(int(ident), float(seconds), _explained(state))
            for ident, seconds, state in listed
            if is_commit(state or "")
        ),
        None,
    )


def _process(row: Sequence[Any]) -> _Process:
    ident, user, host, command, seconds, state = row
    return _Process(
        int(ident),
        f"{user}@{(host or '').partition(':')[0]}",  # without the port
        command,
        float(seconds or 0),
        state or "",
    )


def _look_inside(
    connection: Connection[Any], lists: LockLists, ids: Sequence[int], findings: _Findings
) -> None:
    """Transactions and lock waits, as far as the account may see them."""
    for process in findings.processes.values():
        # Locks on tables as such, which InnoDB does not know.
        if process.state.startswith("Waiting for") and "lock" in process.state:
            findings.waits.append(LockWait(process.id, process.seconds, doing=process.state))
    try:
        if not _up_to_date(connection):
            # A holder named from an old list may have ended long ago, and somebody may kill what
            # has its connection id by now.
            findings.blind = (
                "row locks cannot be seen, since others read the target's list of them so often"
                " that it is not renewed"
            )
            return
        findings.modified = [
            (int(thread), str(transaction), int(rows))
            for thread, transaction, rows in rows_of(
                connection,
                "SELECT trx_mysql_thread_id, trx_id, trx_rows_modified"
                " FROM information_schema.innodb_trx"
                f" WHERE trx_mysql_thread_id IN ({_listed(ids)})",
            )
        ]
        findings.waits += _waits(connection, lists.waits, ids)
        findings.blind = lists.blind
    except pymysql.MySQLError as error:
        if error_number(error) == UNREADABLE:
            _look_without_transactions(connection, ids, findings)
        elif error_number(error) in _CANNOT_BE_SEEN:
            findings.blind = _LACKS_PRIVILEGES
        else:
            raise


def _look_without_transactions(
    connection: Connection[Any], ids: Sequence[int], findings: _Findings
) -> None:
    """Lock waits of a MySQL server whose list of transactions cannot be read."""
    findings.modified = []
    findings.blind = (
        "open transactions cannot be seen, since MySQL does not list them while somebody runs a"
        " statement with characters beyond utf8mb3"
    )
    try:
        findings.waits += _waits(connection, WAITS_PERFORMANCE_SCHEMA, ids)
    except pymysql.MySQLError as error:
        if error_number(error) not in _CANNOT_BE_SEEN:
            raise
        findings.blind = _LACKS_PRIVILEGES


def _up_to_date(connection: Connection[Any]) -> bool:
    """Whether what InnoDB tells of transactions and row locks is not older than this call.

    It tells all of it from one copy, which it renews only when nobody has read that for 0.1 s
    (CACHE_MIN_IDLE_TIME_NS in storage/innobase/trx/trx0i_s.cc of MariaDB; MySQL's bug 48883). So
    a reader that comes again sooner sees the same for ever, and so do several together. The
    transaction that is begun here is in the copy only if that was renewed since.
    """
    rows_of(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    unreadable: pymysql.MySQLError | None = None
    for pause in _PAUSES:
        time.sleep(pause)
        unreadable = None
        try:
            if rows_of(
                connection,
                "SELECT 1 FROM information_schema.innodb_trx"
                " WHERE trx_mysql_thread_id = CONNECTION_ID()",
            ):
                return True
        except pymysql.MySQLError as error:
            if error_number(error) != UNREADABLE:
                raise
            unreadable = error
    if unreadable is not None:
        raise unreadable
    return False


def _waits(connection: Connection[Any], form: str, ids: Sequence[int]) -> list[LockWait]:
    query = form.format(ids=_listed(ids))
    return [
        LockWait(
            waiting=int(waiting),
            seconds=float(waited or 0),
            table=str(table or "").replace("`", ""),
            holder=int(holder),
            held=float(held or 0),
        )
        for waiting, holder, waited, held, table in rows_of(connection, query)
    ]


def _with_holders(
    connection: Connection[Any], lists: LockLists, waits: Sequence[LockWait]
) -> list[LockWait]:
    """The waits, with who the holders are and what they do."""
    holders = sorted({wait.holder for wait in waits if wait.holder})
    if not holders:
        return list(waits)
    listed = rows_of(
        connection,
        f"SELECT id, user, host, command, time, state FROM {lists.processes}"
        f" WHERE id IN ({_listed(holders)})",
    )
    known = {int(row[0]): _process(row) for row in listed}
    writers = {
        int(ident): f"writer of {pipeline}, node {nid}, epoch {epoch}"
        for ident, pipeline, nid, epoch in rows_of(
            connection,
            "SELECT conn_id, pipeline, nid, epoch FROM retl.setl_writer"
            f" WHERE conn_id IN ({_listed(holders)})",
        )
    }
    described: list[LockWait] = []
    for wait in waits:
        process = known.get(wait.holder)
        who = process.who if process else ""
        if process and wait.holder in writers:
            who = f"{who}, {writers[wait.holder]}"
        described.append(replace(wait, who=who, doing=process.doing if process else wait.doing))
    return described


def _listed(ids: Sequence[int]) -> str:
    """Ids for an IN, which must not be empty; no connection has the id 0."""
    return ", ".join(str(int(ident)) for ident in ids) or "0"
