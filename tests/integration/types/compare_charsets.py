"""Compares setl's decoders with what servers say of every character of every character set.

By hand, since it takes minutes, with a server of each family:

    python -m tests.integration.types.compare_charsets

Each server gets every sequence of one and two bytes, and those of three and four that may be a
character, into a column of the character set, and says which of them it takes and what they are in
UTF-8. It prints the characters for which `decoder` says something else, and those of two encodings
of which `exact_decoder` does not choose the server's. Nothing is printed where all is the same.
"""

import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path

from setl.codec.charset import decoder, exact_decoder
from setl.printable import BYTES_OF_TEXT
from setl_embedded import MariaDb, MySql

_AT_ONCE = 20_000
_REPLACED = frozenset({"big5", "tis620"})  # servers say U+FFFD for what they have no character for
_WIDE = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
_HALF = re.compile("[\ud800-\udfff]")


def sequences(charset: str) -> Iterator[bytes]:
    """All bytes that may be a character of a character set, and many that are none."""
    yield from (bytes([one]) for one in range(256))
    yield from map(bytes, product(range(256), repeat=2))
    high = range(0x80, 0x100)
    if charset in {"ujis", "eucjpms"}:
        yield from (bytes([0x8F, *pair]) for pair in product(high, high))
    if charset == "gb18030":
        lead, digit = range(0x81, 0xFF), range(0x30, 0x3A)
        yield from map(bytes, product(lead, digit, lead, digit))
    if charset in {"utf8mb3", "utf8mb4"}:
        yield from map(bytes, product(range(0xE0, 0xF0), range(0x70, 0xD0), range(0x70, 0xD0)))
    if charset == "utf8mb4":
        yield from (chr(code).encode() for code in range(0x10000, 0x110000, 17))
    if charset == "utf32":
        codes = chain(range(0x10000), range(0x10000, 0x110010, 13))
        yield from (code.to_bytes(4, "big") for code in codes)


def said_by(cursor, charset: str) -> dict[bytes, bytes | None]:
    """The characters that a server takes, and what they are in UTF-8; None if it does not know."""
    found = list(sequences(charset))
    for statement in (
        "DROP TABLE IF EXISTS given, taken",
        "CREATE TABLE given (k INT PRIMARY KEY, b VARBINARY(8))",
        f"CREATE TABLE taken (k INT PRIMARY KEY, v VARCHAR(8) CHARACTER SET {charset})",
    ):
        cursor.execute(statement)
    for start in range(0, len(found), _AT_ONCE):
        some = enumerate(found[start : start + _AT_ONCE], start)
        rows = ",".join(f"({number},x'{data.hex()}')" for number, data in some)
        cursor.execute(f"INSERT INTO given VALUES {rows}")
    cursor.execute("INSERT IGNORE INTO taken SELECT k, b FROM given")
    cursor.execute(
        "SELECT HEX(b), HEX(CONVERT(v USING utf8mb4)) FROM given JOIN taken USING (k)"
        " WHERE CAST(v AS BINARY) = b AND CHAR_LENGTH(v) = 1"
    )
    said = {bytes.fromhex(b): None if u is None else bytes.fromhex(u) for b, u in cursor.fetchall()}
    return {data: _known(charset, data, text) for data, text in said.items()}


def _known(charset: str, data: bytes, text: bytes | None) -> bytes | None:
    question = "?".encode(_WIDE.get(charset, "ascii"))
    if not text or (text == b"?" and data != question):
        return None
    return None if charset in _REPLACED and text == b"\xef\xbf\xbd" else text


def differences(charset: str, said: dict[bytes, bytes | None]) -> Iterator[str]:
    """What setl decodes otherwise."""
    decode = decoder(charset)
    for data, text in sorted(said.items()):
        wanted = None if text is None else text.decode("utf-8", "surrogatepass")
        if wanted is not None and _HALF.fullmatch(wanted):
            wanted = None  # it stays bytes
        try:
            got = decode(data)
        except ValueError:
            got = None
        if got != wanted:
            yield f"{charset} {data.hex()}: setl {got!a}, server {wanted!a}"


def respelt(cursor, charset: str, said: dict[bytes, bytes | None]) -> Iterator[str]:
    """Keys with two encodings of which setl chooses another one than the server."""
    key = exact_decoder(charset)
    by_text: dict[bytes, list[bytes]] = defaultdict(list)
    for data, text in said.items():
        if text is not None:
            by_text[text].append(data)
    for text, several in by_text.items():
        if len(several) > 1:
            cursor.execute(f"SELECT HEX(CONVERT(_utf8mb4 x'{text.hex()}' USING {charset}))")
            chosen = bytes.fromhex(cursor.fetchone()[0])
            stored = [data for data in several if not key(data).startswith(BYTES_OF_TEXT)]
            if stored != [chosen]:
                yield f"{charset} {text.hex()}: setl keeps {stored}, the server {chosen!r}"


def compare(server) -> int:
    """Print all differences; returns how many there are."""
    count = 0
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE compared")
        cursor.execute("USE compared")
        cursor.execute("SET sql_mode = '', sql_notes = 0")
        cursor.execute("SHOW CHARACTER SET")
        for charset in sorted(row[0] for row in cursor.fetchall()):
            if charset == "binary":
                continue
            said = said_by(cursor, charset)
            for line in (*differences(charset, said), *respelt(cursor, charset, said)):
                sys.stdout.write(f"{server.name}: {line}\n")
                count += 1
    return count


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        several = (
            MariaDb(Path(folder) / "mariadb", "mariadb", 1),
            MySql(Path(folder) / "mysql", "mysql", 2),
        )
        total = 0
        for one in several:
            with one:
                total += compare(one)
    sys.exit(total > 0)
