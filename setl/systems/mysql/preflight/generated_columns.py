"""Checks generated columns, of the source and of the target.

Of the source: MariaDB 11.8 logs no generated column with an update, also with
binlog_row_image=FULL (seen with 11.8.9; 10.11 does). That is no loss where the target computes it
itself, nor where it is not mapped.

Of the target: what a server computes may depend on the session that writes a row. Where it keeps
the result in the row, `setl.systems.mysql.load.generated` sees to it that it is the source's. Where
it keeps it in an index only, nobody can: the server computes it again whenever it looks for the
index entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.channel.routes.routing import Route, selected_columns
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.generated_by_session import dependence, dependent_columns, times_of
from setl.systems.mysql.server import Server
from setl.transform.unlogged_columns import needed_by_spark_sql

_LOGS_GENERATED: Final = (10, 11)
"""The last series of MariaDB that is known to log generated columns with each update."""

_FUNCTIONAL: Final = """
SELECT INDEX_NAME, EXPRESSION FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXPRESSION IS NOT NULL
ORDER BY INDEX_NAME, SEQ_IN_INDEX"""


def check_sessions(
    target: Server,
    described: RowSchema,
    routes: Sequence[Route],
    report: Report,
    *,
    source: Server | None,
) -> None:
    """Report what a target table computes by the session that writes a row.

    Args:
        target: its server.
        described: the table.
        routes: those that lead there. Nobody compares the columns of rows with a conflict policy.
        report: where to report it.
        source: the server that rows come from, None if it is not known.

    Raises:
        SetlError: the server does not answer.
    """
    by_session = dependent_columns(target.rows, described)
    decided = any(route.conflict is not None for route in routes)
    stored = [c.name for c in described.columns if c.generated and c.materialized == "stored"]
    dependent = [name for name in stored if name.lower() in by_session]
    if source is not None and not all(route.rereads for route in routes):
        _warn(source, dependent, report)
    for each in described.columns:
        column, reason = each.name, by_session.get(each.name.lower(), "")
        if not (each.generated and reason):
            continue
        if each.materialized == "indexed":
            _report_index(f"an index over the virtual column {column}", reason, report)
        elif each.materialized and decided:
            report.error(
                f"the generated column {column} depends on {reason} of the session that writes a"
                " row, so that the two sites may end different",
                _PLAIN,
                code="generated-by-session",
                risk=True,
            )
        elif each.materialized and reason != "the time zone":
            report.warning(
                f"the generated column {column} depends on {reason} of the session that writes a"
                " row: one for which the target computes another value stops the pipeline",
                _PLAIN,
                code="generated-by-session",
            )
    name = (described.schema, described.table)
    for index, expression in () if target.mariadb else target.rows(_FUNCTIONAL, name):
        if reason := dependence(str(expression), by_session, times_of(described)):
            _report_index(f"the index {index} over an expression", reason, report)


_PLAIN: Final = (
    "Make it a plain column at the target (ALTER TABLE … MODIFY … without GENERATED), which takes"
    " the source's values"
)


def _report_index(what: str, reason: str, report: Report) -> None:
    report.error(
        f"{what} depends on {reason} of the session that writes a row, so at the target it may hold"
        " other values than at the source",
        "Drop the index at the target, or make the column STORED at both sites",
        code="index-by-session",
        risk=True,
    )


def check_generated(
    server: Server, columns: RowSchema, routes: Sequence[Route], report: Report
) -> None:
    """Report generated columns of a source table that a route needs, whatever its target has."""
    generated = tuple(c.name for c in columns.columns if c.generated)
    for route in routes:
        if route.documents is not None or route.rereads:
            continue
        needed: Sequence[str] = needed_by_spark_sql(route, generated)
        if route.conflict is not None:
            needed = generated
        elif route.into_index:
            needed = [generated[i] for i, _ in selected_columns(route, generated)] or needed
        _warn(server, needed, report)


def check_filled(server: Server, columns: Sequence[str], route: Route, report: Report) -> None:
    """Report generated columns of a source table that fill plain ones of a target table.

    Args:
        server: the source.
        columns: of the source table.
        route: how rows get to the target.
        report: where to report it.
    """
    decided = route.conflict is not None or route.expressions or route.where
    if not (route.rereads or decided):  # else `check_generated` has told
        _warn(server, columns, report)


def _warn(server: Server, columns: Sequence[str], report: Report) -> None:
    if not columns or not server.mariadb or server.version[:2] <= _LOGS_GENERATED:
        return
    report.warning(
        f"{server.product} may leave generated columns out of what it logs of an update, as 11.8"
        f" does: {', '.join(columns)}; the first such update stops the pipeline",
        "Set `read: source` for the table; or leave the columns out with `exclude`, or have the"
        " target compute them",
        code="generated-columns",
    )
