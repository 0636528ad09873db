"""Finds foreign keys at the source that change rows without logging it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.sql.created_table import ForeignKey, definitions_of, foreign_key_of
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.preflight.server import Server
from setl.systems.mysql.preflight.table_facts import TableText

FOREIGN_KEY_ACTION: Final = "foreign-key-action"
"""What the finding is named by, see `setl.systems.finding.Finding.code`."""


def check_cascades(server: Server, tables: Sequence[RowSchema], report: Report) -> None:
    """Report foreign keys whose actions change rows of these tables and are not logged.

    Read from SHOW CREATE TABLE: information_schema shows foreign keys only to accounts that
    may do more than SELECT.

    Raises:
        SetlError: the server does not answer.
    """
    if server.variables.get("innodb_native_foreign_keys", "ON") == "OFF":
        return  # MySQL 9.6: the actions are done above the storage engine, and logged
    for table in tables:
        place = report.at(table.name)
        with place.failing():
            text = TableText.read(server, table.schema, table.table).text
            for definition in definitions_of(text):
                key = foreign_key_of(definition)
                if key is not None and key.actions:
                    _check_actions(key, table, place)


def _check_actions(key: ForeignKey, table: RowSchema, report: Report) -> None:
    child, name = qualified(table.schema, table.table), quote(key.name)
    parent = qualified(key.schema or table.schema, key.parent)
    report.error(
        f"the foreign key {key.name} has {', '.join(key.actions)}: the storage engine changes these"
        " rows itself and writes nothing to the binlog, so the target would keep the old ones",
        f"ALTER TABLE {child} DROP FOREIGN KEY {name};",
        f"ALTER TABLE {child} ADD CONSTRAINT {name} FOREIGN KEY {_list(key.columns)}"
        f" REFERENCES {parent} {_list(key.parent_columns)};",
        "Change the child rows in the application, in the same transaction",
        code=FOREIGN_KEY_ACTION,
        risk=True,
    )


def _list(columns: Sequence[str]) -> str:
    return f"({', '.join(map(quote, columns))})"
