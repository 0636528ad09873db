import math
import struct

import pytest

from setl.systems.search_index.load.wkt import wkt


def number(value, order="<"):
    return struct.pack(f"{order}I", value)


def head(kind, order="<"):
    return (b"\1" if order == "<" else b"\0") + number(kind, order)


def point(x, y, order="<"):
    return head(1, order) + struct.pack(f"{order}dd", x, y)


def path(*points):
    return number(len(points)) + b"".join(struct.pack("<dd", *p) for p in points)


RING = path((0, 0), (1, 0), (1, 1), (0, 0))
HOLE = path((0.1, 0.1), (0.2, 0.1), (0.2, 0.2), (0.1, 0.1))


@pytest.mark.parametrize(
    ("wkb", "expected"),
    [
        (point(13.4, -52.5), "POINT (13.4 -52.5)"),
        (point(1e-7, 123456789.123, ">"), "POINT (1e-07 123456789.123)"),
        (head(2) + path((0, 0), (1, 2)), "LINESTRING (0 0, 1 2)"),
        (head(3) + number(1) + RING, "POLYGON ((0 0, 1 0, 1 1, 0 0))"),
        (
            head(3) + number(2) + RING + HOLE,
            "POLYGON ((0 0, 1 0, 1 1, 0 0), (0.1 0.1, 0.2 0.1, 0.2 0.2, 0.1 0.1))",
        ),
        (head(4) + number(2) + point(1, 2) + point(3, 4), "MULTIPOINT ((1 2), (3 4))"),
        (head(5) + number(1) + head(2) + path((0, 0), (1, 2)), "MULTILINESTRING ((0 0, 1 2))"),
        (head(6) + number(1) + head(3) + number(1) + RING, "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"),
        (
            head(7) + number(2) + point(1, 2, ">") + head(2) + path((0, 0), (1, 2)),
            "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 2))",
        ),
        (head(7) + number(0), "GEOMETRYCOLLECTION EMPTY"),
    ],
)
@pytest.mark.parametrize("srid", [0, 4326])
def test_shapes(wkb, expected, srid):
    assert wkt(number(srid) + wkb) == expected


@pytest.mark.parametrize(
    "value",
    [
        b"",
        number(0),
        number(3857) + point(1, 2),
        number(0) + head(9),
        number(0) + point(math.nan, 2),
        number(0) + point(1, 2)[:-1],
        number(0) + point(1, 2) + b"x",
        number(0) + head(2) + number(1 << 31),
        number(0) + head(2) + path((0, 0), (1, math.inf)),
    ],
)
def test_what_has_no_such_text_is_refused(value):
    with pytest.raises(ValueError):  # noqa: PT011 - several reasons
        wkt(value)
