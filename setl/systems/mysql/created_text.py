"""Reads how a server says that a table is made, also where that is no text.

MariaDB writes the default of a BINARY or VARBINARY column as the bytes that it is, which need not
be characters of any character set. Such a literal is written here as MySQL writes it, in
hexadecimal.
"""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.codec.sql.tokens import text_of, tokenize, with_others
from setl.systems.mysql.identifiers import qualified

_BYTES: Final = "latin-1"  # a character for each byte
_MAX_CACHED: Final = "surrogateescape"


def read_created_text(connection: Connection[Any], schema: str, table: str) -> str:
    """The text of SHOW CREATE TABLE; pymysql's errors pass through."""
    client: Any = connection
    encoding = client.encoding
    question: Any = f"SHOW CREATE TABLE {qualified(schema, table)}".encode(encoding)
    client.encoding = _BYTES  # pymysql takes an answer to be text of this
    try:
        with connection.cursor(Cursor) as cursor:
            cursor.execute(question)
            row: Any = cursor.fetchone()
    finally:
        client.encoding = encoding
    return created_text(str(row[1]).encode(_BYTES)) if row else ""


def created_text(said: bytes) -> str:
    """What a server sent, as text."""
    try:
        return said.decode()
    except UnicodeDecodeError:
        text = _with_hexadecimal(said.decode(errors=_MAX_CACHED))
        return text.encode(errors="replace").decode()


def _with_hexadecimal(text: str) -> str:
    values = ((token, text_of(token)) for token in tokenize(text))
    return with_others(
        text,
        (
            (token, f"X'{value.encode(errors=_MAX_CACHED).hex()}'")
            for token, value in values
            if not _is_text(value)
        ),
    )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
