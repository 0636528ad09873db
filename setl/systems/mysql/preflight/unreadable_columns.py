"""Finds columns that a server shows otherwise than they are, or its binlog does not describe."""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.tables.old_times import HINT, OLD_FORMAT
from setl.systems.finding import Report
from setl.systems.mysql.server import Server

_SINCE: Final = (9, 7)
_MASKED: Final = """
SELECT COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE '%%MASKING POLICY%%'
ORDER BY ORDINAL_POSITION"""

_FRACTIONS: Final = """
SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND DATETIME_PRECISION > 0
  AND LOCATE(%s, COLUMN_TYPE) > 0
ORDER BY ORDINAL_POSITION"""


def check_masked(server: Server, schema: str, table: str, report: Report) -> None:
    """Report columns with a masking policy: who it is not made for reads something else.

    Which accounts that are is only known to a component of the server.

    Raises:
        SetlError: the server does not answer.
    """
    if server.mariadb or server.version < _SINCE:
        return
    masked = ", ".join(str(name) for (name,) in server.rows(_MASKED, (schema, table)))
    if masked:
        report.error(
            f"the server masks columns ({masked}): what setl reads of the table, in a load, with"
            " `read: source` or to compare it, need not be what it holds",
            f"Have the masking policy leave them as they are for {server.account}, and then name"
            f" masked-columns@{schema}.{table} under `accept` in the channel file",
            code="masked-columns",
            risk=True,
        )


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
