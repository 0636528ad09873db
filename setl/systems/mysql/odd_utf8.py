"""Reads what servers send as UTF-8, and is none.

MariaDB keeps halves of surrogate pairs, and sends them as it does other characters of three bytes.
Such text is read as what `setl.printable.text_of_bytes` says.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final, cast

from pymysql.connections import Connection

from setl.printable import BYTES_OF_TEXT, bytes_of_text, text_of_bytes

ODD_UTF8: Final = "setl_utf8"
"""Name of the codec, for the ``encoding`` of a connection."""

_UTF8: Final = "utf8mb4"
_CODECS: Final = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf32": "utf-32-be"}


def _decode(data: Any, _: str = "strict", /) -> tuple[str, int]:
    try:
        return codecs.utf_8_decode(data, "strict", True)  # noqa: FBT003 - it takes no names
    except UnicodeDecodeError:
        return text_of_bytes(_UTF8, bytes(data).hex().upper()), len(data)


def _search(name: str) -> codecs.CodecInfo | None:
    return codecs.CodecInfo(codecs.utf_8_encode, _decode, name=name) if name == ODD_UTF8 else None


codecs.register(_search)


def read_odd_utf8(connection: Connection[Any]) -> None:
    """Have a connection read text with this codec, if its server may send such text."""
    client = cast("Any", connection)
    if "mariadb" in str(client.get_server_info()).lower():
        client.encoding = ODD_UTF8


def in_charset(charset: str) -> Callable[[str], str] | None:
    """What makes the text of a column of a character set of what this codec gave.

    None if that is the same.
    """
    codec = _CODECS.get(charset)
    if codec is None:
        return None
    front = text_of_bytes(_UTF8, "")

    def value(text: str) -> str:
        if not text.startswith(BYTES_OF_TEXT) or not text.startswith(front):
            return text
        letters = bytes.fromhex(bytes_of_text(text)[1]).decode("utf-8", "surrogatepass")
        return text_of_bytes(charset, letters.encode(codec, "surrogatepass").hex().upper())

    return value
