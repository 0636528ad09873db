"""Reads a server's description of its tables, as values of `setl.model.schema`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.codec.binlog.tables.collation import common_number
from setl.codec.charset import BINARY, DOUBLED
from setl.codec.sql.created_table import definitions_of
from setl.codec.sql.table_keys import key_definition
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.errors import ConfigurationError
from setl.model.labels import LABELLED
from setl.model.logged_bytes import column_as_logged
from setl.model.schema import Capacity, Column, Kind, RowSchema
from setl.systems.mysql.column_labels import are_alike, may_be_alike, sure_labels
from setl.systems.mysql.connection import is_mariadb, translate
from setl.systems.mysql.created_text import read_created_text

_MOMENTS = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_BEYOND_BASIC = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets with characters beyond the Basic Multilingual Plane."""

SYSTEM_SCHEMAS = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
"""Schemas that belong to the server."""

OWN_SCHEMA = "retl"
"""The schema of setl's own tables (``sql/``)."""

# information_schema.COLUMNS.DATA_TYPE -> Kind. MariaDB shows its JSON as longtext, so it is
# text there; its address and uuid types read and write as text.
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), Kind.TEXT),
    **dict.fromkeys(("uuid", "inet4", "inet6"), Kind.TEXT),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Kind.BINARY
    ),
    **dict.fromkeys(
        (
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geometrycollection",
            "geomcollection",
        ),
        Kind.GEOMETRY,
    ),
    "vector": Kind.BINARY,
    "decimal": Kind.DECIMAL,
    "enum": Kind.ENUM,
    "set": Kind.SET,
    "json": Kind.JSON,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "datetime": Kind.DATETIME,
    "timestamp": Kind.TIMESTAMP,
    "year": Kind.YEAR,
    "bit": Kind.BIT,
}

_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE,
       COLLATION_NAME, EXTRA, CHARACTER_MAXIMUM_LENGTH, DATETIME_PRECISION, IS_NULLABLE,
       CHARACTER_SET_NAME, COLUMN_KEY, GENERATION_EXPRESSION
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
ORDER BY ORDINAL_POSITION"""

_UNIQUE_KEYS = """
SELECT * FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0
ORDER BY INDEX_NAME, SEQ_IN_INDEX"""

_INDEXED = """
SELECT DISTINCT COLUMN_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_NAME IS NOT NULL"""

_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"""


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class ColumnRow(NamedTuple):
    """One row of information_schema.COLUMNS, as far as it matters here."""

    name: str
    data_type: str
    column_type: str
    precision: int | None
    scale: int | None
    collation: str | None
    extra: str
    length: int | None = None
    fraction: int | None = None
    nullable: str = "YES"
    charset: str | None = None
    key: str = ""
    generation: str | None = None

    @property
    def of_versions(self) -> bool:
        """Whether a row's time in a versioned table begins or ends there; see `is_versioned`."""
        return self.generation in ("ROW START", "ROW END")


def read_table(
    connection: Connection[Any], schema: str, table: str, *, logged: bool = False
) -> RowSchema | None:
    """The columns and unique keys of a table, or None if the server has no such table.

    Not those in which a versioned table keeps when its rows began and ended.

    Args:
        connection: to the server.
        schema: the table's database.
        table: the table.
        logged: whether it is to be described as its binlog does, see `setl.model.logged_bytes`.

    Raises:
        ConfigurationError: a column has a type that no `Kind` stands for.
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    name = (schema, table)
    described = [ColumnRow(*row) for row in _select(connection, _COLUMNS, name)]
    described = [row for row in described if not row.of_versions]
    if not described:
        return None
    try:
        columns = tuple(_column_with_labels(connection, row) for row in described)
    except ConfigurationError as error:
        raise error.at(table=f"{schema}.{table}") from None
    if any(column.generated and not column.materialized for column in columns):
        indexed = {str(row[0]).lower() for row in _select(connection, _INDEXED, name)}
        columns = tuple(
            replace(column, materialized="indexed")
            if column.generated and not column.materialized and column.name.lower() in indexed
            else column
            for column in columns
        )
    indexes = {column.name: i for i, column in enumerate(columns)}
    parts = read_key_parts(connection, schema, table)
    keys = {
        key: tuple(indexes[n] for n in names if n in indexes) for key, names in _keys(parts).items()
    }
    keyed = [columns[i] for key in keys.values() for i in key]
    if any(c.kind is Kind.TEXT for c in keyed):
        wanted = frozenset(row.collation for row in described if row.collation)
        numbers = _collation_numbers(connection, wanted)
        columns = tuple(
            replace(column, collation=numbers.get(row.collation or "", 0))
            for column, row in zip(columns, described, strict=True)
        )
    first = "PRIMARY" if keys.get("PRIMARY") else _promoted(described, keys)
    primary = keys.pop(first, ())
    keys.pop("PRIMARY", None)
    odd = any(not part.whole for part in parts)
    begun = frozenset(indexes[p.columns[0]] for p in parts if p.key == first and p.length)
    columns = tuple(map(_doubled, columns))
    if logged:
        columns = tuple(map(column_as_logged, columns))
    return RowSchema(
        schema,
        table,
        columns,
        primary,
        tuple(keys.values()),
        odd_keys=odd,
        begun=begun,
        overlapless=any(len(_moments(columns, key)) > 1 for key in (primary, *keys.values()))
        and _overlapless(connection, schema, table),
    )


def _moments(columns: Sequence[Column], key: Sequence[int]) -> list[int]:
    """The columns of a key that may be the ends of a period."""
    return [i for i in key if columns[i].kind in _MOMENTS]


def _overlapless(connection: Connection[Any], schema: str, table: str) -> bool:
    """Whether a table has a key WITHOUT OVERLAPS; its text alone says so in all versions."""
    if not is_mariadb(connection):
        return False
    try:
        text = read_created_text(connection, schema, table)
    except (pymysql.MySQLError, OSError) as error:
        raise translate(error) from error
    keys = filter(None, map(key_definition, definitions_of(text)))
    return any(key.overlapless for key in keys)


def _promoted(described: Sequence[ColumnRow], keys: dict[str, tuple[int, ...]]) -> str:
    """The name of the unique key that the server treats as the primary key it has not.

    Its columns are shown as ``PRI``, and binlogs name them as the primary key's.
    """
    marked = {i for i, row in enumerate(described) if row.key == "PRI"}
    return next((n for n, indexes in keys.items() if marked and set(indexes) == marked), "")


class KeyPart(NamedTuple):
    """A part of a unique key.

    Attributes:
        key: name of the key, the primary key's being ``PRIMARY``.
        columns: the column, or those that an expression names.
        length: characters or bytes of the column that count, 0 for all of it.
        expression: its text, "" if it is a column.
    """

    key: str
    columns: tuple[str, ...]
    length: int = 0
    expression: str = ""

    @property
    def whole(self) -> bool:
        """Whether it is a column and not a prefix of one, nor an expression."""
        return not (self.length or self.expression)


def read_key_parts(connection: Connection[Any], schema: str, table: str) -> list[KeyPart]:
    """All parts of all unique keys of a table, in order; functional ones (MySQL 8) too.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    parts: list[KeyPart] = []
    for part in _select_named(connection, _UNIQUE_KEYS, (schema, table)):
        column = part["COLUMN_NAME"]
        text = "" if column is not None else str(part["EXPRESSION"] or "?")
        named = [column] if column is not None else _columns_in(text)
        parts.append(KeyPart(part["INDEX_NAME"], tuple(named), int(part["SUB_PART"] or 0), text))
    return parts


def unescaped(expression: str) -> str:
    """An expression of information_schema; MySQL escapes it as if it were itself inside a text."""
    return _ESCAPED.sub(r"\1", expression)


def _columns_in(expression: str) -> list[str]:
    """The columns that an expression of a key names, always in backticks."""
    tokens = tokenize(unescaped(expression))
    return [token.name for token in tokens if token.kind is TokenKind.NAME]


def _keys(parts: Sequence[KeyPart]) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for part in parts:
        keys[part.key] = (*keys.get(part.key, ()), *part.columns)
    return keys


def read_unique_keys(
    connection: Connection[Any], schema: str, table: str
) -> dict[str, tuple[str, ...]]:
    """Columns of each unique key by its name, the primary key's being ``PRIMARY``.

    A functional unique key (MySQL 8) is listed with the columns its expressions name.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    return _keys(read_key_parts(connection, schema, table))


def _collation_numbers(connection: Connection[Any], wanted: frozenset[str]) -> dict[str, int]:
    """Some collations by name, as columns of its binlogs have them."""
    if not wanted:
        return {}  # INET6 and UUID are text to setl, and have none
    # Not all of them: a server has hundreds, and each table of a load is asked about.
    names = tuple(sorted(wanted))
    some = ", ".join(["%s"] * len(names))
    rows = _select_named(
        connection,
        f"SELECT * FROM information_schema.COLLATIONS WHERE COLLATION_NAME IN ({some})",
        names,
    )
    numbers = {str(r["COLLATION_NAME"]): int(r["ID"]) for r in rows if r["ID"] is not None}
    if not wanted <= numbers.keys():
        # MariaDB from 10.10 on has collations that are another one for each character set.
        rows = _select_named(
            connection,
            "SELECT * FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
            f" WHERE CONCAT(CHARACTER_SET_NAME, '_', COLLATION_NAME) IN ({some})",
            names,
        )
        numbers |= {str(r["FULL_COLLATION_NAME"]): int(r["ID"]) for r in rows if r.get("ID")}
    mariadb = is_mariadb(connection)
    return {name: common_number(number, mariadb=mariadb) for name, number in numbers.items()}


def list_tables(connection: Connection[Any], schema: str | None = None) -> list[tuple[str, str]]:
    """Names of base tables as (schema, table), sorted; no views.

    Args:
        connection: to the server; only what its account may see is listed.
        schema: only this schema, or None for all but the server's own and setl's.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    if schema is not None:
        found = _select(connection, f"{_TABLES} AND TABLE_SCHEMA = %s", (schema,))
    else:
        found = _select(connection, _TABLES, ())
    tables = [(str(row[0]), str(row[1])) for row in found]
    if schema is None:
        hidden = SYSTEM_SCHEMAS | {OWN_SCHEMA}
        tables = [t for t in tables if t[0].lower() not in hidden]
    return sorted(tables)


def folds_names(connection: Connection[Any]) -> bool:
    """Whether names of tables that differ in their case only are one table to the server.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    [(setting,)] = _select(connection, "SELECT @@lower_case_table_names", ())
    return int(setting) != 0


def is_versioned(connection: Connection[Any], schema: str, table: str) -> bool:
    """Whether a table is system-versioned, which only MariaDB has.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    sql = f"{_TABLES} AND TABLE_TYPE = 'SYSTEM VERSIONED' AND TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return bool(_select(connection, sql, (schema, table)))


def is_versioned_by_numbers(connection: Connection[Any], schema: str, table: str) -> bool:
    """Whether a versioned table keeps transaction numbers instead of times.

    Raises:
        SetlError: as `is_versioned`.
    """
    if not is_versioned(connection, schema, table):
        return False
    described = [ColumnRow(*row) for row in _select(connection, _COLUMNS, (schema, table))]
    return any(row.of_versions and row.data_type == "bigint" for row in described)


def column_of(row: ColumnRow) -> Column:
    """A `Column` from its description; ConfigurationError for a type nothing is known of."""
    data_type = row.data_type.lower()
    kind = _KINDS.get(data_type)
    if kind is None:
        raise ConfigurationError(
            f"column {row.name} has the type {row.column_type}, which setl does not know",
            hint="Exclude the column, or change its type",
        )
    return Column(
        name=row.name,
        kind=kind,
        precision=int(row.precision or 0) if kind is Kind.DECIMAL else 0,
        scale=int(row.scale or 0) if kind is Kind.DECIMAL else 0,
        unsigned=kind is Kind.INTEGER and "unsigned" in row.column_type.lower(),
        binary_order=row.collation is None or _by_bytes(row.collation, row.data_type),
        # "DEFAULT_GENERATED" (MySQL 8, a default that is an expression) is not meant.
        generated=any(f"{how} GENERATED" in row.extra for how in ("VIRTUAL", "STORED")),
        capacity=_capacity(row),
        width=int(row.length or 0) if data_type == "binary" else _width(data_type, kind),
        materialized="stored" if "STORED GENERATED" in row.extra else "",
    )


def _column_with_labels(connection: Connection[Any], row: ColumnRow) -> Column:
    """`column_of`, with `Capacity.alike` as the server has it."""
    column = column_of(row)
    if column.capacity is None or not row.charset or not row.collation:
        return column
    labels, ask = column.capacity.labels, partial(_select, connection)
    if labels:
        alike = are_alike(labels, row.charset, row.collation, ask)
    else:
        hidden = column.kind in LABELLED and row.charset in _BEYOND_BASIC
        alike = hidden and may_be_alike(row.column_type, row.charset, row.collation, ask)
    if not alike:
        return column
    return replace(column, capacity=replace(column.capacity, alike=True))


def _doubled(column: Column) -> Column:
    """With `Capacity.doubled`."""
    held = column.capacity
    if column.kind is not Kind.TEXT or held is None or held.charset not in DOUBLED:
        return column
    return replace(column, capacity=replace(held, doubled=True))


def _width(data_type: str, kind: Kind) -> int:
    """See `Column.width`; of any type but BINARY."""
    if data_type in {"float", "double"}:
        return 4 if data_type == "float" else 8
    return -1 if kind is Kind.BINARY and data_type != "vector" else 0


def _capacity(row: ColumnRow) -> Capacity:
    data_type = row.data_type.lower()
    scale = row.fraction if row.scale is None else row.scale
    # MariaDB before 10.10 gives a TIMESTAMP that takes no NULL the time of day, unless it is
    # reported otherwise; and in any server the next number is what AUTO_INCREMENT makes of NULL.
    counts = "auto_increment" in row.extra.lower()
    return Capacity(
        data_type,
        length=2 if row.column_type.lower() == "year(2)" else int(row.length or 0),
        scale=None if scale is None else int(scale),
        labels=sure_labels(row.column_type) if data_type in {"enum", "set"} else (),
        nullable=row.nullable != "NO",
        fills_null=row.nullable == "NO" and (counts or data_type == "timestamp"),
        # MariaDB names it for ENUM and SET, MySQL does not.
        charset="" if row.charset in (None, BINARY) else row.charset,
        digits=int(row.precision or 0) if data_type == "float" and scale is not None else 0,
    )


def _by_bytes(collation: str, data_type: str) -> bool:
    """Whether text that differs in any byte is different for a unique key.

    Most collations that end in ``_bin`` pad with spaces, so that 'a' and 'a ' are one key
    value in a VARCHAR or TEXT column; CHAR gives up trailing spaces when it is written.
    """
    if not collation.endswith("_bin"):
        return False
    pads = not (collation.endswith("_nopad_bin") or collation == "utf8mb4_0900_bin")
    return data_type.lower() in {"char", "enum", "set"} or not pads


def _select(
    connection: Connection[Any], sql: str, args: tuple[str, ...]
) -> tuple[tuple[Any, ...], ...]:
    return _query(connection, sql, args)[1]


def _select_named(
    connection: Connection[Any], sql: str, args: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Rows by column name in upper case, for columns that only some servers have."""
    names, rows = _query(connection, sql, args)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _query(
    connection: Connection[Any], sql: str, args: tuple[str, ...]
) -> tuple[list[str], tuple[tuple[Any, ...], ...]]:
    try:
        # A plain cursor, whatever cursor class the connection was opened with.
        with connection.cursor(Cursor) as cursor:
            cursor.execute(sql, args)
            rows = cursor.fetchall()
            return [str(d[0]).upper() for d in cursor.description or ()], rows
    except (pymysql.MySQLError, OSError) as error:
        server = f"{connection.host}:{connection.port}"
        raise translate(error).at(server=server) from error
