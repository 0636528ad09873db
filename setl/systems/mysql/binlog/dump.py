"""A connection that streams a binlog as its events are, whatever the server's settings.

Whoever reads looks at the bytes as they came: most of them are row events, which need no object
of their own each. Protocol:
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_binlog_dump_gtid.html and
https://mariadb.com/kb/en/com_binlog_dump/.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mysql_event_stream import MesConnectionError, MesError, MesErrorCode, PollResult
from pymysql.connections import Connection

from setl.codec.binlog.event import CHECKED, HEADER_BYTES, EventType, has_checksums
from setl.codec.binlog.transactions.gtid import MysqlGtids
from setl.errors import FatalError, TransientError
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.client import EventReader
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating

_COM_BINLOG_DUMP: Final = 0x12
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_THROUGH_GTID: Final = 4
_FLAGS: Final = 0  # 2 would have MariaDB send the statements (ANNOTATE_ROWS) that rows come from
_MOST_OFFSET: Final = 0xFFFF_FFFF  # that the older of the two commands can name

# Servers that do without one of these settings do as it says.
# FULL_NODUP of MariaDB leaves out of the second image of an update what the first one has.
_NEEDED: Final = {"binlog_format": ("ROW",), "binlog_row_image": ("FULL", "FULL_NODUP")}

_FULL_PACKET: Final = 0xFF_FFFF  # another one goes on with it
_OK: Final = 0x00  # the status in front of an event
_ERROR: Final = 0xFF
_HEARTBEATS: Final = frozenset((27, 41))  # a server says that it has nothing to send
_END_AT: Final = 13  # where an event says at which offset it ends
_PIECE: Final = 256 * 1024
# Room for what a quiet source sends. Room for a piece is asked of the system each time, and given
# back: a quarter of the cost of a heartbeat.
_LITTLE: Final = 16 * 1024

# Both names of each variable, since servers dropped the older ones at different times.
_SETTINGS: Final = (
    "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, "
    "@source_binlog_checksum = @@GLOBAL.binlog_checksum, "
    "@master_heartbeat_period = 3000000000, @source_heartbeat_period = 3000000000, "
    "@mariadb_slave_capability = 4"
)


class DumpClient:
    """Reads one stream; the methods are those of `BinlogClient`.

    All but `stop` belong to one thread.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        server_id: int,
        start: BinlogPosition | str,
        *,
        silence: float,
        event_bytes: int,
    ) -> None:
        """Nothing is connected yet.

        Args:
            endpoint: the server and the account.
            server_id: as whom to read.
            start: a position in the binlog, or the GTIDs that are not to be sent.
            silence: seconds without anything from the server after which it is lost.
            event_bytes: the largest event that is accepted.
        """
        self._endpoint = endpoint
        self._server_id = server_id
        self._start = start
        self._silence = silence
        self._event_bytes = event_bytes
        self._connection: Connection[Any] | None = None
        self._socket: socket.socket | None = None
        self._checksum = False
        self._data = b""
        self._room = _LITTLE  # bytes that are taken at a time
        self._lacking = 0  # bytes that the event at the front lacks, as far as known
        self._arriving = 0
        self._error: MesError | MesConnectionError | FatalError | None = None
        self._sent_to = 0

    def connect(self) -> None:
        """Log in. Raises what `setl.systems.mysql.connection.connect` raises."""
        self._connection = connect(self._endpoint)
        self._socket = vars(self._connection)["_sock"]

    def start(self) -> None:
        """Ask for the stream.

        Raises:
            FatalError: the position cannot be asked for.
            MesConnectionError: the server does not log whole rows.
            SetlError: the server does not answer.
        """
        connection, stream = self._connection, self._socket
        if connection is None or stream is None:
            raise TransientError("the source is not connected")
        mariadb = "mariadb" in str(vars(connection)["server_version"]).lower()
        with translating(self._endpoint), connection.cursor() as cursor:
            cursor.execute(_SETTINGS)
            cursor.execute("SHOW GLOBAL VARIABLES LIKE 'binlog\\_%'")
            found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
            self._checksum = found.get("binlog_checksum", "NONE").upper() != "NONE"
            if mariadb and isinstance(self._start, str):
                cursor.execute("SET @slave_connect_state = %s", (self._start,))
        _check(found)
        command = self._command(mariadb=mariadb)
        with translating(self._endpoint):
            stream.settimeout(self._silence)
            stream.sendall(struct.pack("<I", len(command)) + command)
            _limit_silence(stream, self._silence)

    def deliver(self, to: EventReader) -> None:
        """Hand on all whole events that have come; waits for one.

        Raises:
            MesError, MesConnectionError: the server ends the stream with an error.
            TransientError: the connection is lost.
            FatalError: an event is too large.
            SetlError: what `to` raises. What came before an error was handed on.
        """
        while not self._forward(to):
            self._receive()

    @property
    def arriving(self) -> int:
        """See `DeliveringClient.arriving`."""
        return self._arriving

    @property
    def sent_to(self) -> int:
        """See `EventClient.sent_to`."""
        return self._sent_to

    def poll_batch(self) -> Sequence[PollResult]:
        """The events that have come, one by one; waits for one. Raises what `deliver` raises."""
        if self._error is not None:
            raise self._error
        found = _Collected()
        try:
            self.deliver(found)
        except (MesError, MesConnectionError, FatalError) as error:
            if not found.events:
                raise
            self._error = error  # what came before it is still good
        return found.events

    def stop(self) -> None:
        """End the connection, so that who waits for it is reported; from any thread."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self.stop()
        if self._socket is not None:
            # The server learns of the end at once even if it is sending and nobody reads: its
            # thread would hang in that for a minute, and MariaDB lets the next reader wait for it.
            reset = struct.pack("ii", 1, 0)
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            self._socket.close()

    def _command(self, *, mariadb: bool) -> bytes:
        start, server = self._start, self._server_id
        if isinstance(start, str):
            if mariadb:
                return struct.pack("<BIHI", _COM_BINLOG_DUMP, 4, _FLAGS, server)
            gtids = MysqlGtids(start).encoded()
            head = struct.pack("<BHII", _COM_BINLOG_DUMP_GTID, _THROUGH_GTID, server, 0)
            return head + struct.pack("<QI", 4, len(gtids)) + gtids
        file = start.file.encode()
        if start.offset <= _MOST_OFFSET:
            return struct.pack("<BIHI", _COM_BINLOG_DUMP, start.offset, _FLAGS, server) + file
        if mariadb:
            raise FatalError(
                f"the binlog cannot be read from {start}: a MariaDB server cannot be asked for "
                "positions beyond 4 GiB",
                hint="If the file ends there, reset the position to the beginning of the next one",
                position=start,
            )
        head = struct.pack("<BHII", _COM_BINLOG_DUMP_GTID, 0, server, len(file))
        return head + file + struct.pack("<QI", start.offset, 0)

    def _receive(self) -> None:
        """Wait for more bytes, and for all that the event at the front lacks."""
        pieces, lacking = [self._data], max(1, self._lacking)
        while lacking > 0:
            try:
                piece = self._socket.recv(self._room) if self._socket is not None else b""
            except BlockingIOError as error:
                raise TransientError("the connection to the source was lost: timed out") from error
            except OSError as error:
                raise TransientError(f"the connection to the source was lost: {error}") from error
            if not piece:
                raise TransientError("the connection to the source was lost")
            if len(piece) == self._room:
                self._room = _PIECE
            elif len(piece) < _LITTLE:
                self._room = _LITTLE
            pieces.append(piece)
            lacking -= len(piece)
            # An event of a gigabyte may be on its way for minutes.
            self._arriving += len(piece)
        self._data = b"".join(pieces)

    def _forward(self, to: EventReader) -> bool:
        """Hand on what is whole; returns whether there was anything."""
        data, at = self._data, 0
        try:
            while True:
                at = to.read_rows(data, at, checksum=self._checksum)
                packet, end = self._packet(at)
                if end == at:
                    return at > 0
                at = end
                self._event(packet, to)
        finally:
            self._data = data[at:]
            self._arriving = len(self._data)

    def _packet(self, at: int) -> tuple[bytes, int]:
        """What a packet holds, joined with those that go on with it, and where it ends."""
        data, parts, size = self._data, list[bytes](), 0
        begin, self._lacking = at, 0
        while at + 4 <= len(data):
            length = int.from_bytes(data[at : at + 3], "little")
            size += length
            if size > self._event_bytes + 1:
                raise self._too_large(begin + 4)
            end = at + 4 + length
            if end > len(data):
                self._lacking = end - len(data)
                break
            parts.append(data[at + 4 : end])
            at = end
            if length < _FULL_PACKET:
                return parts[0] if len(parts) == 1 else b"".join(parts), at
        return b"", begin

    def _too_large(self, at: int) -> FatalError:
        size = int.from_bytes(self._data[at + 10 : at + 14], "little")
        return FatalError(
            f"an event of {size} bytes is larger than the {self._event_bytes} that are accepted",
            hint="`setl stop` the channel, move past it with `setl position reset`, start it, and"
            " load the table again with `setl load --replace`",
        )

    def _event(self, packet: bytes, to: EventReader) -> None:
        if packet[:1] != bytes([_OK]):
            raise _ended(packet)
        event = packet[1:]
        if len(event) < HEADER_BYTES:
            raise MesError("an event is too short", MesErrorCode.PARSE)
        kind = event[4]
        if kind == EventType.FORMAT_DESCRIPTION:
            self._checksum = has_checksums(event)
        elif self._checksum:
            check_event(event)
        if kind in _HEARTBEATS:
            (self._sent_to,) = struct.unpack_from("<I", event, _END_AT)
            to.heartbeat()
        else:
            to.read(event, checksum=self._checksum)


class _Collected(EventReader):
    """Keeps events as they are."""

    def __init__(self) -> None:
        self.events: list[PollResult] = []

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> int:  # noqa: ARG002
        return at

    def read(self, event: bytes, *, checksum: bool) -> None:
        self.events.append(PollResult(event, is_heartbeat=False, checksum_enabled=checksum))

    def heartbeat(self) -> None:
        self.events.append(PollResult(None, is_heartbeat=True, checksum_enabled=False))


def _limit_silence(stream: socket.socket, seconds: float) -> None:
    """Let `recv` wait so long at most.

    With Python's own limit it would ask first whether there is anything, and take its turn among
    all threads twice. A heartbeat wakes the threads of sixty idle pipelines at once.
    """
    if isinstance(stream, ssl.SSLSocket):
        stream.settimeout(seconds)  # what is decrypted already cannot be waited for in the system
        return
    whole = int(seconds)
    limit = struct.pack("ll", whole, max(1, int((seconds - whole) * 1e6)))
    stream.settimeout(None)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def check_event(event: bytes) -> None:
    """Raises MesError if an event is not what its checksum says."""
    if zlib.crc32(event) != CHECKED:
        raise MesError(f"CRC32 mismatch in an event of type {event[4]}", MesErrorCode.CHECKSUM)


def _check(settings: Mapping[str, str]) -> None:
    """Refuse a server whose sessions log anything but whole rows, unless they choose to."""
    for name, needed in _NEEDED.items():
        value = settings.get(name, needed[0])
        if value.upper() not in needed:
            raise MesConnectionError(
                f"{name} must be {needed[0]}, got {value}", MesErrorCode.VALIDATION
            )


def _ended(packet: bytes) -> MesConnectionError:
    """The error that a packet is with which a server ends a stream."""
    if packet[:1] != bytes([_ERROR]):
        return MesConnectionError("the server ended the stream", MesErrorCode.STREAM)
    number = int.from_bytes(packet[1:3], "little")
    text = packet[3:].decode("utf-8", "replace")
    # "#" and five characters stand for the SQL state.
    text = text[6:] if text.startswith("#") else text
    return MesConnectionError(f"error {number}: {text}", MesErrorCode.STREAM)
