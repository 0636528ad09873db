"""Servers side by side: rows as bytes, definitions, and whether indexes are sound."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pymysql

from setl_drills.oracle.shapes import Column, Shape, shapes_of
from setl_embedded import DatabaseServer

Row = tuple[bytes | None, ...]
_SETTINGS: Final = (
    "SET SESSION sql_mode = '', time_zone = '+00:00', character_set_results = NULL,"
    " sql_quote_show_create = 1"
)
_SHOWN = 3
_SPELT_COLLATION: Final = re.compile(
    r"^(  `((?:[^`]|``)+)` \w+(?:\((?:'(?:[^']|'')*'|[^')])*\))?)"
    r"(?: CHARACTER SET \w+)?(?: COLLATE \w+)?",
    re.MULTILINE,
)
"""A column's type, and the character set and collation that a server shows behind it, or not."""
_OPTIONS: Final = re.compile(r"^\) ENGINE=.*", re.MULTILINE)
_UTF8: Final = re.compile(r"(?<=CHARSET=)utf8\b|(?<=COLLATE=)utf8(?=_)")
"""What servers call utf8mb3, by their age."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A table that is not at the target as it is at the source.

    Attributes:
        kind: ``rows``, ``lost``, ``extra``, ``columns``, ``index`` or ``definition``.
        table: its name.
        detail: what differs, for people.
    """

    kind: str
    table: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} of {self.table}: {self.detail}"


def differences(
    source: DatabaseServer, other: DatabaseServer, schema: str, *, mixed: bool = False
) -> list[Difference]:
    """All in which another server's tables differ from the source's.

    Args:
        source: what is right.
        other: what is compared with it.
        schema: whose tables.
        mixed: whether the servers are of two families, so that definitions and JSON texts differ.
    """
    of_source, of_other = shapes_of(source, schema), shapes_of(other, schema)
    found = [Difference("lost", t, "not at the target") for t in of_source if t not in of_other]
    # What an online change works with is not carried.
    found += [
        Difference("extra", t, "only at the target")
        for t in of_other
        if t not in of_source and not t.startswith("_")
    ]
    found = [d for d in found if not d.table.startswith("_")]
    with _opened(source) as a, _opened(other) as b:
        for table, shape in of_source.items():
            if table in of_other and not table.startswith("_"):
                found += _compared(a, b, schema, shape, of_other[table], mixed=mixed)
    return found


def rows_of_table(server: DatabaseServer, schema: str, shape: Shape) -> Counter[Row]:
    """The rows of a table, each value as the bytes that the server shows or holds.

    Args:
        server: whose rows.
        schema: of the table.
        shape: the table; by its types and character sets values are shown.
    """
    own = shapes_of(server, schema)[shape.name]
    charsets = {column.name: column.charset for column in own.columns}
    with _opened(server) as connection:
        return _rows(connection, schema, shape, mixed=False, charsets=charsets)


def count_rows(server: DatabaseServer, schema: str) -> int:
    """How many rows all tables of a schema have."""
    with _opened(server) as connection:
        counts = [
            _query(connection, f"SELECT COUNT(*) FROM {_quoted(schema)}.{_quoted(table)}")[0][0]
            for table in shapes_of(server, schema)
        ]
    return sum(map(int, counts))


def _compared(
    a: Any, b: Any, schema: str, shape: Shape, at_other: Shape, *, mixed: bool
) -> list[Difference]:
    table = shape.name
    names, others = ([column.name for column in each.columns] for each in (shape, at_other))
    if names != others:
        return [Difference("columns", table, f"{names} at the source, {others} at the target")]
    # By the source's types: both are shown alike.
    of_a, of_b = (_rows(each, schema, shape, mixed=mixed) for each in (a, b))
    found: list[Difference] = []
    if of_a != of_b:
        lacks, has = list((of_a - of_b).elements()), list((of_b - of_a).elements())
        odd = [n for i, n in enumerate(names) if {r[i] for r in lacks} != {r[i] for r in has}]
        found.append(
            Difference(
                "rows",
                table,
                f"{sum(of_a.values())} rows at the source, {sum(of_b.values())} at the target;"
                f" columns {odd}\n  only source: {lacks[:_SHOWN]}\n  only target: {has[:_SHOWN]}",
            )
        )
    unsound = [_checked(each, schema, table) for each in (a, b)]
    if unsound[1] and not unsound[0]:
        found.append(Difference("index", table, unsound[1]))
    of_a_text, of_b_text = (_definition(each, schema, table) for each in (a, b))
    if not mixed and of_a_text != of_b_text:
        found.append(Difference("definition", table, _text_difference(of_a_text, of_b_text)))
    return found


def _rows(
    connection: Any,
    schema: str,
    shape: Shape,
    *,
    mixed: bool,
    charsets: Mapping[str, str] | None = None,
) -> Counter[Row]:
    shown = ", ".join(_shown(column, charsets or {}) for column in shape.columns)
    found = _query(connection, f"SELECT {shown} FROM {_quoted(schema)}.{_quoted(shape.name)}")
    plain = [_plain(column, mixed=mixed) for column in shape.columns]
    return Counter(tuple(f(v) for f, v in zip(plain, row, strict=True)) for row in found)


def _shown(column: Column, charsets: Mapping[str, str]) -> str:
    """An expression whose text is one to one with the value.

    Text is in the column's own character set, also where a server's table has another one.
    """
    name = _quoted(column.name)
    if column.kind in {"float", "double"}:
        return f"{name} + 0e0"
    if column.kind in {"enum", "set"}:
        return f"CONCAT({name} + 0, ':', HEX({name}))"
    if column.text and charsets.get(column.name, column.charset) != column.charset:
        return f"CONVERT({name} USING {column.charset})"
    return f"HEX({name} + 0)" if column.kind == "bit" else name


def _plain(column: Column, *, mixed: bool) -> Callable[[bytes | None], bytes | None]:
    if mixed and column.kind == "json":
        return _canonical
    return lambda value: value


def _canonical(document: bytes | None) -> bytes | None:
    """A document without the order of its members and the blanks between them."""
    if document is None:
        return None
    return json.dumps(json.loads(document), sort_keys=True).encode()


def _checked(connection: Any, schema: str, table: str) -> str:
    """What CHECK TABLE finds wrong, "" for nothing."""
    said = _query(connection, f"CHECK TABLE {_quoted(schema)}.{_quoted(table)} EXTENDED")
    bad = [row[3] for row in said if row[2] not in {b"status", b"note"} or row[3] == b"Corrupt"]
    return b"; ".join(bad).decode("utf-8", "replace")


def _definition(connection: Any, schema: str, table: str) -> str:
    (row,) = _query(connection, f"SHOW CREATE TABLE {_quoted(schema)}.{_quoted(table)}")
    found = _query(
        connection,
        "SELECT column_name, collation_name FROM information_schema.columns"
        f" WHERE table_schema = {_literal(schema)} AND table_name = {_literal(table)}",
    )
    texts = [[value.decode("utf-8", "replace") for value in pair] for pair in found if pair[1]]
    return comparable(row[1].decode("utf-8", "replace"), dict(texts))


def comparable(text: str, collations: Mapping[str, str]) -> str:
    """What SHOW CREATE TABLE says, in which equal tables are equal.

    MySQL shows a column's character set and collation also where they are the table's, if the
    statement has named them; so each column gets its collation, which says its character set.

    Args:
        text: the statement.
        collations: of the columns with text, from the catalogue.
    """

    def spelt(match: re.Match[str]) -> str:
        collation = collations.get(match[2].replace("``", "`"), "")
        collation = re.sub(r"^utf8(?=_)", "utf8mb3", collation)
        return f"{match[1]} COLLATE {collation}" if collation else match[0]

    text = _SPELT_COLLATION.sub(spelt, text)
    text = _OPTIONS.sub(lambda match: _UTF8.sub("utf8mb3", match[0]), text)
    # The RENAME of an online change takes other tables' foreign keys along; at the target nothing
    # is renamed, as documented.
    text = re.sub(r"REFERENCES `_([^`]+)_(?:old|del)`", r"REFERENCES `\1`", text)
    return re.sub(r" AUTO_INCREMENT=\d+", "", text)


def _text_difference(first: str, second: str) -> str:
    a, b = first.splitlines(), second.splitlines()
    lines = [f"  source: {line.strip()}" for line in a if line not in b]
    lines += [f"  target: {line.strip()}" for line in b if line not in a]
    return "\n" + "\n".join(lines or ["  the order of lines"])


def _query(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _opened(server: DatabaseServer) -> Any:
    connection = server.connect(conv={}, use_unicode=False, read_timeout=60)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SETTINGS)
    except pymysql.MySQLError:
        connection.close()
        raise
    return connection


def _literal(text: str) -> str:
    return f"_utf8mb4 X'{text.encode().hex()}'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
