"""What loads do with the rows that the source's tables hold."""

from __future__ import annotations

from contextlib import suppress

from pymysql.cursors import Cursor

from setl.channel.fields.endpoint import SourceConfig
from setl.channel.routes.routing import Router
from setl.counting import count
from setl.errors import ConfigurationError
from setl.systems.finding import Report
from setl.systems.mysql.connection import translating
from setl.systems.mysql.reading.consistent_read import any_prepared, uses_xa
from setl.systems.mysql.server import Server

_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES"
    " WHERE TABLE_TYPE = 'BASE TABLE'"
)


def check_first_load(server: Server, source: SourceConfig, router: Router, report: Report) -> None:
    """Report how many rows are loaded alongside the stream, and how many are left alone.

    Raises:
        SetlError: the server stopped answering.
    """
    wanted = set(router.entries_to_load(every=source.loads_tables))
    loaded, left = _Tables(), _Tables()
    for schema, table, rows, size in server.rows(_TABLES):
        with suppress(ConfigurationError):  # its name suits no target, which is told elsewhere
            routes = router.route(str(schema), str(table))
            if routes:
                asked = any(router.entries[route.index].name in wanted for route in routes)
                (loaded if asked else left).add(int(rows or 0), int(size or 0))
    if loaded.tables:
        report.ok(f"a first start loads {loaded}")
    if left.rows and (loaded.tables or source.starts_now):
        report.ok(
            f"a first start leaves the rows alone that are there now, {left};"
            " `start: {load: true}` in the source loads them"
        )


def check_prepared(server: Server, report: Report) -> None:
    """Report that loads are not told of prepared XA transactions, where there are any.

    Raises:
        SetlError: the server stopped answering.
    """
    with translating(server.endpoint), server.connection.cursor(Cursor) as cursor:
        prepared = any_prepared(cursor) is not None
        if prepared or not uses_xa(cursor):
            return
    report.warning(
        f"applications use XA here, and the account {server.account} cannot see which transactions"
        " are prepared: loads read all rows under shared locks, and those that were prepared before"
        " the server started are not seen",
        server.grant(["XA_RECOVER_ADMIN"], "*.*"),
        code="xa-not-seen",
    )


class _Tables:
    """How much some tables hold."""

    def __init__(self) -> None:
        self.tables = self.rows = self._bytes = 0

    def add(self, rows: int, size: int) -> None:
        self.tables += 1
        self.rows += rows
        self._bytes += size

    def __str__(self) -> str:
        megabytes, rows = self._bytes / 1e6, count(self.rows, "row")
        return f"about {rows} of {count(self.tables, 'table')}, {megabytes:,.0f} MB"
