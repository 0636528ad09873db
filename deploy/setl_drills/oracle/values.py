"""Values of every type: few and often the same, so that keys meet, and the odd ones between."""

from __future__ import annotations

import random
import re
from typing import Any, Final, Protocol

from setl_drills.oracle.sessions import CODECS, Sql
from setl_drills.oracle.shapes import Column

_TEXTS: Final = (
    "a", "A", "b", "B", "ab", "aB", "abc", "abC", "abcd", "ABX", "s", "ss", "e", "é", "", "1",
    "07", "a ", "ab ",
)  # fmt: skip
_ODD_TEXTS: Final = (
    "ß", "Ä", "ø", "中", "文字", "ｱ", "ア", "€", "😀", "İ", "\u0131", "я", "Я", "\u0430", "a  ",
    " a", "a\t", "\\", "\\\\", "a\\'b", "'", '"', "`", "%", "a\nb", "\r\n", "a\0b", "\0",
    "\uff5e", "\u2015", "ソ", "表", "\u00ad", "e\u0301", "\ufb01", "\u01c6", "\uff21", "NULL",
    "null", "0x41", "?", "\x7f", "\x1a",
)  # fmt: skip
_BYTES: Final = (b"", b"a", b"A", b"\0", b"ab", b"\xff", b"\\", b"'", b"a\0", b"\xc3\xa9", b"a ")
_DATES: Final = (
    "2024-01-01", "2024-02-29", "1999-12-31", "2000-01-01", "1970-01-01", "2038-01-19",
    "9999-12-31", "1000-01-01",
)  # fmt: skip
_ODD_DATES: Final = ("0000-00-00", "2024-00-10", "2024-02-30", "0001-01-01", "2024-04-31")
_TIMES: Final = (
    "00:00:00", "12:00:00", "23:59:59", "23:59:59.999999", "03:14:07.5", "01:30:00.000001",
)  # fmt: skip
_SPANS: Final = (
    "00:00:00", "-00:00:01", "838:59:59", "-838:59:59", "-00:00:00.5", "12:34:56.789", "24:00:00",
    "-01:00:00.000001", "100:00:00.123456",
)  # fmt: skip
_DOCUMENTS: Final = (
    "{}", "[]", "null", "true", "1", "-1", "1.5", '"a"', '{"a": 1}', '{"b": [1, 2, {"c": null}]}',
    "1e100", "0.1", "12345678901234567890", '{"a": "é", "": 0}', "[0.1, 100, 1e-7, -0.0]",
    '"\\u0041\\n\\"x"', '{"z": 1, "a": {"k": "😀"}}', "[[[]]]", "18446744073709551615",
    "1.7976931348623157e308", "[1.0, 2.50, 100000000000000000000]", '"2024-01-01"',
    "-9223372036854775808",
)  # fmt: skip
_SHAPES: Final = (
    "POINT(1 1)", "POINT(-0.5 1e10)", "LINESTRING(0 0,1 1,2 0)", "POLYGON((0 0,4 0,4 4,0 4,0 0))",
    "MULTIPOINT(0 0,1 1)", "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
)  # fmt: skip
SPATIAL: Final = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection", "geomcollection",
)  # fmt: skip
_BOUNDS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_LABEL = re.compile(r"'((?:[^']|'')*)'")


class _Make(Protocol):
    def __call__(self, chance: random.Random, column: Column, /, *, odd: bool) -> Any: ...


def random_value(chance: random.Random, column: Column, *, odd: float = 0.15) -> Any:
    """A value for a column, as `setl_drills.oracle.sessions.Session.literal` takes it.

    Args:
        chance: decides.
        column: what it is for.
        odd: how often it is one that a strict server may refuse, or that is seldom seen.
    """
    if column.nullable and chance.random() < 0.15:
        return None
    if column.kind in _BOUNDS:
        return _number(chance, column, odd)
    make = _KINDS.get(column.kind)
    if make is not None:
        return make(chance, column, odd=chance.random() < (3 * odd if column.text else odd))
    return chance.choice(_TEXTS)


def _number(chance: random.Random, column: Column, odd: float) -> int:
    if chance.random() >= odd:
        return chance.randrange(7)
    bits = _BOUNDS[column.kind]
    unsigned = "unsigned" in column.type
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return chance.choice([low, high, high - 1, -1, 100, high + 1, low - 1])


def _decimal(chance: random.Random, _: Column, *, odd: bool) -> Any:
    if odd:
        return Sql(chance.choice(["-0.00", "99999999.99", "1e5", "0.005", "-0.015", "1e30"]))
    return Sql(chance.choice(["0", "1", "1.5", "-1.50", "12.34", "3"]))


def _floating(chance: random.Random, _: Column, *, odd: bool) -> Any:
    if odd:
        plain = ["1e38", "-1e-38", "3.4028235e38", "1.17e-38", "1e-45", "16777217", "1e308", "0.3"]
        return Sql(chance.choice([*plain, "-0.0", "9007199254740993", "-0.1", "99999.99999"]))
    return Sql(chance.choice(["0", "1", "0.5", "-2.25", "0.1", "100000"]))


def _bits(chance: random.Random, column: Column, *, odd: bool) -> Any:
    width = int((re.search(r"\d+", column.type) or ["1"])[0])
    return Sql(f"b'{'1' * (width + odd)}'" if chance.random() < 0.3 else f"{chance.randrange(2)}")


def _characters(chance: random.Random, column: Column, *, odd: bool) -> Any:
    if not odd:
        return chance.choice(_TEXTS)
    if column.kind.endswith(("text", "varchar")) and chance.random() < 0.05:
        return chance.choice(["x", "é", "中", "ab "]) * chance.choice([255, 256, 3000, 20000])
    value = chance.choice(_ODD_TEXTS)
    if chance.random() < 0.4:
        value += chance.choice(_ODD_TEXTS + _TEXTS)
    if chance.random() < 0.97 and not _fits(value, column.charset):
        return chance.choice(_TEXTS)
    return value


def _fits(value: str, charset: str) -> bool:
    try:
        value.encode(CODECS.get(charset, "ascii"))
    except UnicodeEncodeError:
        return False
    return True


def _binary(chance: random.Random, column: Column, *, odd: bool) -> Any:
    if odd and column.kind.endswith("blob"):
        return bytes(range(256)) * chance.choice([1, 10, 300])
    return chance.choice(_BYTES)


def _date(chance: random.Random, _: Column, *, odd: bool) -> Any:
    return chance.choice(_ODD_DATES if odd else _DATES)


def _moment(chance: random.Random, column: Column, *, odd: bool) -> Any:
    if chance.random() < 0.05:
        return Sql(chance.choice(["NOW(6)", "UTC_TIMESTAMP()", "FROM_UNIXTIME(1700000000.123456)"]))
    if column.kind == "timestamp" and not odd:
        days = ("1971-01-01", "2024-01-01", "2024-03-31", "2024-10-27", "2037-12-31")
        return f"{chance.choice(days)} {chance.choice(_TIMES)}"
    if column.kind == "timestamp":
        return chance.choice(["1970-01-01 00:00:01", "2038-01-19 03:14:07.999999", "0000-00-00"])
    return f"{_date(chance, column, odd=odd)} {chance.choice(_TIMES)}"


def _time(chance: random.Random, _: Column, *, odd: bool) -> Any:
    return chance.choice(_SPANS if odd else _TIMES)


def _year(chance: random.Random, _: Column, *, odd: bool) -> Any:
    return chance.choice([0, "0000", 70, 69, 1901, 2155] if odd else [2024, 2000, 1999])


def labels_of(column: Column) -> list[str]:
    """The labels of an ENUM or SET."""
    return [label.replace("''", "'") for label in _LABEL.findall(column.type)]


def _enum(chance: random.Random, column: Column, *, odd: bool) -> Any:
    labels = labels_of(column)
    if odd:
        return chance.choice([0, "", "no label of it", len(labels)])
    return chance.choice(labels) if chance.random() < 0.5 else chance.randint(1, len(labels))


def _set(chance: random.Random, column: Column, *, odd: bool) -> Any:
    labels = labels_of(column)
    if odd:
        return chance.choice([0, "", 2 ** len(labels) - 1, "no label of it"])
    some = chance.sample(labels, chance.randint(0, min(3, len(labels))))
    return ",".join(some) if chance.random() < 0.5 else chance.randrange(2 ** min(len(labels), 63))


def _document(chance: random.Random, _: Column, *, odd: bool) -> Any:
    document = chance.choice(_DOCUMENTS)
    if odd:
        document = "{" + ", ".join(f'"k{n}": {document}' for n in range(chance.randint(1, 9))) + "}"
    return document


def _geometry(chance: random.Random, column: Column, *, odd: bool) -> Any:
    fitting = [s for s in _SHAPES if column.kind == "geometry" or s.lower().startswith(column.kind)]
    shape = chance.choice(fitting or _SHAPES)
    return Sql(f"ST_GeomFromText('{shape}'{', 4326' if odd and shape == _SHAPES[0] else ''})")


def _vector(chance: random.Random, column: Column, *, odd: bool) -> Any:
    size = int((re.search(r"\d+", column.type) or ["3"])[0])
    pool = ["0", "1", "0.1", "-2.5e10", *(["1e-38", "3.4e38"] if odd else [])]
    numbers = ", ".join(chance.choice(pool) for _ in range(size))
    return Sql(f"STRING_TO_VECTOR('[{numbers}]')")


def _uuid(chance: random.Random, _: Column, *, odd: bool) -> Any:
    if odd:
        return chance.choice(["00000000-0000-0000-0000-000000000000", "f" * 32])
    return f"123e4567-e89b-12d3-a456-42661417400{chance.randrange(4)}"


def _inet4(chance: random.Random, _: Column, *, odd: bool) -> Any:
    return chance.choice(["0.0.0.0", "255.255.255.255"] if odd else ["10.0.0.1", "192.168.1.2"])


def _inet6(chance: random.Random, _: Column, *, odd: bool) -> Any:
    return chance.choice(["::", "::ffff:1.2.3.4", "::1.2.3.4"] if odd else ["::1", "fe80::1"])


_KINDS: Final[dict[str, _Make]] = {
    "decimal": _decimal,
    **dict.fromkeys(("float", "double"), _floating),
    "bit": _bits,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _characters),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _binary),
    "date": _date,
    **dict.fromkeys(("datetime", "timestamp"), _moment),
    "time": _time,
    "year": _year,
    "enum": _enum,
    "set": _set,
    "json": _document,
    **dict.fromkeys(SPATIAL, _geometry),
    "vector": _vector,
    "uuid": _uuid,
    "inet4": _inet4,
    "inet6": _inet6,
}
