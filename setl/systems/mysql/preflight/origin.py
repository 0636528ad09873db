"""The checks of the server that changes come from, however they come."""

from __future__ import annotations

from contextlib import ExitStack

from setl.channel.fields.endpoint import Database
from setl.channel.fields.endpoints import MysqlTarget
from setl.channel.routes.routing import Router
from setl.errors import SetlError, TransientError, UntrustedServerError
from setl.systems.finding import Report
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.preflight.first_load import check_first_load, check_prepared
from setl.systems.mysql.preflight.schema_changes import check_shadows
from setl.systems.mysql.preflight.source_tables import check_source_tables
from setl.systems.mysql.server import Server
from setl.systems.pipeline_check import PipelineCheck


def open_origin(check: PipelineCheck, database: Database, report: Report) -> Server | None:
    """The server, kept in `check`; None after a finding."""
    check.origin = connected(database, check.open, report)
    return check.origin


def check_tables(check: PipelineCheck, server: Server, report: Report) -> None:
    """Report what is wrong with the mapped tables, and keep those that are right in `check`.

    Raises:
        SetlError: the server stopped answering.
    """
    router = Router(check.pipeline)
    check.tables = check_source_tables(server, router, report, check)
    check_shadows(server, check.pipeline, report)
    check_first_load(server, check.pipeline.source, router, report)
    check_prepared(server, report)


_LIMITS = ("[1040]", "[1203]", "[1226]")  # of connections, of the server and of the account


def connected(
    configured: MysqlTarget | Database, opened: ExitStack, report: Report
) -> Server | None:
    """A server, open as long as `opened`; None after a finding."""
    try:
        return opened.enter_context(Server.opened(mysql_endpoint(configured)))
    except TransientError as error:
        report.unseen(
            f"no connection: {error.message}",
            "Raise this limit: a pipeline needs several connections at a time"
            if error.message.endswith(_LIMITS)
            else "Check `host` and `port`, and that the server runs and can be reached from here",
            code="no-answer",
        )
    except UntrustedServerError as error:
        report.error(f"no connection: {error.message}", error.hint, code="untrusted-server")
    except SetlError as error:
        report.error(
            f"the server refuses the account: {error.message}",
            f"Check `user` ({configured.user}) and `password`; the account must be allowed from"
            " here, and not be locked; a server that asks for TLS needs `ssl_ca`",
            code="account-refused",
        )
    return None
