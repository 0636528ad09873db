"""The connection that a MySQL sink writes over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from setl.clock import Clock, SystemClock
from setl.errors import ConfigurationError
from setl.load.sink import LoadTicket
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.engines import refusal, tables_without_transactions
from setl.systems.mysql.load.bulk_connection import BulkConnection
from setl.systems.mysql.stored import writers
from setl.systems.mysql.stored.fence_errors import fence_error
from setl.systems.mysql.stored.marks import MARK_STATEMENT, mark_id, mark_info

# Rows arrive in an order of setl's own, parent and child in different tasks, so foreign keys
# cannot be checked between them; they were checked at the source. Unique keys are checked. So were
# CHECKs, or the source's session did not check them: MariaDB can leave them out, MySQL cannot.
# READ COMMITTED locks rows and hardly any gaps, so that tasks on one table rarely wait.
# Of a value that it rounds, a server says so in a note; it may be told to make none. Some MariaDB
# have a second variable for that.
_SESSION = (
    "SET SESSION foreign_key_checks = 0, unique_checks = 1",
    "SET SESSION sql_notes = 1 /*M!100300 , check_constraint_checks = 0 */",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
)
_VARIABLES = (
    "SHOW SESSION VARIABLES WHERE Variable_name IN"
    " ('max_allowed_packet', 'local_infile', 'log_bin', 'binlog_format', 'wsrep_on',"
    " 'wsrep_load_data_splitting', 'note_verbosity')"
)


_FENCE: Final = 1  # of the statements that `Writer.begin` sends; BEGIN is the first
_MARK: Final = 2
_TABLES: Final = 3


class _Answer(NamedTuple):
    """What a server said to one statement: rows that it changed, or rows that were asked for."""

    affected: int
    rows: Sequence[tuple[Any, ...]]


class _Record(NamedTuple):
    """The row in retl.setl_writer that this process wrote last."""

    connection: Connection[Any]
    pipeline_key: str
    epoch: int
    id: int


class Writer:
    """One connection, recorded as a writer of one leadership at a time.

    pymysql's errors pass through; only connecting raises those of
    `setl.systems.mysql.connection.connect`.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        lock_wait: int,
        clock: Clock | None = None,
        *,
        bulk: bool = True,
    ) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the server.
            lock_wait: seconds a statement waits for a row lock.
            clock: for the time that an answer takes.
            bulk: whether statements may be executed for many rows at once, see `BulkConnection`.
        """
        self._kind = BulkConnection if bulk else None
        self._endpoint = endpoint
        self._clock = clock or SystemClock()
        self._lock_wait = lock_wait
        self._connection: Connection[Any] | None = None
        self._packet = 0
        self._sends_data = False
        self._answer_seconds = 0.0
        self._record: _Record | None = None

    @property
    def max_packet(self) -> int:
        """Bytes of the longest statement that the server accepts; known once open."""
        return self._packet

    @property
    def sends_data(self) -> bool:
        """Whether the server takes rows with LOAD DATA LOCAL; known once open.

        Where its binlog holds statements, all of the data would be in it, and be read again.
        """
        return self._sends_data

    @property
    def answer_seconds(self) -> float:
        """How long an answer of the server takes that costs it nothing; known once open."""
        return self._answer_seconds

    def open(self) -> Connection[Any]:
        """The connection, opened if there is none."""
        if self._connection is None:
            connection = connect(
                self._endpoint,
                lock_wait=self._lock_wait,
                kind=self._kind,
                # Nothing but setl's own statements is sent over it, all values as literals.
                client_flag=CLIENT.LOCAL_FILES | CLIENT.MULTI_STATEMENTS,
            )
            try:
                self._set_up(connection)
            except BaseException:
                _close(connection)
                raise
            self._connection = connection
        return self._connection

    def _set_up(self, connection: Connection[Any]) -> None:
        with connection.cursor() as cursor:
            took: list[float] = []
            for statement in _SESSION:
                asked = self._clock.monotonic()
                cursor.execute(statement)
                took.append(self._clock.monotonic() - asked)
            self._answer_seconds = min(took)
            cursor.execute(_VARIABLES)
            found = {str(name): str(value) for name, value in cursor.fetchall()}
            if "basic" not in found.get("note_verbosity", "basic").split(","):
                cursor.execute("SET SESSION note_verbosity = 'basic'")
        self._packet = int(found.get("max_allowed_packet", 1 << 20))
        by_row = found.get("log_bin") == "OFF" or found.get("binlog_format", "ROW") == "ROW"
        # Such a cluster commits every 10,000 rows, which would be without fence and mark.
        splits = found.get("wsrep_on") == found.get("wsrep_load_data_splitting") == "ON"
        self._sends_data = by_row and not splits and found.get("local_infile") == "ON"

    def register(self, ticket: LoadTicket) -> None:
        """Make this connection known as a writer of the ticket's leadership (I2)."""
        connection = self.open()
        record = self._record
        if record is not None and record.connection is connection:
            if (record.pipeline_key, record.epoch) == (ticket.pipeline_key, ticket.epoch):
                return
        elif record is not None:
            # The connection before this one was given up in doubt. The server may not have
            # noticed and keep its locks, which the same rows would now wait for.
            writers.end_writer(connection, record.pipeline_key, record.id)
            writers.forget_writer(connection, record.pipeline_key, record.id)
        own = writers.register(connection, ticket.leadership)
        self._record = _Record(connection, ticket.pipeline_key, ticket.epoch, own)

    def begin(
        self, ticket: LoadTicket, mark: int, nonce: str, tables: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Open a transaction: lock and compare the fence, write the mark, look at the tables.

        All of it is sent at once, since each answer of a server that is far away takes long. The
        server does nothing more after the first statement that fails. What an outdated leader has
        written with it is rolled back by whoever gets the error.

        Args:
            ticket: on whose behalf.
            mark: the channel's number.
            nonce: see `mark_info`.
            tables: that will be written to, by schema and name. They are looked at in each
                transaction: one may have been altered since the last, and nothing would fail.

        Raises:
            FencedError: the fence is at a higher epoch.
            TargetWentBackError: it is at a lower one, or gone.
            ConfigurationError: the mark is not written as it should be, or a table has no
                transactions.
            pymysql.MySQLError: the server refuses; a table may be missing.
        """
        own = mark_id(ticket.pipeline_key, ticket.slot)
        statements: list[tuple[str, Sequence[object]]] = [
            ("BEGIN", ()),
            (
                "SELECT epoch FROM retl.setl_fence WHERE pipeline = %s LOCK IN SHARE MODE",
                (ticket.pipeline_key,),
            ),
            (MARK_STATEMENT, (own, mark, mark_info(ticket, nonce))),
        ]
        if names := list(dict.fromkeys(tables)):
            statements.append(tables_without_transactions(names))
        answers, refused = _ask_at_once(self.open(), statements)
        if len(answers) > _FENCE:
            row = next(iter(answers[_FENCE].rows), None)
            held = None if row is None else int(row[0])
            if held != ticket.epoch:
                raise fence_error(ticket.epoch, held, ticket.pipeline_key, self._endpoint)
        if len(answers) > _MARK and not answers[_MARK].affected:
            # The server has logged no mark, so the transaction would be taken for a user's.
            raise ConfigurationError(
                "the mark in retl.retl_mark does not change when it is written",
                hint="Remove what changes rows of that table, such as a trigger",
                pipeline=ticket.pipeline_key,
                server=self._endpoint,
            )
        if refused is not None:
            raise refused
        for schema, table, engine in answers[_TABLES].rows if names else ():
            what, hint = refusal(str(schema), str(table), engine)
            raise ConfigurationError(what, hint=hint, table=f"{schema}.{table}")

    def rollback(self) -> None:
        """Undo the open transaction; the connection is dropped if that is in doubt."""
        if self._connection is None:
            return
        try:
            self._connection.rollback()
        except (pymysql.MySQLError, OSError):
            self.drop()

    def drop(self) -> None:
        """Give the connection up, whatever it is doing. The server rolls back what is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)

    def close(self) -> None:
        """Leave no trace: remove the record, then drop the connection."""
        record, self._record = self._record, None
        if record is not None and record.connection is self._connection:
            # If it cannot be removed, the next leader does it.
            with suppress(pymysql.MySQLError, OSError):
                record.connection.rollback()
                writers.forget_writer(record.connection, record.pipeline_key, record.id)
        self.drop()


def _ask_at_once(
    connection: Connection[Any], statements: Sequence[tuple[str, Sequence[object]]]
) -> tuple[list[_Answer], pymysql.MySQLError | None]:
    """Send statements with their values together; what was answered, up to the first error."""
    answers: list[_Answer] = []
    with connection.cursor(Cursor) as cursor:
        text = ";".join(cursor.mogrify(statement, values) for statement, values in statements)
        try:
            more: bool | None = bool(statements)
            cursor.execute(text)
            while more:
                answers.append(_Answer(cursor.rowcount, cursor.fetchall()))
                more = cursor.nextset()
        except pymysql.MySQLError as error:
            return answers, error
    return answers, None


def _close(connection: Connection[Any]) -> None:
    # If it is gone already, so much the better.
    with suppress(pymysql.MySQLError, OSError):
        connection.close()
