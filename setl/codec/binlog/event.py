"""Event types and fixed layouts of the binlog.

Sources: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html and
https://mariadb.com/kb/en/replication-protocol/. Numbers from 160 on are MariaDB's own.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from setl.model.position import binlog_file_number

# timestamp, type, server id, size, position of the next event, flags
EVENT_HEADER: Final = struct.Struct("<IBIIIH")
HEADER_BYTES: Final = 19
CHECKSUM_BYTES: Final = 4
CHECKED: Final = 0x2144DF1C  # the CRC32 of anything with its own CRC32 behind it
IGNORABLE_FLAG: Final = 0x80  # LOG_EVENT_IGNORABLE_F: who does not know the event may skip it
ARTIFICIAL_FLAG: Final = 0x20  # LOG_EVENT_ARTIFICIAL_F: made for this connection, in no file


class EventType(IntEnum):
    """The event types that mean something here."""

    QUERY = 2
    ROTATE = 4
    EXECUTE_LOAD_QUERY = 18
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    OLD_WRITE_ROWS = 20
    OLD_UPDATE_ROWS = 21
    OLD_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    GTID_TAGGED = 42
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED = 169
    MARIADB_UPDATE_ROWS_COMPRESSED = 170
    MARIADB_DELETE_ROWS_COMPRESSED = 171
    MARIADB_PARTIAL_ROWS = 172


INSERTS: Final = frozenset({EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS})
UPDATES: Final = frozenset(
    {EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS, EventType.PARTIAL_UPDATE_ROWS}
)
DELETES: Final = frozenset({EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS})
# MariaDB's, whose images are compressed, and the types that they are otherwise.
COMPRESSED_ROWS: Final[dict[int, EventType]] = {
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: EventType.WRITE_ROWS_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: EventType.UPDATE_ROWS_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: EventType.DELETE_ROWS_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: EventType.WRITE_ROWS,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: EventType.UPDATE_ROWS,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: EventType.DELETE_ROWS,
}
ROWS: Final = INSERTS | UPDATES | DELETES | COMPRESSED_ROWS.keys()
# Version 1, MariaDB's: without the block of extra data.
FIRST_ROWS: Final = frozenset(
    {EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1}
)

# Carry nothing that has to be applied: UNKNOWN, STOP, INTVAR, RAND, USER_VAR, APPEND_BLOCK,
# DELETE_FILE, BEGIN_LOAD_QUERY (values and files for a statement that follows), HEARTBEAT,
# IGNORABLE, ROWS_QUERY, TRANSACTION_CONTEXT, VIEW_CHANGE, HEARTBEAT_V2; MariaDB's ANNOTATE_ROWS,
# BINLOG_CHECKPOINT and START_ENCRYPTION (the server sends events decrypted).
SKIPPED: Final = frozenset({0, 3, 5, 9, 11, 13, 14, 17, 27, 28, 29, 36, 37, 41, 160, 161, 164})


_LAYOUT_AT: Final = HEADER_BYTES + 2 + 50 + 4  # behind versions and a time
_FORMAT: Final = 4  # since MySQL 5.0
# Bytes of fixed meaning behind the header, by type; of those types whose readers count on them.
_FRONTS: Final = {
    EventType.QUERY: 13,
    EventType.ROTATE: 8,
    EventType.TABLE_MAP: 8,
    **dict.fromkeys(FIRST_ROWS, 8),
    EventType.WRITE_ROWS: 10,
    EventType.UPDATE_ROWS: 10,
    EventType.DELETE_ROWS: 10,
}
_MYSQL_FRONTS: Final = {
    EventType.GTID: 42,
    EventType.ANONYMOUS_GTID: 42,
    EventType.PARTIAL_UPDATE_ROWS: 10,
}
_MARIADB_FRONTS: Final = {
    EventType.MARIADB_GTID: 19,
    EventType.MARIADB_GTID_LIST: 4,
    EventType.MARIADB_QUERY_COMPRESSED: 13,
    **{kind: _FRONTS[plain] for kind, plain in COMPRESSED_ROWS.items()},
}
_NOT_WRITTEN: Final = FIRST_ROWS  # MySQL 9 names no size for them


def layout_fault(format_description: bytes) -> str:
    """What a FORMAT_DESCRIPTION event says of events that is not so here; "" if they agree.

    It has the sizes of the header and, for each type, of what stands in front of an event's body.
    Readers here go by fixed ones. Raises IndexError if the event is too short.
    """
    event = format_description
    version = int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + 2], "little")
    if version != _FORMAT:
        return f"its format is {version} and not {_FORMAT}"
    header, fronts = event[_LAYOUT_AT], event[_LAYOUT_AT + 1 :]
    if header != HEADER_BYTES:
        return f"headers have {header} bytes and not {HEADER_BYTES}"
    # It says of itself where the list ends. Servers before MySQL 5.6 have nothing behind it.
    count = fronts[EventType.FORMAT_DESCRIPTION - 1] - (_LAYOUT_AT + 1 - HEADER_BYTES)
    if len(fronts) != count + 1 + CHECKSUM_BYTES:
        return f"{count} types of events are listed in {len(event)} bytes"
    if fronts[count] > 1:
        return f"checksums are of the kind {fronts[count]}"
    known = _FRONTS | (_MARIADB_FRONTS if is_mariadb(event) else _MYSQL_FRONTS)
    for kind, size in known.items():
        expects = fronts[kind - 1] if kind <= count else size
        if expects != size and (expects or kind not in _NOT_WRITTEN):
            return f"events of type {kind} have {expects} bytes in front and not {size}"
    return ""


def has_checksums(format_description: bytes) -> bool:
    """Whether events after this FORMAT_DESCRIPTION event end with a CRC32.

    The event names the algorithm in the byte before its own checksum: 0 none, 1 CRC32.
    """
    return format_description[-CHECKSUM_BYTES - 1] == 1


def without_checksums(format_description: bytes) -> bytes:
    """The same FORMAT_DESCRIPTION event, but saying that events have no CRC32.

    Those that are compressed together with others have none.
    """
    at = len(format_description) - CHECKSUM_BYTES - 1
    return format_description[:at] + b"\0" + format_description[at + 1 :]


def begins_server(event: bytes) -> bool:
    """Whether an event begins the first file that a server wrote after it was started.

    The FORMAT_DESCRIPTION of such a file has the time behind version and server version; that of
    other files has 0 there, and so has one that is sent to who begins in the middle of a file.
    """
    at = HEADER_BYTES + 2 + 50
    return event[4] == EventType.FORMAT_DESCRIPTION and any(event[at : at + 4])


def is_mariadb(format_description: bytes) -> bool:
    """Whether a MariaDB server wrote this FORMAT_DESCRIPTION event.

    It lists a length for each event type there is, one byte each, and only MariaDB has types
    beyond 160. In front of the list stand version, server version, a time and a length.
    """
    return len(format_description) - HEADER_BYTES - 57 - 1 - CHECKSUM_BYTES >= 160


def major_version(format_description: bytes) -> int:
    """The first number of the version of the server that wrote this event; 0 if it has none."""
    text = format_description[HEADER_BYTES + 2 : HEADER_BYTES + 52].partition(b".")[0]
    return int(text) if text.isdigit() else 0


def body_of(event: bytes, *, checksum: bool) -> bytes:
    """What lies between an event's header and its checksum."""
    return event[HEADER_BYTES : len(event) - CHECKSUM_BYTES if checksum else len(event)]


def rotated_to(rotate: bytes, *, checksum: bool) -> tuple[str, int]:
    """The file that a ROTATE event names, and the offset in it at which the stream goes on.

    Raises:
        struct.error, ValueError: the bytes are none.
    """
    body = body_of(rotate, checksum=checksum)
    (offset,) = struct.unpack_from("<Q", body)
    file = body[8:].decode("utf-8")
    if "\0" in file or offset >> 63:
        raise ValueError(f"it names the position {offset} of the file {file!r}")
    binlog_file_number(file)  # raises ValueError if there is none, as each file of a server has
    return file, offset


def packed_integer(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer at `at`, and where it ends. Raises LookupError if it is none."""
    first = data[at]
    if first < 251:
        return first, at + 1
    end = at + 1 + {252: 2, 253: 3, 254: 8}[first]
    if end > len(data):
        raise IndexError("a number ends behind the bytes that hold it")
    return int.from_bytes(data[at + 1 : end], "little"), end


def extra_data_end(event: bytes, at: int) -> int:
    """Where the block of extra data ends that a ROWS event of version 2 has at `at`.

    Raises:
        ValueError: its size, which includes the two bytes that say it, is none.
    """
    size = int.from_bytes(event[at : at + 2], "little")
    if not 2 <= size <= len(event) - at:
        raise ValueError(f"its extra data has {size} bytes")
    return at + size
