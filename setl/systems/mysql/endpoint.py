"""The server of an endpoint, as its channel file describes it."""

from __future__ import annotations

from setl.channel.fields.endpoint import Database
from setl.channel.fields.endpoints import MysqlSource, MysqlTarget
from setl.systems.mysql.connection import MysqlEndpoint


def mysql_endpoint(configured: MysqlSource | MysqlTarget | Database) -> MysqlEndpoint:
    """The server of a MySQL source or target, or of the database behind a subscription."""
    return MysqlEndpoint(
        host=configured.host,
        port=configured.port,
        user=configured.user,
        password=configured.password,
        ssl_ca=configured.ssl_ca,
        server_public_key=configured.server_public_key,
        insecure_login=configured.insecure_login,
    )
