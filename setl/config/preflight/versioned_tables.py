"""Tables whose binlog has more than the rows of today."""

from __future__ import annotations

from setl.config.preflight.finding import Report
from setl.config.preflight.server import Server

_VERSIONED = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE = 'SYSTEM VERSIONED'"""


def versioned_tables(server: Server) -> frozenset[tuple[str, str]]:
    """The system-versioned tables of a server, which only MariaDB has. Raises SetlError."""
    return frozenset((str(row[0]), str(row[1])) for row in server.rows(_VERSIONED))


def report_versioned(report: Report) -> None:
    """Report that a table of the source is system-versioned, see `setl.codec.binlog.period`."""
    report.error(
        "the table is system-versioned: the binlog has rows of its history among the others, and"
        " setl does not tell them apart",
        "Leave the table out of the mapping, or ALTER TABLE … DROP SYSTEM VERSIONING",
    )
