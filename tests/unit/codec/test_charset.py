# ruff: noqa: RUF001 - letters of many scripts look alike, that is what is tested
from contextlib import suppress

import pytest

from setl.codec.binlog.tables.collation import (
    charset_of,
    common_name,
    common_number,
    compares_bytes,
)
from setl.codec.charset import decoder, exact_decoder, is_utf8, label_decoder, value_decoder
from setl.printable import bytes_of_text, text_of_bytes


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        ("latin1", bytes(range(0x80, 0xA0)), "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ"),
        ("LATIN1", b"\xe9", "é"),
        ("greek", b"\xa1\xa2\xe1", "ʽʼα"),
        ("cp866", b"\xfc\xfd\xe0", "ⁿ²р"),
        ("hebrew", b"\xaf", "‾"),
        ("koi8u", b"\x95", "•"),
        ("dec8", b"\xa8\xd7\xdd", "¤ŒŸ"),
        ("swe7", b"@[\\]{|}", "ÉÄÖÅäöå"),
        ("armscii8", b"\xb2\xb3\xfd\xfe", "Աաֆ’"),
        ("geostd8", b"\x80\xc0\xe5\xfd", "€ა\u10f5№"),
        ("keybcs2", b"\x80\xaf\xe0", "Č»α"),
        ("macce", b"\x8a", "ä"),
        ("gbk", b"\xba\xba", "汉"),
        ("gb18030", b"\x95\x32\x82\x36", "𠀀"),
        ("big5", b"\xf9\xd8", "裏"),
        ("eucjpms", b"\xa1\xc1\xa1\xdd", "～－"),
        ("eucjpms", b"\x8f\xa2\xb7~\x8f\xa2\xc3", "～~￤"),
        ("gb18030", b"\xa8\xbc\x81\x35\xf4\x37", "\u1e3f\ue7c7"),
        ("ujis", b"\xa1\xc0", "\\"),
        ("ujis", b"\xf5\xa1\xfe\xfe\x8f\xf5\xa1\x8f\xfe\xfe", "\ue000\ue3ab\ue3ac\ue757"),
        ("eucjpms", b"a\xad\xa1\xad\xfcz", "a①∪z"),
        ("eucjpms", b"\x8f\xf3\xf3\x8f\xf4\xa1\x8f\xf4\xfe", "ⅰⅢ黑"),
        ("eucjpms", b"\xf5\xa1\x8f\xfe\xfe", "\ue000\ue757"),
        ("big5", b"\xa4\xa1\x5a\xa4\xa4", "丑Z中"),  # not A15A
        ("euckr", b"\x81\x41", "갂"),
        ("ucs2", b"\x65\xe5", "日"),
        ("utf16", b"\xd8\x3d\xde\x42", "🙂"),
        ("utf16le", b"\x3d\xd8\x42\xde", "🙂"),
        ("utf32", b"\x00\x01\xf6\x42", "🙂"),
        ("utf8", "é".encode(), "é"),
        ("utf8mb4", "🙂".encode(), "🙂"),
    ],
)
def test_text_decodes_as_mysql_does(charset, data, text):
    assert decoder(charset)(data) == text


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("ascii", b"\x80"),
        ("utf8mb4", b"\xff"),
        ("utf8mb4", b"a\xed\xa0\x80"),  # half of a surrogate pair
        ("big5", b"a\xa1\x5a"),
        ("big5", b"\xa4\xa1\xa1\xc3"),
        ("big5", b"\xf9\xfe"),
        ("big5", b"\xc8\x40"),
        ("eucjpms", b"\xad\xbf"),
        ("ujis", b"\xad\xa1"),
        ("greek", b"\xa4"),
        ("gbk", b"\x81"),
        ("ucs2", b"a"),
    ],
)
def test_bytes_without_meaning_are_an_error(charset, data):
    with pytest.raises(UnicodeDecodeError):
        decoder(charset)(data)


@pytest.mark.parametrize("charset", ["", "binary", "klingon"])
def test_what_is_no_charset_has_no_decoder(charset):
    with pytest.raises(ValueError, match="character set"):
        decoder(charset)


# What servers make of the first bytes, as UTF-8 and back: MariaDB and MySQL agree.
RESPELT = [
    ("cp932", "8790", "81E0"), ("cp932", "EEF9", "81CA"), ("cp932", "FA54", "81CA"),
    ("cp932", "ED40", "FA5C"), ("cp932", "FA4A", "8754"), ("sjis", "5C", "815F"),
    ("ujis", "A1C0", "5C"), ("ujis", "8FA2B7", "7E"), ("eucjpms", "8FA2B7", "A1C1"),
    ("armscii8", "A4", "29"), ("armscii8", "FF", "27"),
]  # fmt: skip


@pytest.mark.parametrize(("charset", "second", "first"), RESPELT)
def test_keys_are_the_same_only_if_their_bytes_are(charset, second, first):
    text, key = decoder(charset), exact_decoder(charset)
    before, behind = b"a1", b" z"
    one, other = (before + bytes.fromhex(code) + behind for code in (first, second))
    assert text(one) == text(other) == key(one)
    assert key(other) == text_of_bytes(charset, other.hex().upper())
    with pytest.raises(UnicodeEncodeError):
        key(other).encode()  # so no server takes it


@pytest.mark.parametrize("charset", sorted({charset for charset, *_ in RESPELT}))
def test_each_character_of_a_key_has_one_encoding(charset):
    text, key = decoder(charset), exact_decoder(charset)
    codes = [bytes([n]) for n in range(256)] + [bytes(divmod(n, 256)) for n in range(0x8000, 65536)]
    stored, all_of_them = [], set()
    for code in codes:
        with suppress(ValueError):
            if len(letter := text(code)) == 1:
                all_of_them.add(letter)
                stored += [letter] if key(code) == letter else []
    assert len(set(stored)) == len(stored)
    assert set(stored) == all_of_them


def test_values_that_are_no_text_stay_bytes():
    read = value_decoder("big5")
    assert read(b"\xa4\xa4") == "中"
    assert read(b"\xa4\xa4\xc8\x40") == text_of_bytes("big5", "A4A4C840")
    assert bytes_of_text(read(b"\xc8\x40")) == ("big5", "C840")
    # UTF-8 of three and of four bytes is one character set as far as bytes go.
    assert value_decoder("utf8mb3")(b"\xed\xa0\x80") == value_decoder("utf8mb4")(b"\xed\xa0\x80")
    assert label_decoder("gbk")(b"\xa1\x40") == text_of_bytes("gbk", "A140")
    with pytest.raises(UnicodeEncodeError):
        read(b"\xc8\x40").encode()


def test_keys_of_other_character_sets_are_text():
    assert exact_decoder("gbk")("汉".encode("gbk")) == "汉"
    assert exact_decoder("utf8mb4")(b"a\\") == "a\\"


def test_utf8_is_known_by_all_its_names():
    assert all(is_utf8(name) for name in ("utf8", "utf8mb3", "UTF8MB4", "ascii"))
    assert not any(is_utf8(name) for name in ("latin1", "binary", "nothing"))


@pytest.mark.parametrize(
    ("collation", "charset"),
    [
        (1, "big5"),
        (8, "latin1"),
        (28, "gbk"),
        (33, "utf8mb3"),
        (45, "utf8mb4"),
        (63, "binary"),
        (192, "utf8mb3"),
        (224, "utf8mb4"),
        (248, "gb18030"),
        (255, "utf8mb4"),
        (309, "utf8mb4"),
        (1032, "latin1"),
        (1057, "utf8mb3"),
        (1270, "utf8mb4"),
        (2048, "utf8mb3"),
        (2304, "utf8mb4"),
        (3271, "utf32"),
        (0, ""),
        (1023, ""),
        (99999, ""),
    ],
)
def test_collations_name_their_charset(collation, charset):
    assert charset_of(collation) == charset


@pytest.mark.parametrize(
    ("collation", "padded", "bytewise"),
    [
        (63, True, True),
        (309, True, True),
        (46, True, False),
        (46, False, True),
        (1070, True, True),
        (45, False, False),
        (255, True, False),
        (2304, True, False),
        (249, False, True),
    ],
)
def test_which_collations_compare_bytes(collation, padded, bytewise):
    assert compares_bytes(collation, padded=padded) is bytewise


@pytest.mark.parametrize(
    ("number", "name", "same"),
    [
        (255, "utf8mb4_0900_ai_ci", False),
        (278, "utf8mb4_0900_as_cs", False),
        (309, "utf8mb4_0900_bin", True),
        (45, "utf8mb4_general_ci", True),
        (2308, "utf8mb4_uca1400_nopad_ai_ci", True),
    ],
)
def test_one_name_for_two_collations(number, name, same):
    """To MariaDB they go by a later Unicode than to MySQL."""
    assert common_number(number, mariadb=False) == number
    assert (common_number(number, mariadb=True) == number) is same
    assert (common_name(name, mariadb=True) == common_name(name, mariadb=False)) is same
