"""The QUERY event: a statement as text, with the schema and charset of its session."""

from __future__ import annotations

import struct
from typing import Final

from setl.codec.binlog.collation import charset_of
from setl.codec.binlog.event import CHECKSUM_BYTES, HEADER_BYTES
from setl.codec.charset import decoder

# thread, seconds, length of the schema's name, error code, length of the status variables
_POST_HEADER: Final = struct.Struct("<IIBHH")

# Status variables that may stand before the charset, with their sizes; -1: length, then text.
# Servers write them in a fixed order: flags, SQL mode, catalog, AUTO_INCREMENT, charset.
_SIZES: Final = {0: 4, 1: 8, 3: 4, 6: -1}
_CHARSET: Final = 4


def parse_query(event: bytes, *, checksum: bool) -> tuple[str, str]:
    """The session's schema and the statement.

    Raises:
        struct.error, IndexError: the event ends too early.
    """
    _, _, schema_bytes, _, status_bytes = _POST_HEADER.unpack_from(event, HEADER_BYTES)
    at = HEADER_BYTES + _POST_HEADER.size
    status = event[at : at + status_bytes]
    at += status_bytes
    schema = event[at : at + schema_bytes]
    text = event[at + schema_bytes + 1 : len(event) - (CHECKSUM_BYTES if checksum else 0)]
    if text.isascii():
        return schema.decode("utf-8", "replace"), text.decode("ascii")
    return schema.decode("utf-8", "replace"), _decode(text, status)


def _decode(text: bytes, status: bytes) -> str:
    try:
        return decoder(charset_of(_client_collation(status)))(text)
    except ValueError:
        # Only read for its names, and those of tables that are replicated can be decoded.
        return text.decode("utf-8", "replace")


def _client_collation(status: bytes) -> int:
    at = 0
    while at < len(status) and status[at] in _SIZES:
        size = _SIZES[status[at]]
        at += 1 + (size if size > 0 else 1 + status[at + 1])
    if status[at : at + 1] != bytes([_CHARSET]):
        return 0
    return int.from_bytes(status[at + 1 : at + 3], "little")
