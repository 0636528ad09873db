"""What a server's greeting says of executing statements for many rows."""

import struct

import pytest

from setl.systems.mysql.load.bulk_connection import loses_no_rows, offers_bulk


def greeting(version, flags, own):
    return (
        b"\x0a" + version + b"\0" + struct.pack("<I", 7) + b"saltsalt\0"
        + struct.pack("<HBHHB", flags, 45, 2, 0x81FF, 21) + bytes(6) + struct.pack("<I", own)
        + b"moresaltmore\0mysql_native_password\0"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "flags", "own", "offers"),
    [
        (b"5.5.5-10.11.14-MariaDB", 0xF7FE, 0b111, True),
        (b"5.5.5-10.1.48-MariaDB", 0xF7FE, 0, False),
        (b"9.7.1", 0xFFFF, 0, False),
        # Of a proxy that says it is a MariaDB, and is none in this.
        (b"5.5.5-10.11.14-MariaDB", 0xF7FF, 0b111, False),
        (b"5.5.5-10.11.14-MariaDB", 0xF7FE, 0b011, False),
    ],
)
def test_who_offers_it(version, flags, own, offers):
    assert offers_bulk(greeting(version, flags, own)) is offers


def test_what_is_no_greeting_offers_nothing():
    whole = greeting(b"5.5.5-10.11.14-MariaDB", 0xF7FE, 0b111)
    for length in range(len(whole)):
        offers_bulk(whole[:length])
    assert not offers_bulk(b"")
    assert not offers_bulk(b"\xff\x10\x04Too many connections")


@pytest.mark.parametrize(
    ("version", "fine"),
    [
        ("5.5.5-10.11.19-MariaDB-0+deb12u1-log", True),
        ("5.5.5-10.11.11-MariaDB", True),
        ("5.5.5-10.11.10-MariaDB", False),
        ("5.5.5-10.6.21-MariaDB", False),
        ("11.4.4-MariaDB-log", False),
        ("11.4.5-MariaDB-log", True),
        ("11.7.9-MariaDB", False),
        ("11.8.2-MariaDB", True),
        ("12.0.1-MariaDB", True),
        ("9.7.1", False),
        ("", False),
    ],
)
def test_releases_in_which_triggers_take_rows_away_are_left_out(version, fine):
    assert loses_no_rows(version) is fine
