"""The events that give a transaction its GTID."""

from __future__ import annotations

import re
import struct
import uuid
from typing import Final

from setl.codec.binlog.event import HEADER_BYTES, EventType

_FORM: Final = 1  # version of the notation that events with tags are written in
_MOST: Final = (1 << 63) - 1
_UUID, _NUMBER, _TAG = 1, 2, 3
TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
"""The tag of a GTID of MySQL, as servers write it."""

_GROUP_COMMIT, _START_ALTER, _ROLLBACK_ALTER = 2, 2, 8


def gtid_of(event: bytes) -> str:
    """The GTID, "" in an event without one.

    Raises:
        struct.error, ValueError, IndexError: the bytes are none of these events.
    """
    kind = event[4]
    if kind == EventType.ANONYMOUS_GTID:
        return ""
    if kind == EventType.GTID_TAGGED:
        return _tagged(event)
    server = uuid.UUID(bytes=event[HEADER_BYTES + 1 : HEADER_BYTES + 17])
    (number,) = struct.unpack_from("<q", event, HEADER_BYTES + 17)
    return _gtid(str(server), number)


def is_announcement(event: bytes) -> bool:
    """Whether the statement behind a MariaDB GTID of its own has no effect.

    With ``binlog_alter_two_phase`` an ALTER TABLE is logged when it begins, and again when it has
    succeeded or failed; only the one that succeeded changes the table. A byte of flags behind those
    of the GTID says so; source: ``Gtid_log_event`` in MariaDB's ``log_event.h``.
    """
    at = HEADER_BYTES + 13 + (8 if event[HEADER_BYTES + 12] & _GROUP_COMMIT else 0)
    return bool(event[at] & (_START_ALTER | _ROLLBACK_ALTER))


def variable_integer(data: bytes, at: int) -> tuple[int, int]:
    """An integer of MySQL's ``mysql::serialization`` at `at`, and where it ends.

    As many bytes follow the first one as it has ones at its lower end, up to eight; a zero ends
    them. What is left of all bytes, lowest first, is the number.

    Raises:
        IndexError: it goes on past the end.
    """
    first = data[at]
    more = (~first & (first + 1)).bit_length() - 1  # ones at the lower end
    end = at + 1 + more
    if end > len(data):
        raise IndexError("an integer ends too early")
    # The ninth byte has no zero in front of it.
    return int.from_bytes(data[at:end], "little") >> min(more + 1, 8), end


def tag_at(data: bytes, at: int) -> tuple[str, int]:
    """A tag with its length in front of it, "" for none, and where it ends.

    Raises:
        ValueError, IndexError: it is none.
    """
    length, at = variable_integer(data, at)
    tag = data[at : at + length].decode("ascii")
    if len(tag) != length or not (TAG.fullmatch(tag) or not tag):
        raise ValueError(f"a tag of {length} bytes is {tag!r}")
    return tag, at + length


def _tagged(event: bytes) -> str:
    """Layout: ``libs/mysql/serialization/readme.md`` in MySQL, fields of ``Gtid_event``.

    Version, size and the last field that must be known stand in front; each field has its
    number before it. All integers are of variable length, those of the UUID's bytes too.
    """
    form, at = variable_integer(event, HEADER_BYTES)
    if form != _FORM:
        raise ValueError(f"its form {form} is not known")
    _, at = variable_integer(event, at)
    _, at = variable_integer(event, at)
    server, number, tag = bytearray(), 0, ""
    field = -1
    while field < _TAG:
        field, at = variable_integer(event, at)
        if field == _UUID:
            for _ in range(16):
                byte, at = variable_integer(event, at)
                server.append(byte)
        elif field == _TAG:
            tag, at = tag_at(event, at)
        else:
            number, at = variable_integer(event, at)
            if field == _NUMBER:
                number >>= 1  # the lowest bit is the sign
    name = str(uuid.UUID(bytes=bytes(server)))
    return _gtid(f"{name}:{tag}" if tag else name, number)


def _gtid(source: str, number: int) -> str:
    if not 0 < number <= _MOST:
        raise ValueError(f"its number {number} is none of a transaction")
    return f"{source}:{number}"
