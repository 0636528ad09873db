"""What of the session that ran a statement decides what the statement means."""

from __future__ import annotations

from typing import Final, NamedTuple


class StatementSession(NamedTuple):
    """Settings of a session, as far as the stream tells them.

    Attributes:
        schema: schema of names without one, "" for none.
        sql_mode: the modes as the binlog's bits, None if unknown.
        foreign_keys: whether foreign keys are checked, None if unknown.
        time_zone: name of its time zone, "" if unknown or without influence.
    """

    schema: str = ""
    sql_mode: int | None = None
    foreign_keys: bool | None = None
    time_zone: str = ""

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
