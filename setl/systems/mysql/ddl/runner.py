"""Runs DDL on a target over a connection that waits as long as it takes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

import pymysql
from pymysql.connections import Connection

from setl.errors import TransientError
from setl.load.sink import LoadTicket
from setl.model.session import StatementSession
from setl.systems.mysql.connection import MysqlEndpoint, connect, is_mariadb, translate
from setl.systems.mysql.ddl.settings import settings_for
from setl.systems.mysql.locks import ddl_lock
from setl.systems.mysql.stored import writers

_LOOK_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 30 * 24 * 3600.0
_LOCK_SECONDS: Final = 10


class DdlRunner:
    """Holds a pipeline's DDL lock (see `setl.systems.mysql.locks.ddl_lock`) from `open` to `close`.

    pymysql's errors pass through, but those of connecting.
    """

    def __init__(self, endpoint: MysqlEndpoint, schema: str | None = None) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the server.
            schema: the session's, None for none. Statements name their own; but it is logged with
                them, also where a server logs another text than that which was run.
        """
        self._endpoint = endpoint
        self._schema = schema
        self._connection: Connection[Any] | None = None
        self._ticket: LoadTicket | None = None
        self._own_id = 0

    def open(self, ticket: LoadTicket) -> None:
        """Connect, and take the lock; the epoch is to be compared afterwards.

        Raises:
            TransientError: another statement of the pipeline still runs, or there is no connection.
        """
        patient = replace(self._endpoint, read_timeout=_LONGEST_SECONDS)
        connection = connect(patient, database=self._schema)
        self._connection, self._ticket = connection, ticket
        # Recorded, so that a leader that is about to lose its session can end it (I3).
        self._own_id = writers.register(connection, ticket.leadership)
        if not ddl_lock.take(connection, ticket.pipeline_key, _LOCK_SECONDS):
            raise TransientError("another schema change of the pipeline still runs on the target")

    def run(self, statement: str, session: StatementSession, more: Sequence[str] = ()) -> None:
        """Run a statement as the session of the source ran it.

        Returns when it has ended, however long it takes, as long as its connection lives.

        Args:
            statement: its text.
            session: the session.
            more: statements that set what only some accounts may set.

        Raises:
            FatalError: the target has no such session.
            TransientError: the connection is gone; how far the server came is not known.
        """
        connection = self._connection
        if connection is None:
            raise TransientError("the connection for schema changes is closed")
        with connection.cursor() as cursor:
            for text in (*settings_for(session, mariadb=is_mariadb(connection)), *more):
                cursor.execute(text)
        self._watched(connection, statement)

    def parses(self, statement: str, session: StatementSession) -> bool:
        """Whether the server's parser takes a statement, which does not run."""
        held = f"CONVERT(X'{statement.encode().hex()}' USING utf8mb4)"
        try:
            self.run(f"SET @setl_trial = {held}", session)
            self.run("PREPARE setl_trial FROM @setl_trial", session)
        except pymysql.MySQLError as error:
            if isinstance(failure := translate(error), TransientError):
                raise failure from error
            return False
        return True

    def close(self) -> None:
        """Give the lock and the connection up."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(pymysql.MySQLError, OSError):
            if self._ticket is not None:
                writers.forget_writer(connection, self._ticket.pipeline_key, self._own_id)
            connection.close()

    def _watched(self, connection: Connection[Any], statement: str) -> None:
        # In a thread of its own: no time limit suits both an ALTER of hours and a network that
        # is gone, so every now and then another connection asks whether the statement's lives.
        failures: list[BaseException] = []

        def work() -> None:
            try:
                cast("Any", connection).query(statement)
            except BaseException as error:  # noqa: BLE001 - raised below
                failures.append(error)

        thread = threading.Thread(target=work, name="schema-change", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if thread.is_alive() and not self._lives():
                self._connection = None  # closing it would wait for it
                with suppress(OSError):
                    vars(connection)["_sock"].shutdown(socket.SHUT_RDWR)  # ends the thread
                raise TransientError("the connection on which a schema change runs is gone")
        if failures:
            raise failures[0]

    def _lives(self) -> bool:
        """Whether the server still has the connection; False if it does not answer."""
        ticket = self._ticket
        if ticket is None:
            return False
        try:
            look = connect(self._endpoint)
            try:
                return writers.is_alive(look, ticket.pipeline_key, self._own_id)
            finally:
                look.close()
        except (pymysql.MySQLError, OSError, TransientError):
            return False
