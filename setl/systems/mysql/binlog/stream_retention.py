"""For how long a server keeps the binlog that a position is in."""

from __future__ import annotations

from dataclasses import replace

from setl.clock import SystemClock
from setl.errors import PositionLostError
from setl.model.position import BinlogPosition
from setl.systems.expiry import StreamRetention
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.connection import MysqlEndpoint


def binlog_retention(endpoint: MysqlEndpoint, position: BinlogPosition) -> StreamRetention | None:
    """For how long the server keeps the file that a position is in.

    A server removes a file some time after it wrote the file's last event, which is when it began
    the next one. The file that it still writes is never removed. None if another server answers
    by now, on which the position is in another file.

    Raises:
        SetlError: the server does not answer, or refuses to tell.
    """
    server = BinlogServer(endpoint)
    known = position.origin
    if known is not None and known.server and known.server != server.identity():
        return None
    retention, now = server.retention()
    stream_retention = StreamRetention(retention=retention, now=now)
    try:
        server.check(position)
    except PositionLostError as error:
        return replace(stream_retention, lost=error.brief)
    names = [file.name for file in server.files()]
    if position.file not in names[:-1]:
        return stream_retention
    following = names[names.index(position.file) + 1]
    search = BinlogSearch(endpoint, StreamLimits(), server, SystemClock())
    return replace(
        stream_retention, written=float(search.file(following, server.identity()).created)
    )
