"""Foretells which statements of a source a pipeline will meet instead of rows.

Whatever a server's own format is, a session may choose another. Known tools do: pt-table-checksum
always, agents of managed servers often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from setl.channel.routes.routing import Router
from setl.codec.sql.row_statement import Name
from setl.errors import ConfigurationError
from setl.extract.statements import STATEMENT, Reach
from setl.systems.finding import Report
from setl.systems.mysql.preflight.statement_effects import reach_of
from setl.systems.mysql.server import Outcome, Server

_TABLES: Final = {
    ("mysql", "rds_heartbeat2"): "the heartbeats of Amazon RDS",
    ("mysql", "ha_health_check"): "the health check of Alibaba Cloud",
    ("percona", "checksums"): "pt-table-checksum",
    ("percona", "heartbeat"): "pt-heartbeat",
}
_SCHEMAS: Final = {
    "_cdbcksum": "the checksums of Tencent Cloud",
    "__cdb_recycle_bin__": "the recycle bin of Tencent Cloud",
    "__tencentdb__": "Tencent Cloud",
    "__recycle_bin__": "the recycle bin of Alibaba Cloud",
}
_CHECKSUMS: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS"
    " WHERE COLUMN_NAME IN ('this_crc', 'master_crc') GROUP BY 1, 2 HAVING COUNT(*) = 2"
)
"""Tables of pt-table-checksum, whatever their names."""
_SESSIONS: Final = (
    "SELECT VARIABLE_VALUE, COUNT(*) FROM performance_schema.variables_by_thread"
    " WHERE VARIABLE_NAME = 'binlog_format' AND VARIABLE_VALUE <> 'ROW' AND THREAD_ID NOT IN"
    " (SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID())"
    " GROUP BY 1 ORDER BY 1"
)


def check_statements(server: Server, router: Router, report: Report) -> None:
    """Report who logs statements, and which of these stop the pipeline.

    Raises:
        SetlError: the server does not answer.
    """
    _check_sessions(server, report)
    selected: list[str] = []
    for name, what in _known(server):
        location = ".".join(name)
        reason, hint = _stops(server, router, name)
        if not reason:
            selected.append(f"{location} ({what})")
            continue
        report.at(location).warning(
            f"{what} may log statements instead of rows of {location}, and these stop the pipeline:"
            f" it {reason}",
            *([hint] if hint else []),
            f"Or name {STATEMENT}@{location} under `accept` in the channel file, so that they pass"
            " whatever they do",
            code=STATEMENT,
        )
    if selected:
        report.ok(f"statements instead of rows are accepted for {', '.join(selected)}")


def _check_sessions(server: Server, report: Report) -> None:
    # Only MySQL shows the variables of other sessions.
    if server.mariadb or server.attempt(_SESSIONS) is not Outcome.DONE:
        return
    found = [f"{number} {form}" for form, number in server.rows(_SESSIONS)]
    if found:
        report.warning(
            f"sessions are open that log statements instead of rows ({', '.join(found)}): where"
            " these change mapped tables, the pipeline stops",
            "Let them leave binlog_format as it is. Who they are: SELECT * FROM"
            " performance_schema.threads JOIN performance_schema.variables_by_thread USING"
            " (THREAD_ID) WHERE VARIABLE_NAME = 'binlog_format' AND VARIABLE_VALUE <> 'ROW'",
            code="statement-sessions",
        )


def _known(server: Server) -> Iterator[tuple[Name, str]]:
    """Tables of which statements are to be expected; ``*`` for all of a schema."""
    known = dict(_TABLES)
    for schema, table in server.rows(_CHECKSUMS):
        known[str(schema), str(table)] = "pt-table-checksum"
    for (schema, table), what in sorted(known.items()):
        if _exists(server, "TABLE_SCHEMA = %s AND TABLE_NAME = %s", (schema, table)):
            yield (schema, table), what
    for schema, what in _SCHEMAS.items():
        if _exists(server, "TABLE_SCHEMA = %s", (schema,)):
            yield (schema, "*"), what


def _exists(server: Server, condition: str, names: Sequence[str]) -> bool:
    question = f"SELECT 1 FROM information_schema.TABLES WHERE {condition} LIMIT 1"
    return bool(server.rows(question, names))


def _stops(server: Server, router: Router, name: Name) -> tuple[str, str]:
    """Why statements of a table stop the pipeline, and what helps; "" if they do not."""
    schema, table = name
    if table == "*":
        if router.maps(schema):
            return "is mapped", ""
        if not server.holds("TRIGGER", schema):
            shown = f"may have triggers, which are not shown to the account {server.account}"
            return shown, server.grant(["TRIGGER"], server.scope_of(schema))
        return "", ""
    if _is_mapped(router, name):
        return "is mapped", ""
    reach = reach_of(server, name)
    if reach.reason:
        return reach.reason, reach.hint
    return _by_keys(router, reach), ""


def _by_keys(router: Router, reach: Reach) -> str:
    changed = [".".join(name) for name in reach.tables if _is_mapped(router, name)]
    return f"has rows of {changed[0]} changed by foreign keys" if changed else ""


def _is_mapped(router: Router, name: Name) -> bool:
    try:
        return bool(router.route(*name))
    except ConfigurationError:
        return True
