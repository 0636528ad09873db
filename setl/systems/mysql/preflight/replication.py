"""Asks a server what it is a replica of."""

from __future__ import annotations

from typing import Any

from setl.systems.mysql.replicas import replication_statement
from setl.systems.mysql.server import Outcome, Server


def replicated_sources(server: Server) -> list[dict[str, Any]]:
    """A row for each server that it is a replica of, names in lower case.

    Empty, too, without the privilege to see the state of replication: nobody knows then.

    Raises:
        SetlError: the server stopped answering.
    """
    question = replication_statement(mariadb=server.mariadb, version=server.version)
    if server.attempt(question) is not Outcome.DONE:
        return []
    return server.records(question)
