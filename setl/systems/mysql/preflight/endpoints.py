"""The checks of a MySQL source and of a MySQL target, in the order of their findings."""

from __future__ import annotations

from collections.abc import Sequence

from setl.channel.file import MysqlSource, Pipeline
from setl.channel.routes.routing import Router
from setl.systems.finding import Report
from setl.systems.mysql.preflight.binlog_settings import check_binlog, check_version
from setl.systems.mysql.preflight.joined_tables import check_joined_tables
from setl.systems.mysql.preflight.mark_logging import check_mark_triggers, check_replica
from setl.systems.mysql.preflight.schema_changes import (
    LEDGER,
    check_invisible_keys,
    check_replicated_ddl,
)
from setl.systems.mysql.preflight.statements import check_statements
from setl.systems.mysql.preflight.system_tables import SCHEMA, SystemTable, check_system_tables
from setl.systems.mysql.preflight.target_tables import WRITING, TargetTables
from setl.systems.mysql.preflight.target_triggers import TargetTriggers, named, reading
from setl.systems.mysql.server import Server
from setl.systems.pipeline_check import SourceTable
from setl.systems.tls_findings import NOT_ENCRYPTED, TLS_MISSING, TLS_UNVERIFIED, stays_here

_MARK = SystemTable("retl_mark", ("SELECT",), "marks what other channels wrote", required=False)
_BUFFER = SystemTable("retl_buffer", ("SELECT",), "is the free gate", required=False)
_HEARTBEAT = SystemTable(
    "xdual", ("SELECT", "INSERT", "UPDATE"), "takes heartbeats, of which `heartbeat: 0` writes none"
)
_SOURCE_SCOPES = {"SELECT": f"{SCHEMA}.*", "INSERT": f"{SCHEMA}.xdual", "UPDATE": f"{SCHEMA}.xdual"}

_WRITTEN = (
    SystemTable("retl_mark", WRITING, "marks what setl wrote"),
    SystemTable("setl_fence", WRITING, "keeps a former leader from writing"),
    SystemTable("setl_writer", WRITING, "lists the connections that write"),
    SystemTable("setl_loaded", WRITING, "says how far tables with several keys are loaded"),
)
_CHECKPOINT = SystemTable("setl_checkpoint", WRITING, "keeps the checkpoint")
_DEAD_LETTERS = SystemTable(
    "setl_deadletter", WRITING, "keeps the faulty rows of `faulty_rows: dead_letter`"
)
_TARGET_SCOPES = dict.fromkeys(WRITING, f"{SCHEMA}.*")

_TLS_FIX = (
    "Name the authority of the server's certificate as `ssl_ca`, so that nobody else can answer in"
    " its position"
)


def check_mysql_source(server: Server, source: MysqlSource, router: Router, report: Report) -> None:
    """Report everything about a source but its mapped tables.

    Raises:
        SetlError: the server stopped answering.
    """
    check_version(server, report)
    check_transport(server, report)
    literal = [entry.pattern.schema.literal for entry in router.entries]
    schemas = list(dict.fromkeys(s for s in (*literal, SCHEMA) if s is not None))
    check_binlog(server, source, schemas, report)
    check_statements(server, router, report)
    check_binlog_durability(server, report)
    check_replica(server, report)
    heartbeat = [_HEARTBEAT] if source.heartbeat > 0 else []
    check_system_tables(server, report, [_MARK, _BUFFER, *heartbeat], _SOURCE_SCOPES)


def check_mysql_target(
    server: Server,
    pipeline: Pipeline,
    source: Server | None,
    tables: Sequence[SourceTable],
    report: Report,
    *,
    two_way: bool,
    back: Pipeline | None = None,
) -> None:
    """Report everything about a target.

    Args:
        server: the target.
        pipeline: the pipeline.
        source: the source server, None if it is none or does not answer.
        tables: its mapped tables.
        report: where to put it.
        two_way: whether the target is also a source of the channel.
        back: the pipeline of the other direction, None if there is none.

    Raises:
        SetlError: the server stopped answering.
    """
    check_version(server, report)
    check_transport(server, report)
    _check_writable(server, report)
    check_row_durability(server, pipeline, report)
    check_mark_triggers(server, report)
    if two_way and server.variables.get("log_bin") != "ON":
        report.error(
            "the server writes no binlog, but the channel also reads from it",
            server.enable_binlog(),
            code="no-binlog",
        )
    checkpoint = [] if pipeline.checkpoint == "zookeeper" else [_CHECKPOINT]
    ledger = [LEDGER] if pipeline.ddl == "pass" or Router(pipeline).creates else []
    dead_letters = [_DEAD_LETTERS] if pipeline.stores_dead_letters else []
    needed = [*_WRITTEN, *checkpoint, *ledger, *dead_letters]
    check_system_tables(server, report, needed, _TARGET_SCOPES)
    if ledger:
        check_invisible_keys(server, report)
    if pipeline.ddl == "pass":
        check_replicated_ddl(server, source, pipeline, tables, report)
    router = Router(pipeline)
    known = {(table.schema.schema, table.schema.table) for table in tables}
    names = (entry.pattern.exact for entry in router.entries)
    routes = (
        route for name in names if name and name not in known for route in router.route(*name)
    )
    others = [route.target for route in routes]
    triggers = TargetTriggers(server, reading(None if back is None else Router(back)))
    targets = TargetTables(source, server, report, triggers)
    if source is None:
        targets.check(tables, others)
    else:
        # What the account may not see at the source, it is likely not to see at the target.
        targets.check(tables, unseen=others)
    mapped = [*others, *(route.target for table in tables for route in table.routes)]
    if source is not None or not two_way:
        triggers.check_events(named(mapped), source if two_way else None, report)
    check_joined_tables(source, server, tables, report)


def _check_writable(server: Server, report: Report) -> None:
    # The last one makes it so for each new session; MariaDB has both names from 11.1 on.
    sessions = "transaction_read_only"
    sessions = sessions if sessions in server.variables else "tx_read_only"
    for name in ("super_read_only", "read_only", sessions):
        # MariaDB 12 also knows NO_LOCK and NO_LOCK_NO_ADMIN, which write as little.
        if server.variables.get(name, "OFF") not in {"OFF", "0"}:
            off = f"SET GLOBAL {name} = OFF;"
            if server.kind.managed:
                (off,) = server.set_global(name, "0")
            report.error(f"the server is {name}", off, code="read-only")


def check_transport(server: Server, report: Report) -> None:
    """Report a connection that leaves this machine and is not known to reach the server."""
    endpoint = server.endpoint
    if endpoint.ssl_ca or stays_here(endpoint.host):
        return
    taken = "; whoever answers in its place gets the password" if endpoint.insecure_login else ""
    (row,) = server.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    if row[1]:
        report.warning(
            f"TLS without `ssl_ca`: nobody looks at the server's certificate{taken}",
            _TLS_FIX,
            code=TLS_UNVERIFIED,
        )
    else:
        report.warning(NOT_ENCRYPTED + taken, _TLS_FIX, code=TLS_MISSING)


def check_binlog_durability(server: Server, report: Report) -> None:
    """Report that the end of the binlog may be lost, and rows that are in the tables with it."""
    value = server.variables.get("sync_binlog", "1")
    if value != "1":
        report.warning(
            f"sync_binlog is {value}: if the server's machine fails, the binlog may lack the last"
            " changes of the tables, which no pipeline gets then; compare with `setl verify`",
            *server.set_global("sync_binlog", "1"),
            code="binlog-not-synced",
        )


def check_row_durability(server: Server, pipeline: Pipeline, report: Report) -> None:
    """Report that rows may be lost of which the checkpoint says that they are applied.

    A checkpoint in the target is lost with the rows, and they are applied again.
    """
    value = server.variables.get("innodb_flush_log_at_trx_commit", "1")
    if value != "1" and pipeline.checkpoint not in (None, "target"):
        report.warning(
            f"innodb_flush_log_at_trx_commit is {value} and the checkpoint is not kept in the"
            " target: if the server's machine fails, the last rows may be lost and are not applied"
            " again",
            *server.set_global("innodb_flush_log_at_trx_commit", "1"),
            "Or leave `checkpoint` out of the channel file, which keeps it with the rows",
            code="rows-not-flushed",
        )
