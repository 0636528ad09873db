"""Connections that a process keeps: what is asked on one that has ended, is asked on another."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pymysql
from pymysql.connections import Connection

from setl.errors import TransientError
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating, was_cut_off
from setl.systems.mysql.odd_utf8 import read_odd_utf8
from setl.systems.mysql.values.row_values import RAW_VALUES

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

_connections: dict[tuple[int, CachedConnection], Connection[Any]] = {}


def once_more_if_cut_off(ask: Callable[[], _Answer], who: str, *, cached: bool) -> _Answer:
    """Ask; once more if a connection that was kept had ended since the last time.

    The first attempt has dropped that connection, so the second one opens another. What may have
    been done the first time is done again.

    Args:
        ask: what to do.
        who: asks, for the log.
        cached: whether the first attempt has a connection from before.
    """
    try:
        return ask()
    except TransientError as error:
        if not (cached and was_cut_off(error.__cause__)):
            raise
        _log.info("%s: connecting again: %s", who, error)
    return ask()


@dataclass(frozen=True, slots=True)
class CachedConnection:
    """A connection of this process to one server, for one purpose. Picklable.

    Tasks look rows up with it; they come and go, and it stays.

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
        cached = (os.getpid(), self) in _connections
        return once_more_if_cut_off(lambda: self._ask(question), str(self.endpoint), cached=cached)

    def _ask(self, question: Callable[[Connection[Any]], _Answer]) -> _Answer:
        try:
            return question(self._connection())
        except BaseException:
            self._drop()
            raise

    def _connection(self) -> Connection[Any]:
        # A fork has copied what the other process had open, which is not ours to use.
        cache_key = (os.getpid(), self)
        connection = _connections.get(cache_key)
        if connection is None:
            connection = connect(self.endpoint, conv=RAW_VALUES, lock_wait=self.lock_wait)
            read_odd_utf8(connection)
            with translating(self.endpoint), connection.cursor() as cursor:
                for statement in self.first:
                    cursor.execute(statement)
            _connections[cache_key] = connection
        return connection

    def _drop(self) -> None:
        connection = _connections.pop((os.getpid(), self), None)
        if connection is not None:
            with suppress(pymysql.MySQLError, OSError):
                connection.close()
