"""Kinds of tables whose rows a binlog tells otherwise than those of a plain InnoDB table."""

from __future__ import annotations

from setl.config.preflight.finding import Report
from setl.config.preflight.server import Server
from setl.mysql.identifiers import qualified

_VERSIONED = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE = 'SYSTEM VERSIONED'"""

_ENGINE = """
SELECT t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t
LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s"""


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


def check_engine(server: Server, schema: str, table: str, report: Report, *, two_way: bool) -> None:
    """Report a target table whose rows are not written in transactions.

    Such rows stand in the binlog outside the transaction that has the mark. In a two-way channel
    the opposite pipeline takes them for a user's and sends them back (I9).

    Raises:
        SetlError: the server does not answer.
    """
    rows = server.rows(_ENGINE, (schema, table))
    if not rows or rows[0][1] == "YES":
        return
    engine = str(rows[0][0])
    way_out = f"ALTER TABLE {qualified(schema, table)} ENGINE = InnoDB;"
    if two_way:
        report.error(
            f"the table's engine {engine} has no transactions: what setl writes there could not be"
            " told from what users write, and would go back and forth",
            way_out,
        )
    else:
        report.warning(
            f"the table's engine {engine} has no transactions: readers see half of a load, and"
            " rows of a load that failed stay until it is repeated",
            way_out,
        )
