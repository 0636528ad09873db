"""Has a server compute checksums of ranges of a table.

A row becomes bytes that say all of it, as `row_bytes` tells, and these are hashed by SHA2. The
hashes of all rows of a range are joined by exclusive or, which is quick and needs no order. Two
equal rows would cancel out; so that is only used for rows with a key, and with their number.

120 of a hash's 256 bits are used. MySQL joins whole hashes. MariaDB joins numbers only, and the
quickest way to make some of bytes, three times as quick as CONV, is UNCOMPRESSED_LENGTH: it reads
the first four bytes as a number, of which it drops two bits.

A row that cannot be hashed, such as one longer than max_allowed_packet, or one with JSON whose text
is, gets a hash by chance: then the two sides differ, and the row is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.bulk.checksums import Checksum, Form, Formed, Normal
from setl.model.labels import LABELLED
from setl.model.schema import Capacity, Column
from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.values.conditions import Condition
from setl.systems.mysql.values.lost_text import in_utf8, may_be_lost, text_or_mark
from setl.systems.mysql.values.row_values import has_two_digits, whole_year

_WORDS: Final = 4
_MASK: Final = (1 << 30) - 1

# Longer values are hashed by themselves, so that a row's bytes stay far below a packet.
_LONG: Final = frozenset(
    {"mediumtext", "longtext", "mediumblob", "longblob", "json", "geometry", "point", "linestring",
     "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
     "geomcollection"}
)  # fmt: skip
# SHA2 of empty text, with which MySQL answers for JSON whose text is longer than a packet.
_OF_NOTHING: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_FRACTIONS: Final = {Normal.MOMENT: 19, Normal.CLOCK: 0}


def row_bytes(formed: Sequence[Formed]) -> str:
    """SQL for all values of a row as bytes: no two different rows have the same.

    First come the values that hold no comma, each followed by one, and the lengths of the others;
    then the others, one behind the other. A value that is NULL is an N.
    """
    fixed: list[str] = []
    free: list[str] = []
    for column, form in formed:
        value = _value(column, form)
        if form.normal not in (Normal.TEXT, Normal.BYTES):
            fixed.append(_or_n(column, value))
        elif column.capacity is not None and column.capacity.type in _LONG:
            digest = f"SHA2({value}, 256)"
            if column.capacity.type == "json":
                digest = f"REPLACE({digest}, '{_OF_NOTHING}', UUID())"
            fixed.append(_or_n(column, digest))
        else:
            fixed.append(_or_n(column, f"LENGTH({value})"))
            free.append(value)
    # A separator of bytes keeps servers from converting what it separates.
    return f"CONCAT_WS(_binary',', {', '.join([*fixed, *free])})"


def _or_n(column: Column, value: str) -> str:
    nullable = column.capacity is None or column.capacity.nullable
    return f"IFNULL({value}, 'N')" if nullable else value


def _value(column: Column, form: Form) -> str:
    name, held = identifier(column.name), column.capacity
    if form.normal is Normal.NUMBER:
        return _number(column, name)
    if form.normal is Normal.DECIMAL:
        as_it_is = (column.precision, column.scale) == (form.digits, form.scale)
        return name if as_it_is else f"CAST({name} AS DECIMAL({form.digits}, {form.scale}))"
    if form.normal is Normal.FLOATING:
        # See `setl.systems.mysql.values.row_values`; only MySQL writes whole numbers as 1.0.
        return f"REPLACE(JSON_ARRAY({name} * 1e0), '.0]', ']')"
    if form.normal is Normal.TEXT:
        return _text(name, held)
    if form.normal in _FRACTIONS:
        return _with_fraction(name, 0 if held is None else held.scale or 0, form.scale)
    return name


def _number(column: Column, name: str) -> str:
    if column.kind in LABELLED:  # all 64 bits of a SET
        return f"CAST({name} AS UNSIGNED)"
    # The sum is without ZEROFILL's zeros.
    return whole_year(name) if has_two_digits(column) else f"{name} + 0"


def _text(name: str, held: Capacity | None) -> str:
    if held is not None and may_be_lost(held):
        return text_or_mark(name, held)
    plain = held is not None and held.charset == "utf8mb4" and held.type not in ("enum", "set")
    return name if plain else in_utf8(name)


def _with_fraction(name: str, digits: int, wanted: int) -> str:
    """A time with zeros behind its own digits; as text, since no function takes all dates."""
    if digits == wanted:
        return name
    zeros = "0" * (wanted - digits)
    return f"CONCAT({name}, '{zeros if digits else '.' + zeros}')"


class ChecksumQuery:
    """A query for the checksum of a range, for one server."""

    def __init__(self, connection: Connection[Any], table: str, formed: Sequence[Formed]) -> None:
        """Nothing is asked yet.

        Args:
            connection: to the server.
            table: its quoted name, for a statement with placeholders.
            formed: the columns that count.
        """
        self._connection = connection
        self._joins_bytes = _joins_bytes(connection)
        digest = f"SHA2({row_bytes(formed)}, 256)"
        digest = f"UNHEX(IFNULL({digest}, SHA2(UUID(), 256)))"
        joined = f"HEX(BIT_XOR({digest}))" if self._joins_bytes else _by_words(digest)
        self._sql = f"SELECT COUNT(*), {joined} FROM {table}"

    def checksum(self, where: Condition) -> Checksum:
        """The checksum of the rows for which a condition is true.

        Raises:
            pymysql.MySQLError: an error of the server.
        """
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(f"{self._sql} WHERE {where.sql}", where.values)
            rows, *bits = cursor.fetchone() or (0,)
        if not int(rows):
            return Checksum(0, (0,) * _WORDS)
        if not self._joins_bytes:
            return Checksum(int(rows), tuple(map(int, bits)))
        joined = bytes.fromhex(bits[0] if isinstance(bits[0], str) else bits[0].decode())
        words = (joined[at : at + 4] for at in range(0, 4 * _WORDS, 4))
        stored = tuple(int.from_bytes(word, "little") & _MASK for word in words)
        return Checksum(int(rows), stored)


def _by_words(digest: str) -> str:
    """The words of a hash, each joined by itself; the variable saves hashing a row four times."""
    first = f"BIT_XOR(UNCOMPRESSED_LENGTH(SUBSTR(@setl_hash := {digest}, 1, 5)))"
    rest = (
        f"BIT_XOR(UNCOMPRESSED_LENGTH(SUBSTR(@setl_hash, {at}, 5)))"
        for at in range(5, 4 * _WORDS, 4)
    )
    return ", ".join([first, *rest])


def _joins_bytes(connection: Connection[Any]) -> bool:
    """Whether BIT_XOR takes bytes, as it does from MySQL 8 on."""
    if is_mariadb(connection):
        return False
    version: Any = getattr(connection, "get_server_info", str)()
    found = re.match(r"\d+", str(version))
    return found is not None and int(found[0]) >= 8
