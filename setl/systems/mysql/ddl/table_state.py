"""Asks a server what is to be known of a table before a statement runs on it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import pymysql
from pymysql.connections import Connection

from setl.codec.sql.table_ddl import Action, TableDdl
from setl.systems.mysql.catalog import read_unique_keys
from setl.systems.mysql.connection import error_number, is_mariadb
from setl.systems.mysql.identifiers import qualified, quote

Name = tuple[str, str]
"""(schema, table)."""

MISSING_TABLE: Final = frozenset({1051, 1146})
_KIND: Final = (
    "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_KEYED: Final = (
    "SELECT DISTINCT c.COLUMN_NAME FROM information_schema.STATISTICS s"
    " JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = s.TABLE_SCHEMA"
    " AND c.TABLE_NAME = s.TABLE_NAME AND c.COLUMN_NAME = s.COLUMN_NAME"
    " WHERE s.TABLE_SCHEMA = %s AND s.TABLE_NAME = %s AND s.NON_UNIQUE = 0"
    " AND c.COLLATION_NAME IS NOT NULL"
)
_DEFAULT: Final = (
    "SELECT TABLE_COLLATION FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)


def has_rows(connection: Connection[Any], name: Name) -> bool | None:
    """Whether a table has rows; None if there is no such table. pymysql's errors pass through."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"SELECT 1 FROM {qualified(*name)} LIMIT 1")
        except pymysql.MySQLError as error:
            if error_number(error) in MISSING_TABLE:
                return None
            raise
        return cursor.fetchone() is not None


def kind_of(connection: Connection[Any], name: Name) -> str:
    """What a server calls an object, such as ``BASE TABLE``; "" if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_KIND, name)
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def referring_tables(connection: Connection[Any], name: Name) -> list[str]:
    """The other tables whose foreign keys refer to a table, as ``schema.table``."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE"
            " WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s"
            " AND NOT (TABLE_SCHEMA = %s AND TABLE_NAME = %s)",
            (*name, *name),
        )
        return [f"{schema}.{table}" for schema, table in cursor.fetchall()]


class TableState(NamedTuple):
    """How a table of the target is before a statement runs on it.

    Attributes:
        rows: whether it has any.
        key: columns of its primary key in order, in lower case; () for none.
        plain: whether rows are in that order on the disk: InnoDB, and no partitions.
        types: the type of each column, in lower case.
        counter: its AUTO_INCREMENT column in lower case, "" for none.
        definitions: the type of each column with its digits.
        stored: the expression of each STORED generated column, as the server writes it.
        virtual: of each other generated column likewise.
        bare: its TIMESTAMP columns that are NOT NULL and have no default, which only a session
            with explicit_defaults_for_timestamp makes.
    """

    rows: bool = False
    key: tuple[str, ...] = ()
    plain: bool = True
    types: dict[str, str] = {}  # noqa: RUF012 - never changed
    counter: str = ""
    definitions: dict[str, str] = {}  # noqa: RUF012 - never changed
    stored: dict[str, str] = {}  # noqa: RUF012 - never changed
    virtual: dict[str, str] = {}  # noqa: RUF012 - never changed
    bare: tuple[str, ...] = ()


def state_of(connection: Connection[Any], name: tuple[str, str]) -> TableState:
    """Look at a table; pymysql's errors pass through."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME, DATA_TYPE, EXTRA, COLUMN_TYPE, GENERATION_EXPRESSION,"
            " IF(IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL, 'bare', '')"
            " FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            name,
        )
        columns = [tuple(map(str, row)) for row in cursor.fetchall()]
        if not columns:
            return TableState()
        cursor.execute(f"SELECT 1 FROM {qualified(*name)} LIMIT 1")
        rows = cursor.fetchone() is not None
        cursor.execute(
            "SELECT ENGINE, CREATE_OPTIONS FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            name,
        )
        engine, options = (str(value).lower() for value in cursor.fetchone() or ("", ""))
    return TableState(
        rows,
        key_of(connection, name),
        engine == "innodb" and "partitioned" not in options,
        {column.lower(): kind.lower() for column, kind, *_ in columns},
        next((c.lower() for c, _, extra, *_ in columns if "auto_increment" in extra.lower()), ""),
        {column.lower(): kind for column, _, _, kind, *_ in columns},
        {c.lower(): text for c, _, extra, _, text, _ in columns if "STORED GENERATED" in extra},
        {c.lower(): text for c, _, extra, _, text, _ in columns if "VIRTUAL GENERATED" in extra},
        tuple(
            column
            for column, kind, extra, _, _, bare in columns
            if kind.lower() == "timestamp" and bare and "GENERATED" not in extra
        ),
    )


def key_of(connection: Connection[Any], name: tuple[str, str]) -> tuple[str, ...]:
    """A table's primary key, in lower case; () for none. Raises SetlError."""
    key = read_unique_keys(connection, *name).get("PRIMARY", ())
    return tuple(column.lower() for column in key)


def has_unnumbered(connection: Connection[Any], name: tuple[str, str], column: str) -> bool:
    """Whether there are rows to which a counter would give a number."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT 1 FROM {qualified(*name)} WHERE {quote(column)} IS NULL"
            f" OR {quote(column)} = 0 LIMIT 1"
        )
        return cursor.fetchone() is not None


def system_zone(connection: Connection[Any]) -> tuple[str, str]:
    """Name of a server's own time zone, and how far from UTC it is now."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = 'SYSTEM'")
        cursor.execute(
            "SELECT @@system_time_zone, TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), LOCALTIMESTAMP())"
        )
        row = cursor.fetchone() or ("", "")
        cursor.execute("SET SESSION time_zone = '+00:00'")
        return str(row[0]), str(row[1])


class TargetTable(NamedTuple):
    """The table of a statement, at the target.

    Attributes:
        collation: its default collation; of one that is to be created, that of its database.
        keyed: columns of text that a unique key compares, in lower case.
        primary: columns of the primary key, in lower case.
    """

    collation: str = ""
    keyed: Collection[str] = ()
    primary: Collection[str] = ()


def target_table(target: Connection[Any], ddl: TableDdl, name: tuple[str, str]) -> TargetTable:
    """The table that a statement is about; pymysql's errors pass through."""
    if ddl.action is Action.CREATE:
        return TargetTable(default_collation(target, name[0]))
    with target.cursor() as cursor:
        cursor.execute(_DEFAULT, name)
        row = cursor.fetchone()
        cursor.execute(_KEYED, name)
        keyed = frozenset(str(column).lower() for (column,) in cursor.fetchall())
        primary = key_of(target, name)
    return TargetTable(str(row[0]) if row and row[0] else "", keyed, primary)


def default_collation(connection: Connection[Any], schema: str) -> str:
    """A database's default collation now, "" if there is no such database."""
    return value_of(
        connection,
        "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
        schema,
    )


def name_of_collation(connection: Connection[Any], number: int) -> str:
    """What a server calls a collation."""
    if is_mariadb(connection):
        return value_of(
            connection,
            "SELECT FULL_COLLATION_NAME FROM"
            " information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE ID = %s",
            number,
        )
    return value_of(
        connection, "SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID = %s", number
    )


def value_of(connection: Connection[Any], question: str, value: object) -> str:
    """The one value that a question about another one is answered with, "" for none."""
    with connection.cursor() as cursor:
        cursor.execute(question, (value,))
        row = cursor.fetchone()
    return "" if row is None else str(row[0])
