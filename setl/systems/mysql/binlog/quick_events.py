"""Tells of bytes of a binlog connection whether it takes no time to take them in."""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.event import (
    CHECKSUM_BYTES,
    DELETES,
    HEADER_BYTES,
    INSERTS,
    UPDATES,
    EventType,
)

OK: Final = 0x00
"""The status in front of an event."""

HEARTBEATS: Final = frozenset((27, 41))
"""Kinds of events with which a server says that it has nothing to send."""

KIND_AT: Final = 9
"""Where a packet says of which kind its event is: behind size, number, status and time."""

ROWS_OR_TABLES: Final = frozenset({*INSERTS, *UPDATES, *DELETES, EventType.TABLE_MAP})
"""Kinds of events that `EventReader.read_rows` may take."""

_QUICK: Final = frozenset(
    {
        *HEARTBEATS,
        *ROWS_OR_TABLES,
        EventType.MARIADB_GTID,
        EventType.GTID,
        EventType.GTID_TAGGED,
        EventType.ANONYMOUS_GTID,
        EventType.XID,
    }
)
_BEGIN: Final = b"\0BEGIN"


def takes_no_time(data: bytes, *, checksum: bool) -> bool:
    """Whether bytes are whole packets with events that no server has to be asked about.

    Those of a transaction of few rows are. A statement may end a transaction that was prepared long
    ago, a compressed transaction holds any number of rows, an error ends the stream.

    Args:
        data: bytes of a connection, where a packet begins.
        checksum: whether events end with a checksum.
    """
    at, end, tail = 0, len(data), CHECKSUM_BYTES if checksum else 0
    while at < end:
        stop = at + 4 + int.from_bytes(data[at : at + 3], "little")
        if stop > end or stop - at < 5 + HEADER_BYTES or data[at + 4] != OK:
            return False
        kind = data[at + KIND_AT]
        if kind == EventType.QUERY:
            if not data.endswith(_BEGIN, at, stop - tail):
                return False
        elif kind not in _QUICK:
            return False
        at = stop
    return True
