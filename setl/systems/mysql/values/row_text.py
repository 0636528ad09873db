"""Has a server write rows of its tables as another one takes them behind VALUES.

Values then pass from one server to the other as bytes: nobody in between makes anything of them.
That is what makes dump tools fast. It is right where the text of a value says all of it, and is
what `setl.systems.mysql.values.literals` would have written. JSON and geometries are left out: the
text of the one may be another value when it is read again, and the other has none.

A value that cannot be written this way makes its whole row NULL: text that is not valid in its
character set (QUOTE, or `setl.systems.mysql.values.lost_text`), or a row longer than the server's
max_allowed_packet (CONCAT). No expression here turns such a NULL into anything else, so it is seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from pymysql.connections import Connection
from pymysql.err import OperationalError, raise_mysql_exception

from setl.errors import DataError
from setl.model.labels import is_numbered
from setl.model.schema import Capacity, Column
from setl.systems.mysql.identifiers import quote
from setl.systems.mysql.values.lost_text import in_utf8, lost, may_be_lost
from setl.systems.mysql.values.row_values import has_two_digits, whole_year

VALUES: Final = "VALUES of MySQL in UTF-8"
"""The form: rows such as ``(1,'a',NULL)``, for a session without NO_BACKSLASH_ESCAPES."""

INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
FLOATING: Final = frozenset({"float", "double"})
_QUOTED: Final = frozenset({"decimal", "date", "time", "datetime", "timestamp"})
TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_LABELLED: Final = frozenset({"enum", "set"})
BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
"""Types whose values are written as ``x'00FF'``."""

_READ_AT_ONCE: Final = 1 << 18
_HEADER: Final = struct.Struct("<I")
_LONGEST: Final = 0xFFFFFF  # of a packet; what is longer comes in several
_NULL, _TWO, _THREE, _EIGHT, _ERROR = 0xFB, 0xFC, 0xFD, 0xFE, 0xFF


class NotRenderedError(DataError):
    """The server has not written a row as text."""


def can_render(columns: Sequence[Column]) -> bool:
    """Whether all columns have types of which the text of a value says all of it."""
    return all(_rendered(column) is not None for column in columns)


def rendering(columns: Sequence[Column]) -> str:
    """SQL for a row of these columns in the form `VALUES`; `can_render` has to be true."""
    parts = ",',',".join(_rendered(column) or "" for column in columns)
    return f"CONCAT('(',{parts},')')"


def _rendered(column: Column) -> str | None:
    held, name = column.capacity, quote(column.name)
    found: str | None = None
    if held is None:
        pass
    elif has_two_digits(column):
        found = f"IFNULL(QUOTE(LPAD({whole_year(name)}, 4, '0')), 'NULL')"
    elif held.type in INTEGERS or held.type == "year":
        found = f"IFNULL({name},'NULL')" if held.nullable else name
    elif held.type == "bit":
        found = f"IFNULL({name}+0,'NULL')"
    elif held.type in FLOATING:
        # As JSON it has all its digits, see `setl.systems.mysql.values.row_values`; in quotes a
        # zero keeps its sign.
        number = within(held, f"{name}*1e0")
        digits = f"REPLACE(REPLACE(JSON_ARRAY({number}),'[',''''),']','''')"
        found = f"IF({name} IS NULL,'NULL',{digits})"
    elif is_numbered(column):
        found = _blank_or_label(name, held)
    elif held.type in _QUOTED:
        found = f"QUOTE({name})"  # of NULL: the word, without quotes
    elif held.type in TEXTS or (held.type in _LABELLED and held.labels):
        found = f"QUOTE({name if held.charset == 'utf8mb4' else in_utf8(name)})"
        if held.type in TEXTS and may_be_lost(held):
            found = f"IF({lost(name, held)},NULL,{found})"
    elif held.type in BYTES:
        found = f"IF({name} IS NULL,'NULL',CONCAT('x''',HEX({name}),''''))"
    return found


def within(held: Capacity, number: str) -> str:
    """SQL for a number that a column takes: of its own largest one, FLOAT(10,5) says 100000."""
    if not held.digits or held.scale is None:
        return number
    most = f"{'9' * (held.digits - held.scale) or '0'}.{'9' * held.scale}e0"
    return f"LEAST(GREATEST({number},-{most}),{most})"


def _blank_or_label(name: str, held: Capacity) -> str | None:
    """ENUM whose only doubt is what empty text means: a row with its number 0 is not written."""
    if held.type == "set" or held.alike or len(set(held.labels)) < len(held.labels):
        return None
    return f"IF({name}=0,NULL,QUOTE({in_utf8(name)}))"


def rows_of_one_column(connection: Connection[Any], sql: str) -> Iterator[list[bytes]]:
    """The rows of a SELECT of one column, as their bytes came, about 256 KiB at a time.

    pymysql would take longer for each row than the servers do. The connection is of no use for
    anything else before the last row has been read.

    Raises:
        NotRenderedError: a row is NULL, or longer than a packet.
        pymysql.MySQLError: an error of the server, or the connection is lost.
    """
    client = cast("Any", connection)
    client.query(sql, unbuffered=True)
    # What is read here, pymysql must not wait for.
    client._result.unbuffered_active = False  # noqa: SLF001
    client._result.connection = None  # noqa: SLF001
    source, held = client._rfile, b""  # noqa: SLF001
    while True:
        more = source.read1(_READ_AT_ONCE)
        if not more:
            raise OperationalError(2013, "Lost connection to MySQL server during query")
        held += more
        rows, used, ended = _rows_in(held)
        if rows:
            yield rows
        if ended:
            return
        held = held[used:]


def _rows_in(held: bytes) -> tuple[list[bytes], int, bool]:
    """The whole rows at the beginning, how long they are, and whether the last one is there."""
    rows: list[bytes] = []
    size_of, take = _HEADER.unpack_from, rows.append
    at, end = 0, len(held)
    while at + 4 < end:
        size = size_of(held, at)[0] & _LONGEST
        stop = at + 4 + size
        if size == _LONGEST:
            raise NotRenderedError("a row is longer than a packet")
        if stop > end:
            break
        first = held[at + 4]
        if first == _TWO:
            take(held[at + 7 : stop])
        elif first < _NULL:
            take(held[at + 5 : stop])
        elif first == _THREE:
            take(held[at + 8 : stop])
        elif first == _EIGHT and size < 9:
            return rows, stop, True
        elif first == _ERROR:
            raise_mysql_exception(held[at + 4 : stop])
        else:
            raise NotRenderedError("the source's server cannot write a row as text")
        at = stop
    return rows, at, False
