"""Binlog files that end inside a transaction, since their server died while it wrote that.

MySQL cuts such a file at the end of the last whole transaction when it starts again. MariaDB leaves
it as it is and begins another one. What stands at the cut file's end never took effect: the server
has rolled it back. The server sends it all the same, and where the last event is cut, too, it ends
the stream there with an error.

A file that the server still writes is never cut: only whole transactions are sent of it.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from mysql_event_stream import MesConnectionError, MesError, PollResult

from setl.codec.binlog.event import HEADER_BYTES, EventType, is_mariadb
from setl.codec.binlog.statements.query import parse_query
from setl.errors import SetlError, TransientError
from setl.log import fields
from setl.model.position import BinlogPosition
from setl.select.identity import temporary_server_id
from setl.systems.mysql.binlog.client import (
    DeliveringClient,
    EventClient,
    EventReader,
)
from setl.systems.mysql.binlog.errors import ends_in_event, translate, translating_damage
from setl.systems.mysql.binlog.server import FIRST_OFFSET, BinlogServer
from setl.systems.mysql.connection import MysqlEndpoint

_LOG = logging.getLogger(__name__)

_CREATED: Final = HEADER_BYTES + 52  # behind the version of the format and that of the server
_ENDS: Final = frozenset((EventType.XID, EventType.XA_PREPARE))
_OTHERS: Final = frozenset((EventType.MARIADB_GTID, EventType.ROTATE))  # begin something else
_END_STATEMENTS: Final = ("COMMIT", "ROLLBACK")
_MOST_OFFSET: Final = 0xFFFF_FFFF  # that a MariaDB server can be asked for

OpenClient = Callable[[int, BinlogPosition], EventClient]
"""Makes a client that reads as somebody from a position on; not connected yet."""


class TruncatedFiles:
    """Knows which transactions and files of a MariaDB server are whole. Belongs to one thread."""

    def __init__(
        self, endpoint: MysqlEndpoint, server: BinlogServer, open_client: OpenClient
    ) -> None:
        """Nothing is asked yet.

        Args:
            endpoint: the server, for errors.
            server: answers questions about its files.
            open_client: reads them.
        """
        self._endpoint = endpoint
        self._server = server
        self._open_client = open_client
        self._whole: BinlogPosition | None = None

    def is_whole(self, begin: BinlogPosition, wanted: Callable[[], bool]) -> bool:
        """Whether the transaction that begins at a position stands whole in its file.

        All of it is read ahead if nothing else tells. Only the last transaction before a start of
        the server needs that.

        Args:
            begin: the transaction's beginning.
            wanted: whether anybody still wants to know.

        Raises:
            SetlError: the server does not answer.
        """
        if begin == self._whole:
            return True  # reading began again while it was being read
        following = self._file_after(begin.file)
        if (
            following is not None
            and begin.offset <= _MOST_OFFSET  # else it is noticed at its end, when rows are out
            and self._begun_by_start(following)
            and not self._ends(begin, wanted)
        ):
            _LOG.warning(
                "the source died while it wrote a transaction, which is left out",
                extra=fields(server=str(self._endpoint), position=str(begin)),
            )
            return False
        self._whole = begin
        return True

    def after_cut(self, position: BinlogPosition) -> BinlogPosition | None:
        """Where a stream goes on that was ended by a cut event; None if that is not known.

        Raises:
            SetlError: the server does not answer.
        """
        known = position.origin
        if known is not None and known.server != self._server.identity():
            return None
        following = self._file_after(position.file)
        if following is None or not self._begun_by_start(following):
            return None
        return BinlogPosition(following, FIRST_OFFSET, origin=known)

    def _file_after(self, file: str) -> str | None:
        """The file that the server began after another one; None if it is still written."""
        names = [binlog_file.name for binlog_file in self._server.files()]
        if file not in names[:-1]:
            return None
        return names[names.index(file) + 1]

    def _begun_by_start(self, file: str) -> bool:
        """Whether a MariaDB server began a file when it was started, and not after a full one."""
        for event in self._events(BinlogPosition(file, FIRST_OFFSET)):
            data = event.data or b""
            if data[4] == EventType.FORMAT_DESCRIPTION:
                with translating_damage(data, BinlogPosition(file, FIRST_OFFSET)):
                    (created,) = struct.unpack_from("<I", data, _CREATED)
                return created != 0 and is_mariadb(data)
        return False

    def _ends(self, begin: BinlogPosition, wanted: Callable[[], bool]) -> bool:
        """Whether the end of a transaction follows its beginning in the same file."""
        begun = False
        for event in self._events(begin):
            if not wanted():
                raise TransientError("the source was closed", server=self._endpoint)
            kind = (event.data or b"")[4]
            if begun and kind in _OTHERS:
                return False
            begun = begun or kind == EventType.MARIADB_GTID
            with translating_damage(event.data or b"", begin):
                if begun and (kind in _ENDS or (kind == EventType.QUERY and _is_end(event))):
                    return True
        return False

    def _events(self, position: BinlogPosition) -> Iterator[PollResult]:
        """The events from a position on, to where one is cut; raises SetlError."""
        server_id = temporary_server_id()
        with closing(self._open_client(server_id, position)) as client:
            try:
                client.connect()
                client.start()
                while True:
                    for event in client.poll_batch():
                        if event.data is not None:
                            yield event
            except (MesError, MesConnectionError) as error:
                if not ends_in_event(error):
                    failure = translate(error, server_id)
                    raise failure.at(server=self._endpoint, position=position) from error


class TruncatedFilesReader:
    """Reads on in the next file where the server's death cut an event; else one client.

    All but `stop` belong to one thread.
    """

    def __init__(
        self,
        open_own: Callable[[BinlogPosition], DeliveringClient],
        start: BinlogPosition,
        position: Callable[[], BinlogPosition],
        cut: TruncatedFiles,
    ) -> None:
        """Nothing is connected yet.

        Args:
            open_own: makes a client that begins at a position.
            start: the first position.
            position: behind the last event that was handed on.
            cut: says where a stream goes on.
        """
        self._open_own, self._position, self._cut = open_own, position, cut
        self._client = open_own(start)
        self._stopped = False
        self._lock = threading.Lock()

    def connect(self) -> None:
        """See `DeliveringClient.connect`."""
        self._client.connect()

    def start(self) -> None:
        """See `DeliveringClient.start`."""
        self._client.start()

    def deliver(self, to: EventReader) -> None:
        """See `DeliveringClient.deliver`."""
        try:
            self._client.deliver(to)
        except MesConnectionError as error:
            following = self._after(error)
            if following is None:
                raise
            self._go_on(following)

    @property
    def arriving(self) -> int:
        """See `DeliveringClient.arriving`."""
        return self._client.arriving

    def stop(self) -> None:
        """See `DeliveringClient.stop`."""
        with self._lock:
            self._stopped = True
            client = self._client
        client.stop()

    def close(self) -> None:
        """See `DeliveringClient.close`."""
        self.stop()
        self._client.close()

    def _after(self, error: MesConnectionError) -> BinlogPosition | None:
        """Where to go on after an error; None if it is to be reported."""
        if not ends_in_event(error):
            return None
        try:
            return self._cut.after_cut(self._position())
        except SetlError as problem:
            raise TransientError(
                f"where the binlog goes on behind {self._position()} could not be asked: {problem}"
            ) from problem

    def _go_on(self, following: BinlogPosition) -> None:
        _LOG.warning(
            "the source died while it wrote its binlog, whose next file is read on",
            extra=fields(position=str(self._position()), following=str(following)),
        )
        self._client.close()
        client = self._open_own(following)
        with self._lock:
            self._client = client
            if self._stopped:
                raise TransientError("the source was closed")
        # The server names the file first, and with that what was cut off is forgotten.
        client.connect()
        client.start()


def _is_end(event: PollResult) -> bool:
    """Whether a statement ends the transaction that it stands in."""
    _, text = parse_query(event.data or b"", checksum=event.checksum_enabled)
    return text.upper() in _END_STATEMENTS
