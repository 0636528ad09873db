"""Spatial values as well-known text, for Elasticsearch's ``geo_shape``.

MySQL and MariaDB keep a spatial value as 4 bytes SRID, lowest first, and then well-known binary
(OGC 06-103r4, chapter 8; MySQL manual, "Internal Geometry Storage Format"). For SRID 4326 MySQL
*prints* latitude before longitude, but it keeps longitude first, as x. So does well-known text as
Elasticsearch reads it, and nothing has to be exchanged.
"""

from __future__ import annotations

import math
import struct

PLANE_OR_GLOBE = frozenset({0, 4326})
"""The SRIDs whose numbers mean the same to Elasticsearch: longitude and latitude in degrees."""

_NAMES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7


def wkt(value: bytes) -> str:
    """A spatial value as text; coordinates with the fewest digits that mean the same number.

    Raises:
        ValueError: its SRID is neither 0 nor 4326, it has a coordinate that is no number, or its
            bytes make no sense.
    """
    try:
        (srid,) = struct.unpack_from("<I", value)
        if srid not in PLANE_OR_GLOBE:
            raise ValueError(f"SRID {srid}")
        reader = _Reader(value, 4)
        text = reader.geometry()
    except (struct.error, IndexError) as error:
        raise ValueError(f"damaged: {error}") from error
    if reader.at != len(value):
        raise ValueError(f"{len(value) - reader.at} bytes too many")
    return text


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.at = at
        self._data = data
        self._order = "<"

    def geometry(self) -> str:
        """A geometry with its name."""
        kind = self._header()
        return f"{_NAMES[kind]} {self._content(kind)}"

    def _header(self) -> int:
        self._order = "<" if self._data[self.at] else ">"
        self.at += 1
        kind = self._number()
        if kind not in _NAMES:
            raise ValueError(f"geometry of type {kind}")
        return kind

    def _content(self, kind: int) -> str:
        if kind == _POINT:
            return f"({self._coordinates(1)})"
        count = self._number()
        if not count:
            return "EMPTY"
        if kind == _LINE:
            return f"({self._coordinates(count)})"
        if kind == _POLYGON:
            parts = [f"({self._coordinates(self._number())})" for _ in range(count)]
        elif kind == _COLLECTION:
            parts = [self.geometry() for _ in range(count)]
        else:
            parts = [self._content(self._header()) for _ in range(count)]
        return f"({', '.join(parts)})"

    def _coordinates(self, points: int) -> str:
        numbers = struct.unpack_from(f"{self._order}{2 * points}d", self._data, self.at)
        self.at += 16 * points
        if not all(map(math.isfinite, numbers)):
            raise ValueError("a coordinate is no number")
        texts = [repr(number).removesuffix(".0") for number in numbers]
        return ", ".join(f"{x} {y}" for x, y in zip(texts[::2], texts[1::2], strict=True))

    def _number(self) -> int:
        (number,) = struct.unpack_from(f"{self._order}I", self._data, self.at)
        self.at += 4
        return int(number)
