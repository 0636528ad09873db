"""The QUERY event: a statement as text, with the schema and charset of its session."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from setl.codec.binlog.collation import charset_of
from setl.codec.binlog.event import CHECKSUM_BYTES, HEADER_BYTES
from setl.codec.charset import decoder
from setl.model.session import StatementSession

# thread, seconds, length of the schema's name, error code, length of the status variables
_POST_HEADER: Final = struct.Struct("<IIBHH")

# Status variables in the order in which servers write them, with their sizes; -1: length, then
# text. What comes behind is of no use here, and differs between servers.
_FLAGS, _SQL_MODE, _CHARSET, _TIME_ZONE = 0, 1, 4, 5
_SIZES: Final = {_FLAGS: 4, _SQL_MODE: 8, 3: 4, _CHARSET: 6, _TIME_ZONE: -1, 6: -1}
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26  # among the flags


def parse_query(event: bytes, *, checksum: bool) -> tuple[str, str]:
    """The session's schema and the statement.

    Raises:
        struct.error, IndexError: the event ends too early.
    """
    schema, text, status = _parts(event, checksum=checksum)
    if text.isascii():
        return schema.decode("utf-8", "replace"), text.decode("ascii")
    return schema.decode("utf-8", "replace"), _decode(text, status)


def parse_session(event: bytes) -> StatementSession:
    """The session that ran the statement, as far as the event tells.

    Raises:
        struct.error, IndexError: the event ends too early.
    """
    schema, _, status = _parts(event, checksum=False)
    variables = _variables(status)
    flags, mode = variables.get(_FLAGS), variables.get(_SQL_MODE)
    return StatementSession(
        schema.decode("utf-8", "replace"),
        None if mode is None else int.from_bytes(mode, "little"),
        None if flags is None else not int.from_bytes(flags, "little") & _NO_FOREIGN_KEY_CHECKS,
        variables.get(_TIME_ZONE, b"").decode("ascii", "replace"),
    )


def _parts(event: bytes, *, checksum: bool) -> tuple[bytes, bytes, bytes]:
    """Schema, statement and status variables."""
    _, _, schema_bytes, _, status_bytes = _POST_HEADER.unpack_from(event, HEADER_BYTES)
    at = HEADER_BYTES + _POST_HEADER.size
    status = event[at : at + status_bytes]
    at += status_bytes
    schema = event[at : at + schema_bytes]
    return (
        schema,
        event[at + schema_bytes + 1 : len(event) - (CHECKSUM_BYTES if checksum else 0)],
        status,
    )


def _decode(text: bytes, status: bytes) -> str:
    try:
        return decoder(charset_of(_client_collation(status)))(text)
    except ValueError:
        # Only read for its names, and those of tables that are replicated can be decoded.
        return text.decode("utf-8", "replace")


def _client_collation(status: bytes) -> int:
    return int.from_bytes(_variables(status).get(_CHARSET, b"")[:2], "little")


def _variables(status: bytes) -> Mapping[int, bytes]:
    """The values of the status variables that are understood, by their codes."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(status) and status[at] in _SIZES:
        code, size = status[at], _SIZES[status[at]]
        at += 1
        if size < 0:
            size = status[at]
            at += 1
        found[code] = status[at : at + size]
        at += size
    return found
