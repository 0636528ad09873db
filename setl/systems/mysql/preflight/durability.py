"""Checks what a server may lose when its machine fails, without anybody noticing."""

from __future__ import annotations

from setl.channel.file import Pipeline
from setl.systems.finding import Report
from setl.systems.mysql.server import Server


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
