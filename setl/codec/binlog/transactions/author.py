"""The writer of a transaction, as its first event names it."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from setl.codec.binlog.event import HEADER_BYTES, EventType

_SERVER_AT: Final = 5  # in every event's header
_LEAST: Final = HEADER_BYTES + 4


class Author(NamedTuple):
    """Who wrote a transaction.

    Attributes:
        server_id: of the server on which it was committed first; replicas keep it.
        thread_id: the connection there, None where the binlog does not tell: MariaDB begins a
            transaction with its GTID, which says nothing of it.
    """

    server_id: int | None = None
    thread_id: int | None = None


NOBODY: Final = Author()


def author_of(event: bytes) -> Author:
    """Read the payload of a BEGIN entry; `NOBODY` if it is none."""
    if len(event) < _LEAST:
        return NOBODY
    (server,) = struct.unpack_from("<I", event, _SERVER_AT)
    if event[4] != EventType.QUERY:
        return Author(server)
    # The post-header of QUERY begins with the thread.
    (thread,) = struct.unpack_from("<I", event, HEADER_BYTES)
    return Author(server, thread)
