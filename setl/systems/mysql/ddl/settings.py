"""Makes a schema change's session like the source's, as replication does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.errors import FatalError, SetlError
from setl.model.session import (
    CUTS_FRACTIONS,
    DIALECTS,
    MODES,
    ROUNDS_FRACTIONS,
    StatementSession,
)
from setl.systems.mysql.connection import is_mariadb, translate
from setl.systems.mysql.ddl.collating import default_collations
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.table_state import state_of

# How long a statement waits for whoever uses the table. Everybody else waits behind it.
_TABLE_WAIT_SECONDS: Final = 20

# Where the source does not say: accepts what any source may have accepted.
_UNKNOWN_MODE: Final = "NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"

SYSTEM_ZONE: Final = "SYSTEM"
_MILLION: Final = 1_000_000


_PRIVILEGE: Final = "SESSION_VARIABLES_ADMIN"


def settings_for(session: StatementSession, *, mariadb: bool) -> list[str]:
    """The statements that make a session of the target like that of the source."""
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


def session_settings(target: Connection[Any], step: Step) -> list[str]:
    """What else a step's session needs, beside `settings_for`."""
    if step.source is None or step.ddl is None:
        return []
    return [*_timestamps(target, step), *default_collations(target, step.session)]


def _timestamps(target: Connection[Any], step: Step) -> Iterator[str]:
    """Whether columns of that type have defaults by themselves, which not every account may set."""
    explicit, name = step.session.explicit_timestamps, "explicit_defaults_for_timestamp"
    # Whoever copies a table gives its columns of that type their defaults again.
    concerned = explicit is not None and "timestamp" in step.statement.lower()
    if explicit is None or not (
        concerned or "timestamp" in state_of(target, step.tables[0]).types.values()
    ):
        return
    with target.cursor() as cursor:
        cursor.execute(f"SELECT @@SESSION.{name}")
        row = cursor.fetchone()
        if row is None or int(row[0]) == explicit:
            return
        statement = f"SET SESSION {name} = {int(explicit)}"
        try:
            cursor.execute(statement)
        except pymysql.MySQLError as error:
            failure: SetlError = translate(error)
            what = "BINLOG REPLAY" if is_mariadb(target) else _PRIVILEGE
            raise FatalError(
                f"a schema change has to run under the source's settings: {failure.message}",
                hint=f"GRANT {what} ON *.* to the target's account, and start again",
            ) from error
        finally:
            cursor.execute(f"SET SESSION {name} = DEFAULT")
    yield statement
