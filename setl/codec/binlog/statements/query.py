"""The QUERY event: a statement as text, with the schema and charset of its session."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from setl.codec.binlog.event import CHECKSUM_BYTES, HEADER_BYTES
from setl.codec.binlog.statements.statement_text import statement_text
from setl.codec.binlog.tables.collation import charset_of
from setl.codec.sql.tokens import Quoting
from setl.model.session import StatementSession

# thread, seconds, length of the schema's name, error code, length of the status variables
_POST_HEADER: Final = struct.Struct("<IIBHH")
_OF_FILE: Final = 13  # its number, where its name stands in the statement, what duplicates do
_HEADER: Final = struct.Struct("<I13xH")  # of any event: seconds, flags

# Status variables. ``libs/mysql/binlog/event/statement_events.h`` of MySQL numbers them, and
# ``sql/log_event.h`` of MariaDB those from 128 on.
_FLAGS, _SQL_MODE, _INCREMENTS, _CHARSET, _TIME_ZONE, _MONTH_NAMES = 0, 1, 3, 4, 5, 7
_DATABASE = 8
_COMMITTED = 17  # ddl_xid
_CATALOG, _INVOKER, _SCHEMAS, _MICROSECONDS, _EXPLICIT, _UTF8MB4 = 2, 11, 12, 13, 16, 18
_MARIADB_MICROSECONDS, _MARIADB_GTID_FLAGS, _MARIADB_COLLATIONS = 128, 130, 131
_SIZES: Final = {
    _FLAGS: 4, _SQL_MODE: 8, _INCREMENTS: 4, _CHARSET: 6, _MONTH_NAMES: 2, _DATABASE: 2, 9: 8,
    10: 4, _MICROSECONDS: 3, _EXPLICIT: 1, _COMMITTED: 8, _UTF8MB4: 2, 19: 1, 20: 1,
    _MARIADB_MICROSECONDS: 3, 129: 8,
}  # fmt: skip
_TEXTS: Final = frozenset({_TIME_ZONE, 6})  # length, then text
_TOO_MANY_SCHEMAS: Final = 254

# Among the flags.
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
_NO_UNIQUE_CHECKS: Final = 1 << 27
_MARIADB_EXPLICIT: Final = 1 << 24

_TEMPORARY: Final = 0x4  # LOG_EVENT_THREAD_SPECIFIC_F, of the event


def as_query(load: bytes) -> bytes:
    """An EXECUTE_LOAD_QUERY event as a QUERY event: without what tells of the file."""
    behind = HEADER_BYTES + _POST_HEADER.size
    return load[:behind] + load[behind + _OF_FILE :]


def parse_query(event: bytes, *, checksum: bool) -> tuple[str, str]:
    """The session's schema and the statement.

    Raises:
        struct.error, IndexError: the event ends too early.
    """
    schema, text, status = _parts(event, checksum=checksum)
    if text.isascii():
        return schema.decode("utf-8", "replace"), text.decode("ascii")
    return schema.decode("utf-8", "replace"), _decode(text, status)


def parse_session(event: bytes, *, mariadb: bool) -> StatementSession:
    """The session that ran the statement, as far as the event tells.

    Args:
        event: the event with its header.
        mariadb: whether a MariaDB server wrote it.

    Raises:
        struct.error, IndexError: the event ends too early.
    """
    schema, _, status = _parts(event, checksum=False)
    seconds, event_flags = _HEADER.unpack_from(event)
    thread, _, _, error, _ = _POST_HEADER.unpack_from(event, HEADER_BYTES)
    found = _variables(status)
    numbers = {code: int.from_bytes(value, "little") for code, value in found.items()}
    flags = numbers.get(_FLAGS)
    explicit = numbers.get(_EXPLICIT)
    if mariadb and flags is not None:
        explicit = flags & _MARIADB_EXPLICIT
    increments = found.get(_INCREMENTS, b"\x01\0\x01\0")
    micros = numbers.get(_MARIADB_MICROSECONDS if mariadb else _MICROSECONDS, 0)
    return StatementSession(
        schema.decode("utf-8", "replace"),
        numbers.get(_SQL_MODE),
        None if flags is None else not flags & _NO_FOREIGN_KEY_CHECKS,
        found.get(_TIME_ZONE, b"").decode("ascii", "replace"),
        seconds * 1_000_000 + micros,
        mariadb,
        None if flags is None else not flags & _NO_UNIQUE_CHECKS,
        None if explicit is None else bool(explicit),
        *struct.unpack("<HH", increments),
        int.from_bytes(found.get(_CHARSET, b"")[2:4], "little"),
        numbers.get(_UTF8MB4, 0),
        tuple(struct.iter_unpack("<HH", found.get(_MARIADB_COLLATIONS, b"")[1:])),
        numbers.get(_MONTH_NAMES, 0),
        error,
        bool(event_flags & _TEMPORARY),
        int.from_bytes(found.get(_CHARSET, b"")[4:6], "little"),
        numbers.get(_DATABASE, 0),
        _COMMITTED in found and not mariadb,
        thread,
    )


def _parts(event: bytes, *, checksum: bool) -> tuple[bytes, bytes, bytes]:
    """Schema, statement and status variables."""
    _, _, schema_bytes, _, status_bytes = _POST_HEADER.unpack_from(event, HEADER_BYTES)
    status_at = HEADER_BYTES + _POST_HEADER.size
    schema_at = status_at + status_bytes
    zero_at = schema_at + schema_bytes
    end = len(event) - (CHECKSUM_BYTES if checksum else 0)
    if zero_at >= end or event[zero_at]:
        raise IndexError("its schema's name does not end in it")
    return event[schema_at:zero_at], event[zero_at + 1 : end], event[status_at:schema_at]


def _decode(text: bytes, status: bytes) -> str:
    try:
        client, connection = map(charset_of, _collations(status))
        return statement_text(text, client, _quoting(status), connection)
    except ValueError:
        # Only read for its names, and those of tables that are replicated can be decoded.
        return text.decode("utf-8", "replace")


def _quoting(status: bytes) -> Quoting:
    mode = int.from_bytes(_variables(status).get(_SQL_MODE, b""), "little")
    session = StatementSession(sql_mode=mode)
    return Quoting(session.has_mode("ANSI_QUOTES"), session.has_mode("NO_BACKSLASH_ESCAPES"))


def _collations(status: bytes) -> tuple[int, int]:
    """Those of the session's client and of its connection."""
    ids = _variables(status).get(_CHARSET, b"")
    return int.from_bytes(ids[:2], "little"), int.from_bytes(ids[2:4], "little")


def _variables(status: bytes) -> Mapping[int, bytes]:
    """The values of the status variables by their codes, up to one that is not known."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(status):
        code = status[at]
        at += 1
        size = _size(code, status, at)
        if size < 0:
            break
        at += code in _TEXTS
        if at + size > len(status):
            raise IndexError(f"the variable {code} of its session ends behind the others")
        found[code] = status[at : at + size]
        at += size
    return found


def _size(code: int, status: bytes, at: int) -> int:
    """Bytes of the variable that begins at `at`, behind a text's length; -1 if not known."""
    if code in _TEXTS:
        return status[at]
    sized = _SIZED.get(code)
    return _SIZES.get(code, -1) if sized is None else sized(status, at)


def _invoker_size(status: bytes, at: int) -> int:
    """Of a user's name and a host's, each with its length."""
    user = status[at] + 1
    return user + status[at + user] + 1


def _schemas_size(status: bytes, at: int) -> int:
    count = status[at]
    end = at + 1
    for _ in range(0 if count == _TOO_MANY_SCHEMAS else count):
        end = status.find(b"\0", end) + 1
        if not end:
            raise IndexError("a schema's name has no end")
    return end - at


_SIZED: Final[Mapping[int, Callable[[bytes, int], int]]] = {
    _CATALOG: lambda status, at: status[at] + 2,  # a text with its length, and a zero behind it
    _INVOKER: _invoker_size,
    _SCHEMAS: _schemas_size,
    # A number follows one that ends an ALTER in two phases.
    _MARIADB_GTID_FLAGS: lambda status, at: 9 if status[at] & 12 else 1,
    _MARIADB_COLLATIONS: lambda status, at: 1 + 4 * status[at],
}
