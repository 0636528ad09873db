"""Checks limits of loads (`load_limits`) that keep a load from ever beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence

from setl.channel.file import Pipeline
from setl.systems.finding import Report
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.replicas import replicas_behind
from setl.systems.mysql.server import Server

_RUNNING = "SHOW GLOBAL STATUS LIKE 'Threads_running'"


def check_threads_running(
    server: Server, pipeline: Pipeline, report: Report, *, reads_binlog: bool
) -> None:
    """Report a limit of statements that the source reaches while nobody works with it.

    Measured on MySQL 9.7 and MariaDB 10.11: idle they carry out the question itself, and one more
    with an event scheduler, which MySQL has by default. Each reader of the binlog is one more,
    replicas and the stream of the pipeline itself.

    Args:
        server: the source's.
        pipeline: the pipeline.
        report: where to put it.
        reads_binlog: whether its stream is a reader of this server's binlog.

    Raises:
        SetlError: the server stopped answering.
    """
    limit = pipeline.load_limits.threads_running
    if limit is None:
        return
    running = next((int(value) for _, value in server.rows(_RUNNING)), 0)
    commands = [process.command for process in server.processes()]
    readers = sum(command.startswith("Binlog Dump") for command in commands)
    scheduler = int(server.variables.get("event_scheduler") == "ON")
    # Other accounts' threads are not told to all accounts, so that there may be more.
    least = min(running, 1 + scheduler + readers)
    if reads_binlog and not readers:
        least += 1  # its own, once it runs
    if limit >= least:
        return
    parts = ["setl's question"]
    parts += ["readers of the binlog"] if reads_binlog or readers else []
    parts += ["the event scheduler"] if scheduler else []
    report.warning(
        f"no load ever begins with `load_limits: {{threads_running: {limit}}}`: while nobody works"
        f" with the source it carries out {least} statements ({', '.join(parts)}); just now it"
        f" carried out {running}",
        f"Write what clients may carry out, and {least} more",
        code="load-never-begins",
    )


def check_replicas(
    endpoint: MysqlEndpoint, addresses: Sequence[str], pipeline: Pipeline, report: Report
) -> None:
    """Report replicas of the target for which a load would wait for ever, or again and again."""
    limit = pipeline.load_limits.replica_lag
    for replica in replicas_behind(endpoint, addresses) if limit is not None else ():
        if math.isinf(replica.seconds):
            report.warning(
                f"no load begins while {replica}: `load_limits: replica_lag` counts it as behind",
                f"See that {replica.address} replicates, and that the target's account may log in"
                " there with REPLICATION CLIENT (MariaDB: REPLICA MONITOR), or take it out of"
                " `replicas`",
                code="load-never-begins",
            )
        elif limit is not None and replica.delay > limit:
            report.warning(
                f"the replica {replica.address} is kept {replica.delay:.0f} s behind on purpose,"
                f" more than `load_limits: {{replica_lag: {limit:g}}}`: a load waits for it after"
                " each step",
                f"Write a larger `replica_lag`, or take {replica.address} out of `replicas`",
                code="load-never-begins",
            )
