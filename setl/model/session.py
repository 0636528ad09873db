"""The session settings that decide what a statement means."""

from __future__ import annotations

from typing import Final, NamedTuple


class StatementSession(NamedTuple):
    """Settings of a session, as far as the stream tells them. Kept as JSON: append only.

    Attributes:
        schema: schema of names without one, "" for none.
        sql_mode: the modes as the binlog's bits, None if unknown.
        foreign_keys: whether foreign keys are checked, None if unknown.
        time_zone: name of its time zone, "" if unknown or without influence.
        at: what the statement took for now, microseconds since 1970 UTC; None if unknown.
        mariadb: whether the server is a MariaDB, None if unknown.
        unique_checks: whether unique keys are checked, None if unknown.
        explicit_timestamps: explicit_defaults_for_timestamp, None if unknown.
        increment: auto_increment_increment.
        offset: auto_increment_offset.
        collation: id of collation_connection, 0 if unknown.
        utf8mb4: id of MySQL's default_collation_for_utf8mb4, 0 if unknown.
        collations: ids of a character set's collation and of that which MariaDB takes for the
            set when a statement names none (character_set_collations).
        month_names: number of lc_time_names, 0 for en_US.
        error: number of the error that the statement ended with all the same, else 0.
        temporary: whether it used a temporary table.
        server_collation: id of collation_server, 0 if unknown.
        database_collation: id of collation_database, 0 if it is that of `schema` or unknown.
        committed: whether a storage engine of MySQL took part in it, as in all DDL that does
            something to tables of InnoDB.
        thread: the connection's number, 0 if unknown.
    """

    schema: str = ""
    sql_mode: int | None = None
    foreign_keys: bool | None = None
    time_zone: str = ""
    at: int | None = None
    mariadb: bool | None = None
    unique_checks: bool | None = None
    explicit_timestamps: bool | None = None
    increment: int = 1
    offset: int = 1
    collation: int = 0
    utf8mb4: int = 0
    collations: tuple[tuple[int, int], ...] = ()
    month_names: int = 0
    error: int = 0
    temporary: bool = False
    server_collation: int = 0
    database_collation: int = 0
    committed: bool = False
    thread: int = 0

    @property
    def known(self) -> bool:
        """Whether the stream tells of the session at all: a binlog does, a topic does not."""
        return self.sql_mode is not None

    def has_mode(self, name: str) -> bool:
        """Whether a mode of `MODES` is on; False if unknown."""
        return bool((self.sql_mode or 0) & MODES[name])


MODES: Final = {
    "REAL_AS_FLOAT": 1 << 0,
    "PIPES_AS_CONCAT": 1 << 1,
    "ANSI_QUOTES": 1 << 2,
    "IGNORE_SPACE": 1 << 3,
    "NO_UNSIGNED_SUBTRACTION": 1 << 6,
    "NO_AUTO_VALUE_ON_ZERO": 1 << 19,
    "NO_BACKSLASH_ESCAPES": 1 << 20,
    "STRICT_TRANS_TABLES": 1 << 21,
    "STRICT_ALL_TABLES": 1 << 22,
    "NO_ZERO_IN_DATE": 1 << 23,
    "NO_ZERO_DATE": 1 << 24,
    "ALLOW_INVALID_DATES": 1 << 25,
    "ERROR_FOR_DIVISION_BY_ZERO": 1 << 26,
    "HIGH_NOT_PRECEDENCE": 1 << 29,
    "NO_ENGINE_SUBSTITUTION": 1 << 30,
    "PAD_CHAR_TO_FULL_LENGTH": 1 << 31,
}
"""Bits of ``sql_mode`` that mean the same to MySQL and MariaDB, and something to DDL.

https://github.com/mysql/mysql-server/blob/8.4/sql/system_variables.h and the same file of MariaDB
number them; the others either combine these or belong to one server's dialect.
"""

DIALECTS: Final = {
    "ORACLE": 1 << 9,
    "MSSQL": 1 << 10,
    "DB2": 1 << 11,
    "MAXDB": 1 << 12,
    "EMPTY_STRING_IS_NULL": 1 << 32,
}
"""MariaDB's modes in which types and values mean others: under ORACLE a DATE is a DATETIME."""

ROUNDS_FRACTIONS: Final = 1 << 34
"""MariaDB's TIME_ROUND_FRACTIONAL: what does not fit is rounded, and cut off without it."""

CUTS_FRACTIONS: Final = 1 << 32
"""MySQL's TIME_TRUNCATE_FRACTIONAL: what does not fit is cut off, and rounded without it."""
