"""Finds what a site will have in columns that its rows did not have yet.

A new column comes to one site first. Rows that clients of the other site write until it comes there
have no value for it. They get its default there, when it comes. So that is what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pymysql.connections import Connection

from setl.errors import ConfigurationError
from setl.model.change import Value
from setl.model.conflict import History
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.values.row_values import decoded, decoders, select_list, undecoded

_DEFAULTS = (
    "SELECT COLUMN_NAME, COLUMN_DEFAULT, EXTRA, IS_NULLABLE FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)


def missing_columns(described: RowSchema, history: History) -> Iterator[Column]:
    """The target's columns that go to the source, which did not have them yet."""
    if history.returning is None:
        return
    named = {name.lower() for name in history.columns}
    for column in described.columns:
        known = column.generated or column.name.lower() in named
        if not known and history.returning.has(column.name):
            yield column


def defaults_of(
    connection: Connection[Any], described: RowSchema, columns: Sequence[Column]
) -> dict[str, Value]:
    """What rows get in these columns, by name in lower case; without what differs by row.

    pymysql's errors pass through. Of an empty table nothing is reported: new rows get it anyway.

    Raises:
        ConfigurationError: a column has no default, and is not NULL.
    """
    constant = _constant(connection, described, columns)
    if not constant:
        return {}
    values = ", ".join(f"DEFAULT({quote(c.name)}) AS {quote(c.name)}" for c in constant)
    table = qualified(described.schema, described.table)
    with undecoded(connection) as cursor:
        cursor.execute(
            f"SELECT {select_list(constant)} FROM"
            f" (SELECT {values.replace('%', '%%')} FROM {table.replace('%', '%%')} LIMIT %s) AS d",
            (1,),
        )
        found = cursor.fetchall()
    if not found:
        return {}
    row = decoded(decoders(constant), found[0])
    return {column.name.lower(): value for column, value in zip(constant, row, strict=True)}


def _constant(
    connection: Connection[Any], described: RowSchema, columns: Sequence[Column]
) -> list[Column]:
    with connection.cursor() as cursor:
        cursor.execute(_DEFAULTS, (described.schema, described.table))
        known = {str(name).lower(): more for name, *more in cursor.fetchall()}
    constant: list[Column] = []
    for column in columns:
        default, extra, nullable = known.get(column.name.lower(), (None, "", "YES"))
        if default is None and nullable == "NO":
            raise ConfigurationError(
                f"rows come without the column {column.name}, which has no default and is not NULL",
                hint="Give it the default that rows have there at the other site",
                table=described.name,
            )
        # MariaDB shows texts in quotes, and MySQL says which defaults are expressions.
        computed = "(" in str(default) and not str(default).startswith("'")
        if not (computed if is_mariadb(connection) else "DEFAULT_GENERATED" in str(extra)):
            constant.append(column)
    return constant
