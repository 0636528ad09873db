"""Looks for something in what a stream has not come to yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final

from mysql_event_stream import MesConnectionError, MesError

from setl.clock import Clock
from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    EVENT_HEADER,
    EventType,
    begins_server,
    rotated_to,
)
from setl.codec.binlog.inflation import inflated_query
from setl.codec.binlog.rows.row_chunks import offset_behind
from setl.codec.binlog.statements.query import parse_query
from setl.model.position import BinlogPosition, binlog_file_number
from setl.select.identity import temporary_server_id
from setl.systems.mysql.binlog.errors import is_lost, translate, translating_damage
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.stream import StreamLimits, open_client
from setl.systems.mysql.connection import MysqlEndpoint

_QUERIES: Final = frozenset({EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED})


def finds_statement(
    endpoint: MysqlEndpoint,
    start: BinlogPosition,
    wanted: Callable[[str, str], bool],
    clock: Clock,
    limit: float,
) -> bool | None:
    """Whether a statement is in the binlog between a position and its end.

    Args:
        endpoint: the server.
        start: a transaction boundary.
        wanted: tells by a session's schema and a statement whether it is one.
        clock: for the limit.
        limit: seconds to read at most.

    Returns:
        None if the server does not have the position, is another one than the position is of, or
        has more than it sends within the limit.

    Raises:
        TransientError: the server does not answer.
        ConfigurationError: it refuses the account.
    """

    def is_wanted(event: bytes, checksum: bool) -> bool:  # noqa: FBT001
        return event[4] in _QUERIES and wanted(*_statement(event, checksum=checksum))

    return _finds(endpoint, start, is_wanted, clock, limit)


def finds_server_start(
    endpoint: MysqlEndpoint, start: BinlogPosition, clock: Clock, limit: float
) -> bool | None:
    """Whether the server was started after it wrote what is before a position.

    Returns and raises what `finds_statement` does.
    """
    return _finds(endpoint, start, lambda event, _: begins_server(event), clock, limit)


def _finds(
    endpoint: MysqlEndpoint,
    start: BinlogPosition,
    wanted: Callable[[bytes, bool], bool],
    clock: Clock,
    limit: float,
) -> bool | None:
    """See `finds_statement`; `wanted` tells by an event, and whether it has a checksum."""
    end = BinlogServer(endpoint).latest()
    if start.origin and end.origin and start.origin.server != end.origin.server:
        return None
    if start.order >= end.order:
        return False
    file, offset, until = start.file, start.offset, clock.monotonic() + limit
    server_id = temporary_server_id()
    with closing(open_client(endpoint, server_id, StreamLimits(), start)) as client:
        try:
            client.connect()
            client.start()
            while clock.monotonic() < until:
                for event in client.poll_batch():
                    if event.data is None:
                        continue
                    _, kind, _, _, behind, flags = EVENT_HEADER.unpack_from(event.data)
                    with translating_damage(event.data, BinlogPosition(file, offset)):
                        if kind == EventType.ROTATE:
                            file, offset = rotated_to(event.data, checksum=event.checksum_enabled)
                        elif behind and not flags & ARTIFICIAL_FLAG:
                            offset = offset_behind(offset, behind)
                        found = wanted(event.data, event.checksum_enabled)
                    if found:
                        return True
                    if (binlog_file_number(file), offset) >= end.order:
                        return False
        except (MesError, MesConnectionError) as error:
            if is_lost(error):
                return None
            raise translate(error, server_id).at(server=endpoint, position=start) from error
    return None


def _statement(event: bytes, *, checksum: bool) -> tuple[str, str]:
    if event[4] == EventType.MARIADB_QUERY_COMPRESSED:
        return parse_query(inflated_query(event, checksum=checksum), checksum=False)
    return parse_query(event, checksum=checksum)
