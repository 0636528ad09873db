"""Writes changes into MySQL or MariaDB: one call is one transaction, fenced and marked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pymysql
from pymysql.connections import Connection

from setl import failpoints
from setl.clock import Clock, SystemClock
from setl.errors import DataError, SetlError
from setl.load.mysql_statements import Limits, RowStatement, Strategy
from setl.load.mysql_targets import Targets
from setl.load.mysql_writer import Writer
from setl.load.port import Loaded, LoadTicket
from setl.model.change import Row, TargetChanges
from setl.mysql.connection import MysqlEndpoint, error_number, translate

_DEADLOCK = 1213
_UNKNOWN_NAME = frozenset({1054, 1146})  # no such column, no such table
_LOST = frozenset({0, 1927, 2006, 2013, 2055, 4031})  # pymysql says 0 for one it has closed
# After these the connection is as good as before: the server said no, or has rolled back.
_ANSWERED = _UNKNOWN_NAME | {_DEADLOCK, 1205}


@dataclass(frozen=True, slots=True)
class MysqlSinkSettings:
    """What a MySQL sink is made from. Picklable and hashable: it travels with the tasks.

    Attributes:
        endpoint: the server.
        mark: the channel's number in ``retl.retl_mark``.
        lock_wait: seconds a statement waits for a row lock.
        rows_per_statement: rows in one statement at most.
        statement_size: bytes above which a statement is divided.
        deadlock_attempts: how often a transaction is tried that the server ends as the victim
            of a deadlock, before the batch has to be.
    """

    endpoint: MysqlEndpoint
    mark: int
    lock_wait: int = 10
    rows_per_statement: int = 1_000
    statement_size: int = 1 << 20
    deadlock_attempts: int = 5


class MysqlSink:
    """The `Sink` for MySQL and MariaDB. Used by one thread at a time.

    Foreign keys are not checked, and their actions (ON DELETE CASCADE and its like) do not run:
    a target takes the changes that it is given. Triggers of the target do run.
    """

    def __init__(
        self,
        settings: MysqlSinkSettings,
        nonce: Callable[[], str],
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: where and how to write.
            nonce: gives a text that it never gave before, see `setl.load.marks.mark_info`.
            clock: for the time spent in the target.
            sleep: waits between attempts.
        """
        self._settings = settings
        self._nonce = nonce
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._writer = Writer(settings.endpoint, settings.lock_wait)
        self._targets = Targets(self._clock)

    def apply(self, ticket: LoadTicket, changes: Sequence[TargetChanges]) -> Loaded:
        """See `setl.load.port.Sink.apply`. All of it is one transaction."""
        changes = [c for c in changes if c.upserts or c.deletes]
        if not changes:
            return Loaded()
        started = self._clock.monotonic()
        self._apply(ticket, changes)
        return Loaded(
            upserts=sum(len(c.upserts) for c in changes),
            deletes=sum(len(c.deletes) for c in changes),
            seconds=self._clock.monotonic() - started,
        )

    def close(self) -> None:
        """See `setl.load.port.Sink.close`."""
        self._writer.close()

    def _apply(self, ticket: LoadTicket, changes: Sequence[TargetChanges]) -> None:
        deadlocks = 0
        refreshed = reconnected = False
        while True:
            try:
                self._transaction(ticket, changes)
            except (pymysql.MySQLError, OSError, SetlError) as error:
                number = self._give_up_transaction(error)
                if number == _DEADLOCK and deadlocks + 1 < self._settings.deadlock_attempts:
                    # The transaction that won holds the locks until it ends; let it.
                    deadlocks += 1
                    self._sleep(0.02 * 2**deadlocks)
                elif number in _UNKNOWN_NAME and not refreshed:
                    refreshed = True
                    self._targets.forget()
                elif number in _LOST and not reconnected:
                    # Most often it was lost while it was idle. Even if the commit went through
                    # and only its answer is missing, the same transaction changes nothing.
                    reconnected = True
                elif isinstance(error, SetlError):
                    self._placed(error, ticket)
                    raise
                else:
                    raise self._placed(translate(error), ticket) from error
            except BaseException:
                # The task is being ended in the middle of something.
                self._writer.drop()
                raise
            else:
                return

    def _give_up_transaction(self, error: Exception) -> int | None:
        """Make sure that nothing of the transaction stays; returns the server's error number."""
        cause = error.__cause__ if isinstance(error, SetlError) else error
        number = error_number(cause)
        if isinstance(error, SetlError) or number in _ANSWERED:
            self._writer.rollback()
        else:
            # How far the server came is not known.
            self._writer.drop()
        return number

    def _placed(self, error: SetlError, ticket: LoadTicket) -> SetlError:
        return error.at(pipeline=ticket.pipeline_key, server=self._settings.endpoint)

    def _transaction(self, ticket: LoadTicket, changes: Sequence[TargetChanges]) -> None:
        connection = self._writer.open()
        plans = [self._targets.writes(connection, c) for c in changes]
        self._writer.register(ticket)
        self._writer.begin(ticket, self._settings.mark, self._nonce())
        limits = Limits(
            rows=self._settings.rows_per_statement,
            size=self._settings.statement_size,
            packet=self._writer.max_packet,
        )
        for plan, change in zip(plans, changes, strict=True):
            _write(connection, plan.deletes, change.deletes, limits)
        for plan, change in zip(plans, changes, strict=True):
            if plan.strategy is Strategy.RENEW:
                _write(connection, plan.deletes, _keys(change), limits)
            _write(connection, plan.inserts, change.upserts, limits)
        failpoints.reached("task.before_commit")
        connection.commit()
        failpoints.reached("task.after_commit")


def _keys(change: TargetChanges) -> list[Row]:
    return [tuple(row[i] for i in change.key) for row in change.upserts]


def _write(
    connection: Connection[Any], statement: RowStatement, rows: Sequence[Row], limits: Limits
) -> None:
    for text, held in statement.divided(rows, limits):
        try:
            _run(connection, text)
        except pymysql.MySQLError as error:
            failure = translate(error)
            if not isinstance(failure, DataError):
                raise
            row = _refused_row(connection, statement, held)
            raise failure.at(
                table=statement.table, key="" if row is None else statement.key_text(row)
            ) from error


def _run(connection: Connection[Any], text: bytes) -> None:
    # Not through a cursor, which takes text only and would encode it leniently.
    cast("Any", connection).query(text)


def _refused_row(
    connection: Connection[Any], statement: RowStatement, rows: Sequence[Row]
) -> Row | None:
    """Which row the server refuses, found by halving; None if it refuses none of them alone.

    Runs in the transaction of the statement that failed, which is rolled back afterwards. The
    server undoes a statement that fails, so each try starts from the same state but for the
    rows that it has taken meanwhile.
    """
    while len(rows) > 1:
        half = len(rows) // 2
        first, second = rows[:half], rows[half:]
        rows = first if _is_refused(connection, statement.text(first)) else second
    return rows[0] if _is_refused(connection, statement.text(rows)) else None


def _is_refused(connection: Connection[Any], text: bytes) -> bool:
    try:
        _run(connection, text)
    except pymysql.MySQLError as error:
        if not isinstance(translate(error), DataError):
            raise
        return True
    return False
