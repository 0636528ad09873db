"""Looks up XA transactions that were prepared before a stream began.

One may stay prepared for hours, and be rolled back under another leadership than the one that read
its rows. What it changed stands in the binlog, so nothing has to be kept: the files are read again,
the newest first. A transaction never goes on in another file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from mysql_event_stream import MesConnectionError, MesError, PollResult

from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    EVENT_HEADER,
    EventType,
    rotated_to,
)
from setl.codec.binlog.payload import payload_events
from setl.codec.binlog.rows.row_chunks import offset_behind
from setl.codec.binlog.tables.table_map import names_of
from setl.codec.binlog.transactions.prepared import Matters, Xid, prepared_xid
from setl.errors import TransientError
from setl.log import fields
from setl.model.position import BinlogPosition
from setl.select.identity import temporary_server_id
from setl.systems.mysql.binlog.client import EventClient
from setl.systems.mysql.binlog.errors import ends_in_event, is_lost, translate, translating_damage
from setl.systems.mysql.binlog.server import FIRST_OFFSET, BinlogServer
from setl.systems.mysql.connection import MysqlEndpoint

_LOG = logging.getLogger(__name__)

_BEGINS: Final = frozenset(
    (EventType.GTID, EventType.GTID_TAGGED, EventType.ANONYMOUS_GTID, EventType.MARIADB_GTID)
)

OpenClient = Callable[[int, BinlogPosition], EventClient]
"""Makes a client that reads as somebody from a position on; not connected yet."""


class EarlierPrepares:
    """Knows what was prepared on one server. Belongs to one thread.

    Attributes:
        looking: whether it is reading, so that the stream that waits for it stands still; for any
            thread.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        server: BinlogServer,
        open_client: OpenClient,
        matters: Matters,
    ) -> None:
        """Nothing is asked yet.

        Args:
            endpoint: the server, for errors.
            server: answers questions about its files.
            open_client: reads them.
            matters: whether rows of a table go anywhere.
        """
        self._endpoint = endpoint
        self._server = server
        self._open_client = open_client
        self._matters = matters
        self.looking = False
        self._last: tuple[Xid, BinlogPosition, bool | None] | None = None

    def mattered(
        self, xid: Xid, position: BinlogPosition, wanted: Callable[[], bool]
    ) -> bool | None:
        """Whether what was prepared last under an id had rows that go anywhere.

        Args:
            xid: the transaction's id.
            position: where its rollback ends.
            wanted: whether anybody still wants to know.

        Returns:
            None if the binlog does not have it.

        Raises:
            SetlError: the server does not answer.
        """
        # While much is read, the server may give up the stream that waits for the answer, and
        # the next stream asks again.
        if self._last is None or self._last[:2] != (xid, position):
            _LOG.info(
                "an XA transaction was rolled back that was prepared earlier; the binlog is read"
                " again for the tables that it had changed",
                extra=fields(server=str(self._endpoint), position=str(position)),
            )
            self.looking = True
            try:
                self._last = (xid, position, self._find(xid, position, wanted))
            finally:
                self.looking = False
        return self._last[2]

    def _find(self, xid: Xid, position: BinlogPosition, wanted: Callable[[], bool]) -> bool | None:
        if position.origin is not None and position.origin.server != self._server.identity():
            raise TransientError("another server answers since the binlog was opened")
        names = [file.name for file in self._server.files()]
        if position.file not in names:
            return None
        for name in reversed(names[: names.index(position.file) + 1]):
            found = None
            tables: set[tuple[str, str]] = set()
            for event, end in self._transactions(name, position):
                if not wanted():
                    raise TransientError("the source was closed", server=self._endpoint)
                kind = event[4]
                if kind in _BEGINS:
                    tables.clear()
                    continue
                with translating_damage(event, end):
                    if kind == EventType.TABLE_MAP:
                        tables.add(names_of(event))
                        continue
                    prepared = prepared_xid(event)
                if prepared == xid:
                    found = any(self._matters(*table) for table in tables)
            if found is not None:
                return found
        return None

    def _transactions(
        self, file: str, position: BinlogPosition
    ) -> Iterator[tuple[bytes, BinlogPosition]]:
        """The events of a file before a position that `_find` looks at, and where they end."""
        for result, end in self._events(file, position):
            event = result.data or b""
            kind = event[4]
            if kind == EventType.TRANSACTION_PAYLOAD:
                inner = payload_events(event, checksum=result.checksum_enabled)
                with translating_damage(event, end):
                    yield from ((each, end) for each in inner if _is_of_interest(each[4]))
            elif _is_of_interest(kind):
                yield event, end

    def _events(
        self, file: str, position: BinlogPosition
    ) -> Iterator[tuple[PollResult, BinlogPosition]]:
        server_id, offset = temporary_server_id(), 0
        with closing(self._open_client(server_id, BinlogPosition(file, FIRST_OFFSET))) as client:
            try:
                client.connect()
                client.start()
                while True:
                    for result in client.poll_batch():
                        if result.data is None:
                            continue
                        _, kind, _, _, end, flags = EVENT_HEADER.unpack_from(result.data)
                        if kind == EventType.ROTATE:
                            with translating_damage(result.data, BinlogPosition(file, offset)):
                                to, _ = rotated_to(result.data, checksum=result.checksum_enabled)
                            if to != file:
                                return
                        if end and not flags & ARTIFICIAL_FLAG:
                            offset = offset_behind(offset, end)
                            if file == position.file and offset >= position.offset:
                                return
                        yield result, BinlogPosition(file, offset)
            except (MesError, MesConnectionError) as error:
                if ends_in_event(error):
                    return  # what is cut off never took effect
                if is_lost(error):  # purged meanwhile: next time it is not among the files
                    raise TransientError(
                        f"the source does not send {file}: {error}", server=self._endpoint
                    ) from error
                raise translate(error, server_id).at(
                    server=self._endpoint, position=position
                ) from error


def _is_of_interest(kind: int) -> bool:
    return kind in _BEGINS or kind in (EventType.TABLE_MAP, EventType.XA_PREPARE)
