"""Finds columns that a server may show otherwise than they are (masking policies of MySQL 9.7)."""

from __future__ import annotations

from typing import Final

from setl.systems.finding import Report
from setl.systems.mysql.server import Server

_SINCE: Final = (9, 7)
_MASKED: Final = """
SELECT COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE '%%MASKING POLICY%%'
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
