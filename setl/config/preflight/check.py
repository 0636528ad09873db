"""Checks of a channel against the real servers: everything that is missing, all at once.

Nothing is changed on any server, and nothing but a defect raises: a server that does not
answer is a finding like any other.
"""

from __future__ import annotations

from contextlib import ExitStack

from setl.config.channel import (
    ChannelFile,
    DtsSource,
    ElasticsearchTarget,
    MysqlSource,
    MysqlTarget,
    Pipeline,
)
from setl.config.connections import mysql_endpoint
from setl.config.preflight.elasticsearch_target import check_elasticsearch_target, indexes_of
from setl.config.preflight.finding import Finding, Report
from setl.config.preflight.kafka_source import check_dts_source
from setl.config.preflight.mysql_ends import check_mysql_source, check_mysql_target
from setl.config.preflight.server import Server
from setl.config.preflight.source_tables import ExpressionCheck, SourceTable
from setl.config.preflight.swallowed import swallowed_by
from setl.config.routing import Router
from setl.errors import SetlError, TransientError


def check_channel(
    file: ChannelFile, *, expressions: ExpressionCheck | None = None
) -> list[Finding]:
    """Check all pipelines of a channel.

    Args:
        file: the channel, its references resolved.
        expressions: looks at the `where` and `columns` of a route over a table and raises
            SetlError if Spark could not evaluate them; None leaves them unchecked.

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
        findings += check_pipeline(pipeline, two_way=two_way, expressions=expressions)
    return findings


def check_pipeline(
    pipeline: Pipeline, *, two_way: bool = False, expressions: ExpressionCheck | None = None
) -> list[Finding]:
    """Check one pipeline; see `check_channel`.

    Args:
        pipeline: the pipeline.
        two_way: whether its target is also a source of the channel.
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
        else:
            server = _connected(pipeline.source, open_servers, source)
            if server is not None:
                with source.failing():
                    tables = check_mysql_source(
                        server, pipeline.source, Router(pipeline), source, expressions
                    )
        if isinstance(pipeline.target, ElasticsearchTarget):
            with target.failing():
                indexes = indexes_of(tables) or _exact_indexes(pipeline)
                check_elasticsearch_target(pipeline.target, indexes, target)
        else:
            there = _connected(pipeline.target, open_servers, target)
            if there is not None:
                with target.failing():
                    check_mysql_target(there, pipeline, server, tables, target, two_way=two_way)
    return findings


def is_two_way(file: ChannelFile, pipeline: Pipeline) -> bool:
    """Whether another pipeline of the channel reads what this one writes.

    Servers are compared as they are written. A DTS source does not say which server it is
    about, so it counts as one that may be the target.
    """
    if not isinstance(pipeline.target, MysqlTarget):
        return False
    address = (pipeline.target.host, pipeline.target.port)
    return any(
        isinstance(other.source, DtsSource) or (other.source.host, other.source.port) == address
        for other in file.pipelines
        if other is not pipeline
    )


def _connected(
    end: MysqlSource | MysqlTarget, open_servers: ExitStack, report: Report
) -> Server | None:
    """The server of an end, open as long as `open_servers`; None after a finding."""
    try:
        return open_servers.enter_context(Server.opened(mysql_endpoint(end)))
    except TransientError as error:
        report.error(
            f"no connection: {error.message}",
            "Check `host` and `port`, and that the server runs and can be reached from here",
        )
    except SetlError as error:
        report.error(
            f"the server refuses the account: {error.message}",
            f"Check `user` ({end.user}) and `password`; the account must be allowed from here",
        )
    return None


def _exact_indexes(pipeline: Pipeline) -> list[str]:
    """Indexes that are known without asking the source."""
    router = Router(pipeline)
    names = [entry.pattern.exact for entry in router.entries]
    routes = [route for name in names if name for route in router.route(*name)]
    return list(dict.fromkeys(route.target[1] for route in routes))


def _address(end: MysqlSource | DtsSource | MysqlTarget | ElasticsearchTarget) -> str:
    if isinstance(end, DtsSource):
        return f"{end.topic}@{','.join(end.brokers)}"
    if isinstance(end, ElasticsearchTarget):
        return ",".join(end.hosts)
    return f"{end.host}:{end.port}"
