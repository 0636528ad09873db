"""MySQL's character sets as functions from bytes to text.

Where Python's codec of the same name decodes some bytes in another way than MySQL does, MySQL's
way is used; the differences were found by asking a MariaDB server for every byte (or pair of
bytes) of every character set. Differences that remain: user-defined or vendor-specific
characters of the Japanese EUC sets are refused.

A few sets have one character at two places (``cp932`` at 398, ``sjis`` the backslash, ``big5``
four, ``armscii8`` six). Text of theirs stays the same text, but a server that writes it chooses
one of the two. Two keys would become one by that, see `key_decoder`.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Final, cast

from setl.printable import BYTES_OF_TEXT

Decoder = Callable[[bytes], str]

_UNDEFINED: Final = "\ufffe"  # how codecs.charmap_decode marks bytes without a character

_PLAIN: Final[dict[str, str]] = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "us-ascii": "ascii",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "big5": "big5",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1257": "cp1257",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
}

# charset → the nearest codec, and what stands elsewhere: first byte → characters from there on
_PATCHED: Final[dict[str, tuple[str, dict[int, str]]]] = {
    # cp1252, whose five undefined bytes MySQL keeps as control characters
    "latin1": ("cp1252", {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f\x90", 0x9D: "\x9d"}),
    "hebrew": ("iso8859_8", {0xAF: "\u203e"}),
    "koi8u": ("koi8_u", {0x95: "\u2022"}),
    "tis620": ("iso8859_11", {0xA0: _UNDEFINED}),
    "greek": (
        "iso8859_7",
        {0xA1: "\u02bd\u02bc", 0xA4: _UNDEFINED * 2, 0xAA: _UNDEFINED},
    ),
    "cp866": ("cp866", {0xFC: "\u207f\xb2"}),
    "cp1256": (
        "cp1256",
        dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), _UNDEFINED),
    ),
    "dec8": (
        "latin_1",
        {
            **dict.fromkeys((0xA4, 0xA6, 0xB4, 0xB8, 0xBE, 0xD0, 0xDE, 0xF0, 0xFE), _UNDEFINED),
            0xA8: "\xa4",
            0xAC: _UNDEFINED * 4,
            0xD7: "\u0152",
            0xDD: "\u0178",
            0xF7: "\u0153",
            0xFD: "\xff",
            0xFF: _UNDEFINED,
        },
    ),
    "swe7": (
        "ascii",
        {0x40: "\xc9", 0x5B: "\xc4\xd6\xc5\xdc", 0x60: "\xe9", 0x7B: "\xe4\xf6\xe5\xfc\ufffe"},
    ),
    "armscii8": (
        "latin_1",
        {
            0xA1: "\u2741\xa7\u0589)(\xbb\xab\u2014.\u055d,-\u055f\u2026\u055c\u055b\u055e",
            0xB2: "".join(chr(0x531 + i) + chr(0x561 + i) for i in range(38)),
            0xFE: "\u2019'",
        },
    ),
    "geostd8": (
        "latin_1",
        {
            0x80: "\u20ac\ufffe\u201a\ufffe\u201e\u2026\u2020\u2021\ufffe\u2030\ufffe\u2039\ufffe"
            "\ufffe\ufffe\ufffe\ufffe\u2018\u2019\u201c\u201d\u2022\u2013\u2014\ufffe\ufffe\ufffe"
            "\u203a\ufffe\ufffe\ufffe\ufffe",
            0xC0: "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db"
            "\u10dc\u10f2\u10dd\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7"
            "\u10e8\u10e9\u10ea\u10eb\u10ec\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5",
            0xE6: _UNDEFINED * 23,
            0xFD: "\u2116" + _UNDEFINED * 2,
        },
    ),
    "keybcs2": (
        "cp437",
        {
            0x80: "\u010c\xfc\xe9\u010f\xe4\u010e\u0164\u010d\u011b\u011a\u0139\xcd\u013e\u013a"
            "\xc4\xc1\xc9\u017e\u017d\xf4\xf6\xd3\u016f\xda\xfd\xd6\xdc\u0160\u013d\xdd\u0158"
            "\u0165\xe1\xed\xf3\xfa\u0148\u0147\u016e\xd4\u0161\u0159\u0155\u0154\xbc\xa1\xab\xbb",
        },
    ),
}

# After decoding: euc_jp follows the standard where Microsoft's mapping has other characters.
_TRANSLATED: Final[dict[str, dict[int, int]]] = {
    "eucjpms": {
        0x301C: 0xFF5E,
        0x2016: 0x2225,
        0x2212: 0xFF0D,
        0xA2: 0xFFE0,
        0xA3: 0xFFE1,
        0xAC: 0xFFE2,
        0xA6: 0xFFE4,
    },
    # Python follows the edition of 2000; in that of 2005 these two have changed places.
    "gb18030": {0x1E3F: 0xE7C7, 0xE7C7: 0x1E3F},
    # The plain backslash is at the place of the full-width one.
    "ujis": {0xFF3C: 0x5C},
    "sjis": {0xFF3C: 0x5C},
}

DOUBLED: Final = frozenset({"cp932", "sjis", "ujis", "eucjpms", "big5", "armscii8"})
"""Character sets in which some characters have two encodings."""

_SECOND: Final = {"big5": (b"\xa1\xfe", b"\xa2\x40"), "sjis": (b"\\",)}
_EUC: Final = frozenset({"ujis", "eucjpms"})  # with characters of three bytes, behind 8F

BINARY: Final = "binary"
"""The character set of bytes that are no text."""


@cache
def decoder(charset: str) -> Decoder:
    """A function that decodes text of a MySQL character set.

    It raises ValueError for bytes that have no meaning in it.

    Raises:
        ValueError: there is no such character set, or it is ``binary``.
    """
    name = charset.lower()
    if name in _PATCHED:
        return _by_table(name)
    if name not in _PLAIN:
        raise ValueError(f"no character set {charset!r} is known")
    if name == "big5":
        return _big5
    if name == "eucjpms":
        return _eucjpms
    codec = _PLAIN[name]
    if codec == "utf-8":
        return bytes.decode  # the most frequent one, and this is its fastest form
    translation = _TRANSLATED.get(name)
    if translation is not None:
        return lambda data: data.decode(codec).translate(translation)
    decode = codecs.getdecoder(codec)
    return lambda data: decode(data)[0]


def key_decoder(charset: str) -> Decoder:
    """As `decoder`, for keys: text is the same only if its bytes are.

    Where a character has two encodings, text with the one that servers do not choose becomes text
    that no server takes, see `BYTES_OF_TEXT`.

    Raises:
        ValueError: there is no such character set, or it is ``binary``.
    """
    name, decode = charset.lower(), decoder(charset)
    if name not in DOUBLED:
        return decode
    first: dict[str, bytes] | None = None

    def read(data: bytes) -> str:
        nonlocal first
        text = decode(data)
        if data.isascii() and b"\\" not in data:
            return text
        if first is None:
            first = _first_encodings(name)
        again = b"".join([first.get(letter, b"") for letter in text])
        return text if again == data else BYTES_OF_TEXT + data.hex().upper()

    return read


@cache
def _first_encodings(charset: str) -> dict[str, bytes]:
    """Each character of a set with its encoding; of two, the one that servers choose."""
    decode = decoder(charset)
    codes = [bytes([code]) for code in range(256)]
    codes += [bytes(pair) for pair in product(range(0x80, 0x100), range(0x40, 0x100))]
    if charset in _EUC:
        codes += [bytes([0x8F, *pair]) for pair in product(range(0xA0, 0x100), repeat=2)]
    found: dict[str, bytes] = {}
    for code in sorted(codes, key=lambda code: (_is_second(charset, code), len(code), code)):
        with suppress(ValueError):
            text = decode(code)
            if len(text) == 1:
                found.setdefault(text, code)
    return found


def _is_second(charset: str, code: bytes) -> bool:
    """Whether servers do not choose this encoding, though it is the smaller number."""
    if charset == "cp932":
        return code[0] in {0xED, 0xEE}  # IBM's characters, in the place that NEC gave them
    return code in _SECOND.get(charset, ())


def label_decoder(charset: str) -> Decoder:
    """As `decoder`, for labels of ENUM and SET, whose character set may also be ``binary``.

    Servers show labels of that as UTF-8, and find them by its bytes. What is none becomes lone
    surrogates, so that it has no UTF-8 form and no server is given another label for it.

    Raises:
        ValueError: there is no such character set.
    """
    return binary_label if charset.lower() == BINARY else decoder(charset)


def binary_label(data: bytes) -> str:
    """The text of a label whose character set is ``binary``, see `label_decoder`."""
    return data.decode("utf-8", "surrogateescape")


def is_utf8(charset: str) -> bool:
    """Whether text of this character set is UTF-8 (or ASCII)."""
    return _PLAIN.get(charset.lower()) in ("utf-8", "ascii")


def _by_table(name: str) -> Decoder:
    codec, patches = _PATCHED[name]
    characters = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    for start, replacement in patches.items():
        characters[start : start + len(replacement)] = replacement
    table = "".join(characters).replace("\ufffd", _UNDEFINED)
    # A string is what it takes, as the modules in Python's encodings package show.
    decode = cast("Callable[[bytes, str, str], tuple[str, int]]", codecs.charmap_decode)
    return lambda data: decode(data, "strict", table)[0]


def _eucjpms(data: bytes) -> str:
    # Of the two tildes of euc_jp, this one is Microsoft's, too. 8F only ever begins a character.
    data = data.replace(b"\x8f\xa2\xb7", b"\xa1\xc1")
    return data.decode("euc_jp").translate(_TRANSLATED["eucjpms"])


def _big5(data: bytes) -> str:
    try:
        return data.decode("big5")
    except UnicodeDecodeError:
        # Python's big5 lacks seven characters that Microsoft added and MySQL has.
        return data.decode("cp950")
