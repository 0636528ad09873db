"""Checks generated columns, of the source and of the target.

Of the source: MariaDB 11.8 logs no generated column with an update, also with
binlog_row_image=FULL (seen with 11.8.9; 10.11 does). That is no loss where the target computes it
itself, nor where it is not mapped.

Of the target: what a server computes may depend on the session that writes a row. Where it keeps
the result in the row, `setl.systems.mysql.load.generated` sees to it that it is the source's. Where
it keeps it in an index only, nobody can: the server computes it anew whenever it looks for the
index entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from setl.channel.routes.routing import Route, passing_columns
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.model.schema import Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.catalog import unescaped
from setl.systems.mysql.preflight.server import Server
from setl.transform.untold import needed_by_spark_sql

_LOGS_GENERATED: Final = (10, 11)
"""The last series of MariaDB that is known to log generated columns with each update."""

_GENERATED: Final = """
SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND GENERATION_EXPRESSION <> ''
ORDER BY ORDINAL_POSITION"""
_FUNCTIONAL: Final = """
SELECT INDEX_NAME, EXPRESSION FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXPRESSION IS NOT NULL
ORDER BY INDEX_NAME, SEQ_IN_INDEX"""
_BY_TIME_ZONE: Final = frozenset({"UNIX_TIMESTAMP", "FROM_UNIXTIME", "CONVERT_TZ"})
"""Functions that convert between UTC and the session's time zone."""
_BY_SETTINGS: Final = frozenset({
    "DAYNAME", "MONTHNAME", "DATE_FORMAT", "TIME_FORMAT", "STR_TO_DATE",  # lc_time_names
    "WEEK", "YEARWEEK",  # default_week_format
    "FORMAT",
    "REGEXP", "RLIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR", "REGEXP_INSTR", "REGEXP_LIKE",
    "DATABASE", "SCHEMA", "USER", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER",
})  # fmt: skip
"""Functions whose result depends on other settings of the session."""


def check_sessions(target: Server, described: RowSchema, *, decided: bool, place: Report) -> None:
    """Report what a target table computes by the session that writes a row.

    Args:
        target: its server.
        described: the table.
        decided: whether rows have a conflict policy, under which nobody compares the columns.
        place: where to report it.

    Raises:
        SetlError: the server does not answer.
    """
    by_session = {
        c.name.lower(): "the time zone" for c in described.columns if c.kind is Kind.TIMESTAMP
    }
    name = (described.schema, described.table)
    kept = {c.name.lower(): c.materialized for c in described.columns}
    for column, expression in target.rows(_GENERATED, name) if any(kept.values()) else ():
        reason = _dependence(str(expression), by_session)
        if not reason:
            continue
        by_session[str(column).lower()] = reason
        how = kept.get(str(column).lower(), "")
        if how == "indexed":
            _report_index(f"an index over the virtual column {column}", reason, place)
        elif how and decided:
            place.error(
                f"the generated column {column} depends on {reason} of the session that writes a"
                " row, so that the two sites may end different",
                _PLAIN,
                code="generated-by-session",
                risk=True,
            )
        elif how and reason != "the time zone":
            place.warning(
                f"the generated column {column} depends on {reason} of the session that writes a"
                " row: one for which the target computes another value stops the pipeline",
                _PLAIN,
                code="generated-by-session",
            )
    for index, expression in () if target.mariadb else target.rows(_FUNCTIONAL, name):
        if reason := _dependence(str(expression), by_session):
            _report_index(f"the index {index} over an expression", reason, place)


_PLAIN: Final = (
    "Make it a plain column at the target (ALTER TABLE … MODIFY … without GENERATED), which takes"
    " the source's values"
)


def _report_index(what: str, reason: str, place: Report) -> None:
    place.error(
        f"{what} depends on {reason} of the session that writes a row, so at the target it may hold"
        " other values than at the source",
        "Drop the index at the target, or make the column STORED at both sites",
        code="index-by-session",
        risk=True,
    )


def _dependence(expression: str, columns: Mapping[str, str]) -> str:
    """What of a session an expression depends on, "" for nothing that is known here.

    Args:
        expression: as information_schema has it, names of columns in backticks.
        columns: by name in lower case, those that depend on something themselves.
    """
    found = ""
    for token in tokenize(unescaped(expression)):
        if token.kind is TokenKind.NAME and token.name.lower() in columns:
            found = found or columns[token.name.lower()]
        elif token.word in _BY_TIME_ZONE:
            found = found or "the time zone"
        elif token.word in _BY_SETTINGS:
            return f"settings ({token.word})"
    return found


def check_generated(
    server: Server, columns: RowSchema, routes: Sequence[Route], place: Report
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
            needed = [generated[i] for i, _ in passing_columns(route, generated)] or needed
        _warn(server, needed, place)


def check_filled(server: Server, columns: Sequence[str], route: Route, place: Report) -> None:
    """Report generated columns of a source table that fill plain ones of a target table.

    Args:
        server: the source.
        columns: of the source table.
        route: how rows get to the target.
        place: where to report it.
    """
    decided = route.conflict is not None or route.expressions or route.where
    if not (route.rereads or decided):  # else `check_generated` has told
        _warn(server, columns, place)


def _warn(server: Server, columns: Sequence[str], place: Report) -> None:
    if not columns or not server.mariadb or server.version[:2] <= _LOGS_GENERATED:
        return
    place.warning(
        f"{server.product} may leave generated columns out of what it logs of an update, as 11.8"
        f" does: {', '.join(columns)}; the first such update stops the pipeline",
        "Set `read: source` for the table; or leave the columns out with `exclude`, or have the"
        " target compute them",
        code="generated-columns",
    )
