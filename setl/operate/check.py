"""Checks of a channel against the real servers: everything that is missing, all at once.

Nothing is changed on any server, but for a row of no meaning that a probe writes if it is asked
for; and nothing but a defect raises: a server that does not answer is a finding like any other.
"""

from __future__ import annotations

from contextlib import ExitStack

from setl.channel.file import (
    ChannelFile,
    Database,
    DtsSource,
    DtsTarget,
    ElasticsearchTarget,
    MysqlSource,
    MysqlTarget,
    Pipeline,
    Source,
    Target,
    database_of,
)
from setl.channel.routing import Router
from setl.errors import SetlError, TransientError
from setl.operate.checkpoint_place import check_checkpoint_place
from setl.operate.swallowed import swallowed_by
from setl.systems.elasticsearch.preflight.arriving import Arriving, arriving
from setl.systems.elasticsearch.preflight.dead_letter_index import check_dead_letter_index
from setl.systems.elasticsearch.preflight.target import check_elasticsearch_target
from setl.systems.finding import Finding, Report
from setl.systems.kafka.preflight.mark_probe import check_marks_arrive
from setl.systems.kafka.preflight.source import check_dts_source
from setl.systems.kafka.preflight.topic import check_dts_target
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.preflight.contested_tables import check_contested_tables
from setl.systems.mysql.preflight.endpoints import check_mysql_source, check_mysql_target
from setl.systems.mysql.preflight.schema_changes import check_shadows
from setl.systems.mysql.preflight.server import Server
from setl.systems.mysql.preflight.source_tables import (
    ExpressionCheck,
    SourceTable,
    check_source_tables,
)


def check_channel(
    file: ChannelFile, *, expressions: ExpressionCheck | None = None, probe: bool = False
) -> list[Finding]:
    """Check all pipelines of a channel.

    Args:
        file: the channel, its references resolved.
        expressions: looks at the `where`, `columns` and `processor` of a route over a table and
            raises SetlError if they would not work; None leaves them unchecked.
        probe: whether to write a row into the mark table where only that tells whether marks
            come out of a subscription; see `setl.systems.kafka.preflight.mark_probe`.

    Returns:
        The findings, pipeline by pipeline, source before target, in an order that is the same
        each time.
    """
    findings: list[Finding] = []
    for pipeline in file.pipelines:
        for other in swallowed_by(file, pipeline):
            Report(pipeline.name, findings).error(
                f"what {other} writes to the source would be dropped here as the channel's own"
                " echo, and never reach the target",
                f"Put {pipeline.name} into a channel of its own",
            )
        two_way = is_two_way(file, pipeline)
        back = way_back(file, pipeline)
        findings += check_pipeline(pipeline, two_way=two_way, back=back, expressions=expressions)
        source = Report(f"{pipeline.name}, source {_address(pipeline.source)}", findings)
        check_marks_arrive(file, pipeline, source, probe=probe)
    return findings


def check_pipeline(
    pipeline: Pipeline,
    *,
    two_way: bool = False,
    back: Pipeline | None = None,
    expressions: ExpressionCheck | None = None,
) -> list[Finding]:
    """Check one pipeline; see `check_channel`.

    Args:
        pipeline: the pipeline.
        two_way: whether its target is also a source of the channel.
        back: the pipeline of the other direction, None if there is none.
        expressions: as for `check_channel`.
    """
    findings: list[Finding] = []
    source = Report(f"{pipeline.name}, source {_address(pipeline.source)}", findings)
    target = Report(f"{pipeline.name}, target {_address(pipeline.target)}", findings)
    tables: list[SourceTable] = []
    server: Server | None = None
    with ExitStack() as open_servers:
        if isinstance(pipeline.source, DtsSource):
            check_dts_source(pipeline.source, source)
        check_checkpoint_place(pipeline, source)
        database = database_of(pipeline.source)
        if database is not None:
            server = _connected(database, open_servers, source)
        if server is not None:
            with source.failing():
                if isinstance(pipeline.source, MysqlSource):
                    check_mysql_source(server, pipeline.source, Router(pipeline), source)
                tables = check_source_tables(server, Router(pipeline), source, expressions)
                check_shadows(server, pipeline, source)
        if isinstance(pipeline.target, ElasticsearchTarget):
            with target.failing():
                indexes = arriving(tables, pipeline.source, server) or _exact_indexes(pipeline)
                check_elasticsearch_target(pipeline.target, indexes, target)
                if pipeline.keeps_dead_letters:
                    check_dead_letter_index(pipeline.target, target)
        elif isinstance(pipeline.target, DtsTarget):
            check_dts_target(pipeline.target, target)
        else:
            there = _connected(pipeline.target, open_servers, target)
            if there is not None:
                with target.failing():
                    check_mysql_target(there, pipeline, server, tables, target, two_way=two_way)
                    check_contested_tables(
                        server, there, pipeline, back, tables=tables, report=target
                    )
    return findings


def is_two_way(file: ChannelFile, pipeline: Pipeline) -> bool:
    """Whether another pipeline of the channel reads what this one writes.

    Servers are compared as they are written. A DTS source that does not say which database it
    is of counts as one of the target.
    """
    if not isinstance(pipeline.target, MysqlTarget):
        return False
    target = pipeline.target
    sources = [database_of(other.source) for other in file.pipelines if other is not pipeline]
    return any(s is None or (s.host, s.port) == (target.host, target.port) for s in sources)


def way_back(file: ChannelFile, pipeline: Pipeline) -> Pipeline | None:
    """The pipeline of a channel that goes the other way, None if there is no single one."""
    others = [other for other in file.pipelines if other is not pipeline]
    if len(others) != 1 or not (is_two_way(file, pipeline) and is_two_way(file, others[0])):
        return None
    return others[0]


def _connected(
    end: MysqlSource | MysqlTarget | Database, open_servers: ExitStack, report: Report
) -> Server | None:
    """The server of an end, open as long as `open_servers`; None after a finding."""
    try:
        return open_servers.enter_context(Server.opened(mysql_endpoint(end)))
    except TransientError as error:
        report.unseen(
            f"no connection: {error.message}",
            "Check `host` and `port`, and that the server runs and can be reached from here",
        )
    except SetlError as error:
        report.error(
            f"the server refuses the account: {error.message}",
            f"Check `user` ({end.user}) and `password`; the account must be allowed from here",
        )
    return None


def _exact_indexes(pipeline: Pipeline) -> dict[str, list[Arriving]]:
    """Indexes that are known without asking the source."""
    router = Router(pipeline)
    names = [entry.pattern.exact for entry in router.entries]
    routes = [route for name in names if name for route in router.route(*name)]
    return {route.target[1]: [] for route in routes}


def _address(end: Source | Target) -> str:
    if isinstance(end, DtsSource | DtsTarget):
        return f"{end.topic}@{','.join(end.brokers)}"
    if isinstance(end, ElasticsearchTarget):
        return ",".join(end.hosts)
    return f"{end.host}:{end.port}"
