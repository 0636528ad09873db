"""Finds foreign keys at the source that change rows without logging it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from setl.codec.sql.created_table import ForeignKey, definitions_of, foreign_key_of
from setl.errors import ConfigurationError
from setl.model.schema import RowSchema
from setl.systems.finding import Report, accepting, finding_id
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.server import Server, replicated_sources
from setl.systems.mysql.table_facts import TableText

FOREIGN_KEY_ACTION: Final = "foreign-key-action"
"""What the finding is named by, see `setl.systems.finding.Finding.code`."""


def accepts_actions(accept: Sequence[str], table: str) -> bool:
    """Whether a pipeline is to live with what `check_cascades` reports of a table.

    Args:
        accept: as the pipeline has it, see `setl.operate.check.with_accepted`.
        table: schema and name, with a dot between.
    """
    return bool(accepting(accept, finding_id(FOREIGN_KEY_ACTION, table)))


def logs_actions(server: Server) -> bool:
    """Whether rows that foreign keys change by themselves are in the binlog.

    They are where that is done above the storage engine: MySQL from 9.6 on, by default. A replica
    of such a server repeats what its source logs. If that logs none of these rows, the replica's
    engine changes them, and the replica logs none either, whatever it does for its own clients.
    """
    return _logs_its_own(server) and not _replicates(server)


def _logs_its_own(server: Server) -> bool:
    return server.variables.get("innodb_native_foreign_keys", "ON") == "OFF"


def _replicates(server: Server) -> bool:
    """Whether it is a replica. Nobody knows without the privilege to see that."""
    # A group has channels of its own, between servers that are alike.
    channels = (str(status.get("channel_name")) for status in replicated_sources(server))
    return any(not name.startswith("group_replication_") for name in channels)


def refuse_cascades(server: Server, table: RowSchema, accept: Sequence[str]) -> None:
    """Refuse a table that comes while a pipeline runs, if `check_cascades` reports it.

    Raises:
        ConfigurationError: it has such a foreign key, and the pipeline does not accept that.
        SetlError: the server does not answer.
    """
    if accepts_actions(accept, table.name):
        return
    for key in _unlogged(server, table):
        raise ConfigurationError(
            _what(server, key),
            hint="Create the table at the target by hand, with the source's foreign keys: then setl"
            f" carries them out. Or, at the source: {' '.join(_hints(key, table))}. Where no"
            f" such row ever goes, name {FOREIGN_KEY_ACTION}@{table.name} under `accept` in the"
            " channel file",
            table=table.name,
        )


class WhyNot(NamedTuple):
    """Why setl cannot carry out what a foreign key does.

    Attributes:
        reason: half a sentence.
        hint: what would change that, an instruction; "" for nothing.
    """

    reason: str
    hint: str = ""


CarriedOut = Callable[[RowSchema, ForeignKey, Sequence[ForeignKey]], WhyNot | None]
"""Why setl cannot carry out a foreign key of a table, given all of its with actions; None if it
does. Raises SetlError if the target does not answer."""


def check_cascades(
    server: Server, tables: Sequence[RowSchema], report: Report, wait_for_end: CarriedOut
) -> None:
    """Report foreign keys whose actions change rows of these tables unlogged, and not by setl.

    Read from SHOW CREATE TABLE: information_schema shows foreign keys only to accounts that
    may do more than SELECT.

    Raises:
        SetlError: the server does not answer.
    """
    for table in tables:
        table_report = report.at(table.name)
        with table_report.failing():
            keys = list(_unlogged(server, table))
            for key in keys:
                why_not = wait_for_end(table, key, keys)
                if why_not is None:
                    continue
                hints = [why_not.hint] if why_not.hint else []
                hints += _hints(key, table)
                what = f"{_what(server, key)}. setl cannot carry it out: {why_not.reason}"
                table_report.error(what, *hints, code=FOREIGN_KEY_ACTION, risk=True)


def _unlogged(server: Server, table: RowSchema) -> Iterator[ForeignKey]:
    """The foreign keys of a table whose actions change rows that the binlog does not have."""
    if logs_actions(server):
        return
    text = TableText.read(server, table.schema, table.table).text
    for definition in definitions_of(text):
        key = foreign_key_of(definition)
        if key is not None and key.actions:
            yield key


def _what(server: Server, key: ForeignKey) -> str:
    if _logs_its_own(server):
        return (
            f"the foreign key {key.name} has {', '.join(key.actions)}, and this server is a"
            " replica: it logs the rows that these change only if its source does (MySQL from 9.6"
            " on with innodb_native_foreign_keys=OFF). Else the target would keep the old ones;"
            " accept this if it does"
        )
    return (
        f"the foreign key {key.name} has {', '.join(key.actions)}: the storage engine changes these"
        " rows itself and writes nothing to the binlog, so the target would keep the old ones"
    )


def _hints(key: ForeignKey, table: RowSchema) -> tuple[str, ...]:
    child, name = qualified(table.schema, table.table), quote(key.name)
    parent = qualified(key.schema or table.schema, key.parent)
    made = (
        f"ALTER TABLE {child} ADD CONSTRAINT {name} FOREIGN KEY {_list(key.columns)}"
        f" REFERENCES {parent} {_list(key.parent_columns)};"
    )
    return (
        f"ALTER TABLE {child} DROP FOREIGN KEY {name};",
        made,
        "Change the child rows in the application, in the same transaction",
    )


def _list(columns: Sequence[str]) -> str:
    return f"({', '.join(map(quote, columns))})"
