"""MySQL's character sets as functions from bytes to text.

Where Python's codec of the same name decodes some bytes in another way than servers do, the
servers' way is used. No difference remains: ``tests/integration/types/compare_charsets.py`` asks a
MariaDB and a MySQL for every character of every character set.

A few sets have one character at two positions (``cp932`` at 398, ``eucjpms`` at 23, ``sjis`` and
``ujis`` the backslash, ``armscii8`` six). Text of theirs stays the same text, but a server that
writes it chooses one of the two. Two keys would become one by that, see `exact_decoder`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any, Final, cast

from setl.printable import BYTES_OF_TEXT, bytes_of_text, text_of_bytes

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
    # The plain backslash is at the position of the full-width one.
    "ujis": {0xFF3C: 0x5C},
    "sjis": {0xFF3C: 0x5C},
}

# Rows of the Japanese EUC tables that euc_jp lacks: where they begin, and their characters.
_NEC_ROW_13: Final = (
    b"\xad\xa1",
    (
        "\u2460\u2461\u2462\u2463\u2464\u2465\u2466\u2467\u2468\u2469\u246a\u246b\u246c\u246d\u246e"
        "\u246f\u2470\u2471\u2472\u2473\u2160\u2161\u2162\u2163\u2164\u2165\u2166\u2167\u2168\u2169"
        "\ufffe\u3349\u3314\u3322\u334d\u3318\u3327\u3303\u3336\u3351\u3357\u330d\u3326\u3323\u332b"
        "\u334a\u333b\u339c\u339d\u339e\u338e\u338f\u33c4\u33a1\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe"
        "\ufffe\ufffe\u337b\u301d\u301f\u2116\u33cd\u2121\u32a4\u32a5\u32a6\u32a7\u32a8\u3231\u3232"
        "\u3239\u337e\u337d\u337c\u2252\u2261\u222b\u222e\u2211\u221a\u22a5\u2220\u221f\u22bf\u2235"
        "\u2229\u222a\ufffe\ufffe"
    ),
)
_IBM_ROWS: Final = (
    b"\x8f\xf3\xf3",
    (
        "\u2170\u2171\u2172\u2173\u2174\u2175\u2176\u2177\u2178\u2179\u2160\u2161\u2162\u2163\u2164"
        "\u2165\u2166\u2167\u2168\u2169\uff07\uff02\u3231\u2116\u2121\u70bb\u4efc\u50f4\u51ec\u5307"
        "\u5324\ufa0e\u548a\u5759\ufa0f\ufa10\u589e\u5bec\u5cf5\u5d53\ufa11\u5fb7\u6085\u6120\u654e"
        "\u663b\u6665\ufa12\uf929\u6801\ufa13\ufa14\u6a6b\u6ae2\u6df8\u6df2\u7028\ufa15\ufa16\u7501"
        "\u7682\u769e\ufa17\u7930\ufa18\ufa19\ufa1a\ufa1b\u7ae7\ufa1c\ufa1d\u7da0\u7dd6\ufa1e\u8362"
        "\ufa1f\u85b0\ufa20\ufa21\u8807\ufa22\u8b7f\u8cf4\u8d76\ufa23\ufa24\ufa25\u90de\ufa26\u9115"
        "\ufa27\ufa28\u9592\uf9dc\ufa29\u973b\u974d\u9751\ufa2a\ufa2b\ufa2c\u999e\u9ad9\u9b72\ufa2d"
        "\u9ed1"
    ),
)
# Rows that users may fill, ten of each table: Unicode has room for them from U+E000 on.
_OF_USERS: Final = (
    (b"\xf5\xa1", "".join(map(chr, range(0xE000, 0xE3AC)))),
    (b"\x8f\xf5\xa1", "".join(map(chr, range(0xE3AC, 0xE758)))),
)
_EUC_ROWS: Final = {
    "ujis": _OF_USERS,
    "eucjpms": (_NEC_ROW_13, _IBM_ROWS, *_OF_USERS),
}

# Places of big5 for which Python has a character and servers have none.
_BIG5_LACKS: Final = re.compile(
    rb"\xa1[\x5a\xc3\xc5\xfe]|\xa2[\x40\xcc\xce]|\xa3\xe1|\xf9[\xdd-\xfe]"
)
_BIG5_CHARACTER: Final = re.compile(rb"[^\x00-\x80].?|[\x00-\x80]+", re.DOTALL)

DOUBLED: Final = frozenset({"cp932", "sjis", "ujis", "eucjpms", "armscii8"})
"""Character sets in which some characters have two encodings."""

_SECOND: Final = {"sjis": (b"\\",)}
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
    codec = _PLAIN[name]
    if name in _EUC_ROWS:
        return _euc_decoder(name)
    if codec == "utf-8":
        return bytes.decode  # the most frequent one, and this is its fastest form
    translation = _TRANSLATED.get(name)
    if translation is not None:
        return lambda data: data.decode(codec).translate(translation)
    decode = codecs.getdecoder(codec)
    return lambda data: decode(data)[0]


def value_decoder(charset: str) -> Decoder:
    """As `exact_decoder`, for values of columns: what servers have no character for stays bytes.

    It becomes text that has no UTF-8 form, see `text_of_bytes`. So it arrives in a column of the
    same character set, and is an error of its row anywhere else.

    Raises:
        ValueError: there is no such character set, or it is ``binary``.
    """
    return or_bytes(charset, exact_decoder(charset))


def or_bytes(charset: str, decode: Decoder) -> Decoder:
    """As `decode`; what that refuses becomes what `value_decoder` says."""

    def read(data: bytes) -> str:
        try:
            return decode(data)
        except ValueError:
            return text_of_bytes(charset, data.hex().upper())

    return read


def exact_decoder(charset: str) -> Decoder:
    """As `decoder`, but text is the same only if its bytes are.

    Where a character has two encodings, text with the one that servers do not choose becomes what
    `text_of_bytes` says. A column of the same character set gets these bytes; elsewhere
    `in_characters` makes text of it, but not in keys, where two rows would become one.

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
        return text if again == data else text_of_bytes(name, data.hex().upper())

    return read


def in_characters(value: Any, *, unless: str = "") -> Any:
    """Text that `exact_decoder` has left as bytes, as its characters; any other value as it is.

    Args:
        value: any value.
        unless: a character set of which text stays bytes.
    """
    if not isinstance(value, str) or not value.startswith(BYTES_OF_TEXT):
        return value
    charset, digits = bytes_of_text(value)
    if charset not in DOUBLED or charset == unless:
        return value
    try:
        return decoder(charset)(bytes.fromhex(digits))
    except ValueError:
        return value


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
    surrogates, so that it has no UTF-8 form and no server is given another label for it. So do
    labels that servers have no characters for, see `value_decoder`.

    Raises:
        ValueError: there is no such character set.
    """
    return binary_label if charset.lower() == BINARY else value_decoder(charset)


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


def _euc_decoder(name: str) -> Decoder:
    further = {
        code: letter
        for first, letters in _EUC_ROWS[name]
        for code, letter in _positions(first, letters)
        if letter != _UNDEFINED
    }
    errors, translation = f"setl-{name}", _TRANSLATED[name]
    codecs.register_error(errors, lambda error: _one_of(further, error))
    if name == "ujis":
        return lambda data: data.decode("euc_jp", errors).translate(translation)
    # Of the two tildes of euc_jp, this one is Microsoft's, too. 8F only ever begins a character.
    return lambda data: (
        data.replace(b"\x8f\xa2\xb7", b"\xa1\xc1").decode("euc_jp", errors).translate(translation)
    )


def _positions(first: bytes, letters: str) -> Iterator[tuple[bytes, str]]:
    """Each of some characters with its position in a table of EUC: 94 to a row, from A1 on."""
    *front, row, cell = first
    for number, letter in enumerate(letters, (row - 0xA1) * 94 + cell - 0xA1):
        rows, cells = divmod(number, 94)
        yield bytes([*front, 0xA1 + rows, 0xA1 + cells]), letter


def _one_of(further: Mapping[bytes, str], error: UnicodeError) -> tuple[str, int]:
    """Decode a character that Python's codec lacks; see `codecs.register_error`."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    size = 3 if error.object[error.start] == 0x8F else 2
    letter = further.get(error.object[error.start : error.start + size])
    if letter is None:
        raise error
    return letter, error.start + size


def _big5(data: bytes) -> str:
    if _BIG5_LACKS.search(data):  # which may be the end of one character and the next one's
        for found in _BIG5_CHARACTER.finditer(data):
            if _BIG5_LACKS.fullmatch(found[0]):
                raise UnicodeDecodeError("big5", data, *found.span(), "no character")
    try:
        return data.decode("big5")
    except UnicodeDecodeError:
        # Python's big5 lacks seven characters that Microsoft added and MySQL has.
        return data.decode("cp950")
