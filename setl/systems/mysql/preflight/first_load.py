"""What a first start does with the rows that the source's tables hold."""

from __future__ import annotations

from contextlib import suppress

from setl.channel.file import MysqlSource
from setl.channel.routing import Router
from setl.errors import ConfigurationError
from setl.systems.finding import Report
from setl.systems.mysql.preflight.server import Server

_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES"
    " WHERE TABLE_TYPE = 'BASE TABLE'"
)


def check_first_load(server: Server, source: MysqlSource, router: Router, report: Report) -> None:
    """Report how many rows a first start loads, or leaves alone.

    Raises:
        SetlError: the server stopped answering.
    """
    mapped: list[tuple[int, int]] = []
    for schema, table, rows, size in server.rows(_TABLES):
        with suppress(ConfigurationError):  # its name suits no target, which is told elsewhere
            if router.route(str(schema), str(table)):
                mapped.append((int(rows or 0), int(size or 0)))
    rows, size = sum(row for row, _ in mapped), sum(size for _, size in mapped)
    what = f"about {rows:,} rows of {len(mapped):,} tables, {size / 1e6:,.0f} MB"
    if source.loads_tables:
        report.ok(f"a first start loads {what}")
    elif rows and source.start == "latest":
        report.ok(
            f"a first start leaves the rows alone that are there now, {what};"
            " `start: {load: true}` in the source loads them"
        )
