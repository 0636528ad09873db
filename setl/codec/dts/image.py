"""Values of DTS images in their normal form, and the kind of column each belongs to.

A record names its columns and gives each a MySQL type number, but that number is one and the
same for TEXT and BLOB, and nothing says whether an integer has a sign. The branch of the union
that a value uses says more, and counts; the number decides where the branch leaves it open, and
stands in for it as long as a column has only been seen as NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from setl.codec.charset import BINARY, decoder
from setl.codec.dts.moment import (
    date_value,
    datetime_value,
    moment_kind,
    time_value,
    timestamp_value,
    year_value,
    zoned_value,
)
from setl.model.change import Value
from setl.model.schema import Column, Kind

_Raw = dict[str, Any]
_Read = Callable[[_Raw], Value]

_BIT: Final = 16
_TIMESTAMP: Final = 7
_LARGEST_SIGNED: Final = 2**63 - 1
_BYTE_ORDER_MARKS: Final = (b"\xfe\xff", b"\xff\xfe")
_SIXTEEN_BITS: Final = frozenset({"ucs2", "utf16"})

# What a column is that has only been NULL so far. Source of the numbers: `enum_field_types`.
_HINTS: Final[dict[int, Kind]] = {
    **dict.fromkeys((1, 2, 3, 8, 9), Kind.INTEGER),
    _BIT: Kind.BIT,
    13: Kind.YEAR,
    0: Kind.DECIMAL,
    246: Kind.DECIMAL,
    4: Kind.FLOAT,
    5: Kind.FLOAT,
    _TIMESTAMP: Kind.TIMESTAMP,
    17: Kind.TIMESTAMP,
    10: Kind.DATE,
    11: Kind.TIME,
    19: Kind.TIME,
    12: Kind.DATETIME,
    14: Kind.DATETIME,
    18: Kind.DATETIME,
    245: Kind.JSON,
    247: Kind.ENUM,
    248: Kind.SET,
    255: Kind.GEOMETRY,
}
_LABELS: Final = frozenset({Kind.JSON, Kind.ENUM, Kind.SET})
_OBJECT_TYPES: Final = {"JSON": Kind.JSON, "ENUM": Kind.ENUM, "SET": Kind.SET}


class ImageColumn:
    """One column of the records of a table, and what has been learned about it.

    Attributes:
        column: what it is, as far as it is known.
        changes: how often that may have changed.
    """

    def __init__(self, name: str, number: int) -> None:
        self._number = number
        kind = _HINTS.get(number, Kind.TEXT)
        self.column = Column(name, kind, binary_order=kind is not Kind.TEXT)
        self.changes = 0
        self._read: _Read = _unknown

    def read(self, raw: _Raw) -> Value:
        """A value that is neither NULL nor absent.

        Raises:
            ValueError: it cannot be decoded.
        """
        try:
            return self._read(raw)
        except LookupError:
            # Another branch than last time, or something more to learn from this one.
            self.column, self._read = self._learn(raw)
            self.changes += 1
            return self._read(raw)

    def _learn(self, raw: _Raw) -> tuple[Column, _Read]:
        for member, learn in _BRANCHES.items():
            if member in raw:
                return learn(self.column, self._number, raw)
        raise ValueError(f"no branch of the record schema has the members {', '.join(raw)}")


def _label_kind(number: int) -> Kind:
    hinted = _HINTS.get(number)
    return hinted if hinted in _LABELS else Kind.TEXT


def _unknown(_: _Raw) -> Value:
    raise LookupError


def _as_kind(column: Column, kind: Kind, *, binary_order: bool = True) -> Column:
    if column.kind is kind and column.binary_order == binary_order:
        return column
    return Column(column.name, kind, binary_order=binary_order)


def _integer(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    if number == _BIT:
        return _as_kind(column, Kind.BIT), _any_integer
    if _HINTS.get(number) is Kind.YEAR:
        return _as_kind(column, Kind.YEAR), _any_integer
    column = _as_kind(column, Kind.INTEGER)
    if column.unsigned or int(raw["integer"]) > _LARGEST_SIGNED:
        return replace(column, unsigned=True), _any_integer
    return column, _signed_integer


def _signed_integer(raw: _Raw) -> Value:
    value = int(raw["integer"])
    if value > _LARGEST_SIGNED:
        raise LookupError
    return value


def _any_integer(raw: _Raw) -> Value:
    return int(raw["integer"])


def _decimal(column: Column, _: int, raw: _Raw) -> tuple[Column, _Read]:
    whole = max(raw["precision"] - raw["scale"], column.precision - column.scale)
    scale = max(raw["scale"], column.scale)
    learned = Column(
        column.name, Kind.DECIMAL, precision=whole + scale, scale=scale, binary_order=True
    )

    def read(raw: _Raw) -> Value:
        if raw["scale"] > scale or raw["precision"] - raw["scale"] > whole:
            raise LookupError
        return raw["decimal"]

    return learned, read


def _float(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    return _as_kind(column, Kind.FLOAT), lambda raw: raw["float"]


def _character(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    charset: str = raw["charset"]
    if charset.lower() == BINARY:
        kind, decode = Kind.BINARY, bytes
    else:
        kind = _label_kind(number)
        decode = _unmarked if charset.lower() in _SIXTEEN_BITS else decoder(charset)

    def read(raw: _Raw) -> Value:
        if raw["charset"] != charset:
            raise LookupError
        return decode(raw["character"])

    return _as_kind(column, kind, binary_order=kind is not Kind.TEXT), read


def _unmarked(data: bytes) -> str:
    """UTF-16, of which some writers mark the byte order in front; else the high byte leads."""
    codec = "utf-16" if data[:2] in _BYTE_ORDER_MARKS else "utf-16-be"
    return data.decode(codec)


def _timestamp(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    return _as_kind(column, Kind.TIMESTAMP), timestamp_value


def _moment(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    kind = moment_kind(_HINTS.get(number), raw)
    reads = {Kind.DATE: date_value, Kind.TIME: time_value, Kind.YEAR: year_value}
    return _as_kind(column, kind), reads.get(kind, datetime_value)


def _zoned(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    return _as_kind(column, Kind.TIMESTAMP), zoned_value


def _bytes_of(member: str, kind: Kind) -> Callable[[Column, int, _Raw], tuple[Column, _Read]]:
    def learn(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
        return _as_kind(column, kind), lambda raw: raw[member]

    return learn


def _text(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    kind = _OBJECT_TYPES.get(raw["type"].upper(), _label_kind(number))
    return _as_kind(column, kind, binary_order=kind is not Kind.TEXT), lambda raw: raw["text"]


def _wkt(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    # Well-known text: there is no kind for it, and turning it into bytes is the target's job.
    return _as_kind(column, Kind.TEXT, binary_order=False), lambda raw: raw["wkt"]


# A member that only this branch has, see `setl.codec.dts.wire`.
_BRANCHES: Final[dict[str, Callable[[Column, int, _Raw], tuple[Column, _Read]]]] = {
    "integer": _integer,
    "character": _character,
    "decimal": _decimal,
    "float": _float,
    "timestamp": _timestamp,
    "year": _moment,
    "zoned": _zoned,
    "wkb": _bytes_of("wkb", Kind.GEOMETRY),
    "wkt": _wkt,
    "binary": _bytes_of("binary", Kind.BINARY),
    "text": _text,
}
