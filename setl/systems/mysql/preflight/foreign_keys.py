"""Foreign keys at the source that change rows behind the binlog's back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from setl.codec.sql.created_table import definitions_of
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.preflight.server import Server
from setl.systems.mysql.preflight.table_facts import TableText

_NAME = r"`(?:[^`]|``)+`"
_FOREIGN_KEY = re.compile(
    rf"CONSTRAINT (?P<name>{_NAME}) FOREIGN KEY (?P<columns>\({_NAME}(?:, {_NAME})*\))"
    rf" REFERENCES (?P<parent>(?:{_NAME}\.)?{_NAME}) (?P<parent_columns>\({_NAME}(?:, {_NAME})*\))"
    r"(?P<rules>[^,\n]*)"
)
_ACTION = re.compile(r"ON (?:DELETE|UPDATE) (?:CASCADE|SET NULL|SET DEFAULT)")


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
                key = _FOREIGN_KEY.match(definition.text)
                if key is not None:
                    _check_actions(key, table, place)


def _check_actions(key: re.Match[str], table: RowSchema, report: Report) -> None:
    actions = _ACTION.findall(key.group("rules"))
    if not actions:
        return
    child = qualified(table.schema, table.table)
    name, parent = key.group("name"), key.group("parent")
    if re.fullmatch(_NAME, parent):
        parent = f"{quote(table.schema)}.{parent}"
    report.error(
        f"the foreign key {name[1:-1]} has {', '.join(actions)}: the storage engine changes these"
        " rows itself and writes nothing to the binlog, so the target would keep the old ones",
        f"ALTER TABLE {child} DROP FOREIGN KEY {name};",
        f"ALTER TABLE {child} ADD CONSTRAINT {name} FOREIGN KEY {key.group('columns')}"
        f" REFERENCES {parent} {key.group('parent_columns')};",
        "Change the child rows in the application, in the same transaction",
    )
