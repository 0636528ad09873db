"""The character set of each collation id in a binlog, and how it compares."""

from __future__ import annotations

from functools import cache
from typing import Final

from setl.codec.charset import BINARY

# Both servers share the ids below 255. From information_schema.collations of MariaDB 10.11,
# with MySQL's own: 76 and 223 (utf8mb3), 248-250 (gb18030), 255-323 (utf8mb4_0900 and others).
_IDS: Final[dict[str, tuple[int | tuple[int, int], ...]]] = {
    "big5": (1, 84),
    "latin2": (2, 9, 21, 27, 77),
    "dec8": (3, 69),
    "cp850": (4, 80),
    "latin1": (5, 8, 15, 31, (47, 49), 94),
    "hp8": (6, 72),
    "koi8r": (7, 74),
    "swe7": (10, 82),
    "ascii": (11, 65),
    "ujis": (12, 91),
    "sjis": (13, 88),
    "cp1251": (14, 23, (50, 52)),
    "hebrew": (16, 71),
    "tis620": (18, 89),
    "euckr": (19, 85),
    "latin7": (20, 41, 42, 79),
    "koi8u": (22, 75),
    "gb2312": (24, 86),
    "greek": (25, 70),
    "cp1250": (26, 34, 44, 66, 99),
    "gbk": (28, 87),
    "cp1257": (29, 58, 59),
    "latin5": (30, 78),
    "armscii8": (32, 64),
    "utf8mb3": (33, 76, 83, (192, 215), 223, (576, 578)),
    "ucs2": (35, 90, (128, 151), 159, (640, 642)),
    "cp866": (36, 68),
    "keybcs2": (37, 73),
    "macce": (38, 43),
    "macroman": (39, 53),
    "cp852": (40, 81),
    "utf8mb4": (45, 46, (224, 247), (255, 323), (608, 610)),
    "utf16": (54, 55, (101, 124), (672, 674)),
    "utf16le": (56, 62),
    "cp1256": (57, 67),
    "utf32": (60, 61, (160, 183), (736, 738)),
    BINARY: (63,),
    "geostd8": (92, 93),
    "cp932": (95, 96),
    "eucjpms": (97, 98),
    "gb18030": ((248, 250),),
}

# MariaDB: an id that ignores no trailing spaces is that of the padding collation plus 1024,
# and from 2048 on there are 256 ids of UCA 14 for each of these.
_NO_PAD: Final = 1024
_UCA_1400: Final = 2048
_UCA_1400_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")

# Collations that compare byte by byte, but for trailing spaces.
_BYTEWISE: Final = frozenset(
    {43, 46, 47, 50, 53, 55, 58, *range(61, 76), *range(77, 92), 93, 96, 98, 249}
)
_UTF8MB4_0900_BIN: Final = 309
_OF_UNICODE_9: Final = range(255, 324)
_MARIADBS: Final = 1 << 16
OF_MARIADB: Final = " of MariaDB"
"""Ends a `common_name` that MySQL has for another collation."""


@cache
def charset_of(collation: int) -> str:
    """The character set's name; "" for an id that is not known.

    Raises nothing, since a column of an unknown collation matters only where it is mapped.
    """
    if collation >= _UCA_1400:
        index = (collation - _UCA_1400) >> 8
        return _UCA_1400_CHARSETS[index] if index < len(_UCA_1400_CHARSETS) else ""
    if collation >= _NO_PAD:
        return charset_of(collation - _NO_PAD)
    for charset, ids in _IDS.items():
        for entry in ids:
            low, high = entry if isinstance(entry, tuple) else (entry, entry)
            if low <= collation <= high:
                return charset
    return ""


def compares_bytes(collation: int, *, padded: bool) -> bool:
    """Whether two different values are never equal.

    Args:
        collation: its id.
        padded: whether values may differ in trailing spaces, which the older ``_bin``
            collations ignore; CHAR columns keep none.
    """
    if collation in (63, _UTF8MB4_0900_BIN):
        return True
    if _NO_PAD <= collation < _UCA_1400:
        return collation - _NO_PAD in _BYTEWISE
    return collation in _BYTEWISE and not padded


def common_number(collation: int, *, mariadb: bool) -> int:
    """A collation's id as a number that means the same collation on all servers.

    MariaDB from 11.4.5 on has the names and ids of MySQL's ``utf8mb4_0900_…`` for collations of its
    own, by Unicode 14 instead of 9: to them 'ა' and 'Ა' are one text, and to MySQL two.

    Args:
        collation: the id.
        mariadb: whether a MariaDB says it.
    """
    other = mariadb and collation in _OF_UNICODE_9 and collation != _UTF8MB4_0900_BIN
    return collation + _MARIADBS if other else collation


def common_name(collation: str, *, mariadb: bool) -> str:
    """A name that means the same collation on all servers, see `common_number`."""
    other = mariadb and "_0900_" in collation and not collation.endswith("_bin")
    return f"{collation}{OF_MARIADB}" if other else collation
