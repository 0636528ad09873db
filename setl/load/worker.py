"""The sinks of one worker process, which outlive the tasks that use them.

A connection costs more than a small batch, so each process keeps the sinks that it has made, for
as long as it lives. A task comes with settings and gets the sink for them.
"""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import pymysql

from setl.errors import ConfigurationError
from setl.load.sink import Loaded, LoadTicket, Sink
from setl.model.conflict import History
from setl.systems.elasticsearch.load.sink import ElasticsearchSink, ElasticsearchSinkSettings
from setl.systems.mysql import marks
from setl.systems.mysql.connection import connect, translate
from setl.systems.mysql.load import loaded
from setl.systems.mysql.load.sink import MysqlSink, MysqlSinkSettings

SinkSettings = MysqlSinkSettings | ElasticsearchSinkSettings
"""What a sink is made from; says by its type which one."""

MAX_SINKS = 16
"""Sinks of one process; beyond, the one that was not used for longest is closed."""


def make_sink(settings: SinkSettings) -> Sink:
    """A new sink, connected to nothing yet."""
    if isinstance(settings, MysqlSinkSettings):
        return MysqlSink(settings, lambda: secrets.token_hex(8))
    return ElasticsearchSink(settings)


class SinkCache:
    """Sinks by their settings. Thread-safe; a sink itself serves one thread at a time."""

    def __init__(self, limit: int = MAX_SINKS) -> None:
        self._limit = limit
        self._lock = Lock()
        self._sinks: OrderedDict[SinkSettings, Sink] = OrderedDict()
        self._process = os.getpid()

    def get(self, settings: SinkSettings) -> Sink:
        """The sink for these settings, made if there is none."""
        with self._lock:
            if self._process != os.getpid():
                # A fork has copied the sinks, but their connections are the other process's.
                self._sinks = OrderedDict()
                self._process = os.getpid()
            sink = self._sinks.pop(settings, None) or make_sink(settings)
            self._sinks[settings] = sink
            while len(self._sinks) > self._limit:
                self._sinks.popitem(last=False)[1].close()
            return sink

    def close(self) -> None:
        """Close all sinks."""
        with self._lock:
            while self._sinks:
                self._sinks.popitem()[1].close()


_sinks = SinkCache()


def sink_for(settings: SinkSettings) -> Sink:
    """This process's sink for these settings; connections that were lost come back by themselves.

    Raises:
        ConfigurationError: the settings hold an address that is none.
    """
    return _sinks.get(settings)


def settle(settings: SinkSettings, ticket: LoadTicket, histories: Sequence[History]) -> Loaded:
    """Apply what the source says of rows that both sites write; see `MysqlSink.settle`.

    Raises:
        SetlError: as `setl.load.sink.Sink.apply`.
        ConfigurationError: the target is none in which conflicts can be found.
    """
    sink = sink_for(settings)
    if not isinstance(sink, MysqlSink):
        raise ConfigurationError("a conflict policy needs a MySQL target")
    return sink.settle(ticket, histories)


def applied_through(settings: SinkSettings, ticket: LoadTicket) -> int:
    """Up to which version the pipeline's rows may be in the target already; 0 if unknown.

    See `setl.systems.mysql.marks.applied_through`; Elasticsearch keeps no such record.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    if not isinstance(settings, MysqlSinkSettings):
        return 0
    connection = connect(settings.endpoint)
    try:
        return marks.applied_through(connection, ticket.pipeline_key)
    except (pymysql.MySQLError, OSError) as error:
        raise translate(error).at(server=settings.endpoint) from error
    finally:
        connection.close()


def forget_loaded(settings: SinkSettings, ticket: LoadTicket) -> None:
    """Forget how far tables of the target have come, see `setl.systems.mysql.load.loaded`.

    For a pipeline that begins as if it never ran: places of a stream say nothing about another.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    if not isinstance(settings, MysqlSinkSettings):
        return
    connection = connect(settings.endpoint)
    try:
        loaded.forget_loaded(connection, ticket.pipeline_key)
    except (pymysql.MySQLError, OSError) as error:
        raise translate(error).at(server=settings.endpoint) from error
    finally:
        connection.close()
