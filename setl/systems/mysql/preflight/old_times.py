"""Finds times with fractions in the format of MariaDB 5.3, which no binlog describes in full."""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.tables.old_times import HINT, OLD_FORMAT
from setl.systems.finding import Report
from setl.systems.mysql.server import Server

_FRACTIONS: Final = """
SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND DATETIME_PRECISION > 0
  AND LOCATE(%s, COLUMN_TYPE) > 0
ORDER BY ORDINAL_POSITION"""


def check_old_times(server: Server, schema: str, table: str, report: Report) -> None:
    """Report columns of a source table whose values in the binlog cannot be read.

    Raises:
        SetlError: the server does not answer.
    """
    if not server.mariadb:
        return
    rows = server.rows(_FRACTIONS, (schema, table, OLD_FORMAT))
    found = ", ".join(f"{name} {type_}" for name, type_ in rows)
    if found:
        report.error(
            "the table has times in MariaDB's format of 5.3 (of tables from before 10.1, or made"
            " with mysql56_temporal_format=OFF), and the binlog does not tell the digits of their"
            f" fractions: {found}",
            HINT,
            code="old-times",
        )
