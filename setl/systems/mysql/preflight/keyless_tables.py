"""Checks tables without a key: whether their rows can be distinguished by all of their values."""

from __future__ import annotations

from collections.abc import Sequence

from setl.channel.fields.endpoints import MysqlSource, MysqlTarget
from setl.channel.routes.routing import Route, Router
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.server import Server
from setl.systems.pipeline_check import PipelineCheck

_NO_KEY = "the table has no primary key, nor a unique one without nullable columns"


def check_keyless(check: PipelineCheck, schema: RowSchema, route: Route, report: Report) -> None:
    """Report a table without a key: a warning if its rows can be loaded, else an error.

    Args:
        check: of the pipeline.
        schema: the table.
        route: where its rows go.
        report: where to put it.
    """
    why = _refusal(check, schema, route)
    if why:
        report.error(
            f"{_NO_KEY}, so its rows cannot be distinguished: {why}",
            "Give it one, or name columns that are unique and never NULL under `key` in"
            f" tables[{route.index}], or leave the table out",
            code="no-key",
        )
        return
    report.warning(
        f"{_NO_KEY}: its rows are distinguished by all of their columns, and each update and each"
        " delete reads all of the target's table",
        "Give the target's table an index over columns that identify its rows well, or both"
        " tables a primary key",
        code="keyless",
    )


def check_keyless_load(
    server: Server, check: PipelineCheck, schema: RowSchema, routes: Sequence[Route], report: Report
) -> None:
    """Report a privilege that is missing to load a table without a key, if one is to be loaded.

    Args:
        server: the source.
        check: of the pipeline.
        schema: the table.
        routes: where its rows go.
        report: where to put it.

    Raises:
        SetlError: the server stopped answering.
    """
    pipeline = check.pipeline
    router = Router(pipeline)
    loaded = router.entries_to_load(every=pipeline.source.loads_tables)
    counted = [r for r in routes if not (schema.key or r.key or _refusal(check, schema, r))]
    if not any(router.entries[route.index].name in loaded for route in counted):
        return
    if not server.holds("LOCK TABLES", schema.schema):
        report.error(
            f"{_NO_KEY}, so a load has to know of which position of the binlog its rows are. For"
            f" that it locks the table for a moment, and the account {server.account} lacks LOCK"
            " TABLES",
            server.grant(["LOCK TABLES"], server.scope_of(schema.schema)),
            code="keyless-load",
        )


def _refusal(check: PipelineCheck, schema: RowSchema, route: Route) -> str:
    """Why rows cannot be distinguished by all of their values, "" if they can."""
    pipeline = check.pipeline
    if not isinstance(pipeline.source, MysqlSource):
        return "records of a topic may come twice, and a row that comes twice would be there twice"
    if not isinstance(pipeline.target, MysqlTarget) or route.into_index:
        return "a document needs an id"
    if check.two_way:
        return "in a two-way channel both sites may change the same row, and none would find it"
    if not route.takes_keyless:
        return "nor can rows that an expression, a condition, a processor or `read: source` makes"
    materialized = [column.name for column in schema.columns if column.materialized]
    if materialized:
        return (
            f"{', '.join(materialized)} is generated, and kept or in an index, so it need not be "
            f"the same"
        )
    return ""
