# ruff: noqa: RUF001 - letters of many scripts look alike, that is what is tested
import pytest

from setl.codec.binlog.tables.collation import (
    charset_of,
    common_name,
    common_number,
    compares_bytes,
)
from setl.codec.charset import decoder, is_utf8


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
