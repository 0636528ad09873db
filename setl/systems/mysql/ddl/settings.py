"""Makes a schema change's session like the source's, as replication does.

What the source's server takes over when it is started is in no event (I26): the zone of its
machine, and whether it logs what foreign keys do. The server says what they are now. They were the
same then if it has not been started since, which would show in the binlog. They were as well if
they had the same values at a change before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pymysql.connections import Connection

from setl.clock import SystemClock
from setl.errors import FatalError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.position import BinlogPosition
from setl.model.session import (
    CUTS_FRACTIONS,
    DIALECTS,
    MODES,
    ROUNDS_FRACTIONS,
    StatementSession,
)
from setl.systems.mysql.binlog.statements_ahead import finds_server_start
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.ddl.table_records import TableRecord, TableRecords

# How long a statement waits for whoever uses the table. Everybody else waits behind it.
_TABLE_WAIT_SECONDS: Final = 20

# Where the source does not say: accepts what any source may have accepted.
_UNKNOWN_MODE: Final = "NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"

SYSTEM_ZONE: Final = "SYSTEM"
_MILLION: Final = 1_000_000
_STRICT: Final = MODES["STRICT_TRANS_TABLES"] | MODES["STRICT_ALL_TABLES"]


_KIND: Final = "server"
_LIMIT: Final = 120.0  # seconds to read ahead


def settings_for(session: StatementSession, *, mariadb: bool) -> list[str]:
    """The statements that make a session of the target like that of the source.

    Args:
        session: the source's.
        mariadb: whether the target is a MariaDB.

    Raises:
        FatalError: the target has nothing like it.
    """
    # The source has checked foreign keys if it was to; a table that is missing here is seen.
    foreign_keys = 1 if session.foreign_keys else 0
    zone = session.time_zone.replace("'", "") or "+00:00"
    clock = "DEFAULT"
    if session.at is not None:
        clock = f"{session.at // _MILLION}.{session.at % _MILLION:06}"
    wanted = {
        # First: the statement before may have left one in which the texts below are no ASCII.
        "character_set_connection": "utf8mb4",
        "sql_mode": f"'{_modes(session, mariadb=mariadb)}'",
        "foreign_key_checks": str(foreign_keys),
        "unique_checks": "0" if session.unique_checks is False else "1",
        "time_zone": f"'{zone}'",
        "timestamp": clock,
        "lc_time_names": str(session.month_names),
        "lock_wait_timeout": str(_TABLE_WAIT_SECONDS),
        # Rows go into no other tables, whatever the target makes where a statement names no engine.
        "default_storage_engine": "InnoDB",
    }
    if mariadb:
        # What is missing here is missing, whether or not the statement says IF EXISTS.
        wanted["sql_if_exists"] = "0"
        # Rows that a new CHECK refuses are at the source, too, in a session that did not check.
        wanted["check_constraint_checks"] = "0"
        # The source has altered its table, and the target's history is the target's own.
        wanted["system_versioning_alter_history"] = "KEEP"
    if mariadb and session.mariadb is False:
        wanted["old_mode"] = "'UTF8_IS_UTF8MB3'"  # as it is to every MySQL
    if session.collation and session.mariadb == mariadb:
        # Of literals in expressions; the servers give their younger collations other numbers.
        wanted["collation_connection"] = str(session.collation)
    return [f"SET SESSION {name} = {value}" for name, value in wanted.items()]


def lenient_modes(session: StatementSession, *, mariadb: bool) -> str:
    """The statement that has such a session take what does not fit with warnings.

    Args:
        session: the source's.
        mariadb: whether the target is a MariaDB.

    Raises:
        FatalError: the target has nothing like it.
    """
    if session.sql_mode is not None:
        session = session._replace(sql_mode=session.sql_mode & ~_STRICT)
    return f"SET SESSION sql_mode = '{_modes(session, mariadb=mariadb)}'"


def is_system_zone(session: StatementSession) -> bool:
    """Whether what a statement did depends on the zone of the machine it ran on."""
    return session.time_zone.upper() == SYSTEM_ZONE


def _modes(session: StatementSession, *, mariadb: bool) -> str:
    bits = session.sql_mode
    # Options that the source's engine knows, or that nobody does, are no reason to stop a replica.
    lenient = ["IGNORE_BAD_TABLE_OPTIONS"] if mariadb else []
    if bits is None:
        return ",".join([_UNKNOWN_MODE, *lenient])
    names = [*(name for name in MODES if session.has_mode(name)), *lenient]
    dialects = [n for n, bit in DIALECTS.items() if session.mariadb and bits & bit]
    if dialects and not mariadb:
        raise FatalError(
            f"the source ran it under sql_mode {dialects[0]}, in which types and values mean what"
            " they do not mean to a MySQL"
        )
    cut = not bits & ROUNDS_FRACTIONS if session.mariadb else bool(bits & CUTS_FRACTIONS)
    if mariadb and not cut:
        names.append("TIME_ROUND_FRACTIONAL")
    if not mariadb and cut:
        names.append("TIME_TRUNCATE_FRACTIONAL")
    return ",".join(dialects + names)


class ServerSettings:
    """Those of one pipeline's source, for one schema change."""

    def __init__(
        self,
        source: MysqlEndpoint,
        ticket: LoadTicket,
        change: SchemaChange,
        *,
        connection: Callable[[], Connection[Any]],
        begin: Callable[[], Connection[Any]],
    ) -> None:
        """Connect to nothing yet.

        Args:
            source: the source's server.
            ticket: on whose behalf.
            change: the schema change.
            connection: to the target.
            begin: begins a fenced transaction on it.
        """
        self._source, self._ticket, self._change = source, ticket, change
        self._connection, self._begin = connection, begin

    def had(self, setting: str, value: str) -> bool:
        """Whether a setting had the value that it has now when the change ran.

        Args:
            setting: names it.
            value: what it is now.

        Returns:
            False if that is not known. True also where no binlog is read: nothing tells there.

        Raises:
            SetlError: a server does not answer.
        """
        position, change = self._change.position, self._change
        if not isinstance(position, BinlogPosition):
            return True
        known = self._records(self._connection()).of((setting, ""))
        if known is not None and (known.generation, known.text) == (change.generation, value):
            return True
        if finds_server_start(self._source, position, SystemClock(), _LIMIT) is not False:
            return False
        connection = self._begin()
        record = TableRecord(change.generation, change.version, value)
        self._records(connection).write([(setting, "")], record)
        connection.commit()
        return True

    def _records(self, connection: Connection[Any]) -> TableRecords:
        return TableRecords(connection, self._ticket, _KIND, before=_KIND)
