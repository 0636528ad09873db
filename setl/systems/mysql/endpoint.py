"""The server of a pipeline's end, as its channel file describes it."""

from __future__ import annotations

from setl.channel.endpoint import Database
from setl.channel.endpoints import MysqlSource, MysqlTarget
from setl.systems.mysql.connection import MysqlEndpoint


def mysql_endpoint(end: MysqlSource | MysqlTarget | Database) -> MysqlEndpoint:
    """The server of a MySQL source or target, or of the database behind a subscription."""
    return MysqlEndpoint(
        host=end.host, port=end.port, user=end.user, password=end.password, ssl_ca=end.ssl_ca
    )
