"""Connections that a process keeps to look rows up, since tasks come and go."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pymysql
from pymysql.connections import Connection

from setl.errors import TransientError
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating, was_cut_off
from setl.systems.mysql.row_values import RAW_VALUES

_Answer = TypeVar("_Answer")

_connections: dict[tuple[int, KeptConnection], Connection[Any]] = {}


@dataclass(frozen=True, slots=True)
class KeptConnection:
    """A connection of this process to one server, for one purpose. Picklable.

    Attributes:
        endpoint: the server.
        lock_wait: seconds for which a statement waits for a row's lock.
        first: statements that a new connection begins with.
    """

    endpoint: MysqlEndpoint
    lock_wait: int
    first: tuple[str, ...] = ()

    def ask(self, question: Callable[[Connection[Any]], _Answer]) -> _Answer:
        """What a question finds; asked once more if the connection had ended since the last one.

        Each worker has a connection of its own, so after a restart of the server each would
        fail a whole load of its own.

        Raises:
            SetlError: the server cannot be reached, or what the question raises.
        """
        kept = (os.getpid(), self) in _connections
        try:
            return self._ask(question)
        except TransientError as error:
            if not (kept and was_cut_off(error.__cause__)):
                raise
        return self._ask(question)

    def _ask(self, question: Callable[[Connection[Any]], _Answer]) -> _Answer:
        try:
            return question(self._connection())
        except BaseException:
            self._drop()
            raise

    def _connection(self) -> Connection[Any]:
        # A fork has copied what the other process had open, which is not ours to use.
        place = (os.getpid(), self)
        connection = _connections.get(place)
        if connection is None:
            connection = connect(self.endpoint, conv=RAW_VALUES, lock_wait=self.lock_wait)
            with translating(self.endpoint), connection.cursor() as cursor:
                for statement in self.first:
                    cursor.execute(statement)
            _connections[place] = connection
        return connection

    def _drop(self) -> None:
        connection = _connections.pop((os.getpid(), self), None)
        if connection is not None:
            with suppress(pymysql.MySQLError, OSError):
                connection.close()
