"""What the tests of Load share: tickets, endpoints, and the system tables on a test server."""

import itertools
import uuid
from contextlib import closing
from dataclasses import replace

from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.model.position import version_generation
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.load.fence import MysqlFence
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
from setl.systems.mysql.sql_files import system_table_statements

MARK = 4711


def unique(prefix):
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def nonces(prefix="n"):
    """Sinks of one pipeline need prefixes of their own: a mark that stays as it is is an error."""
    numbers = itertools.count(1)
    return lambda: f"{prefix}{next(numbers)}"


def endpoint_of(server, **options):
    return MysqlEndpoint(server.host, server.port, server.user, server.password, **options)


def ticket_for(pipeline, *, epoch=1, batch_id=1, slot=0, channel="shop", nid="n1", through=0):
    ticket = LoadTicket(Leadership(channel, pipeline, nid, epoch), batch_id, slot, through)
    return replace(ticket, generation=version_generation(through))


def create_system_tables(server):
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in system_table_statements():
            cursor.execute(statement)


def fence_for(server, ticket, timeout=1.0):
    return MysqlFence(endpoint_of(server), ticket.pipeline_key, timeout)


def sink_on(server, **options):
    settings = MysqlSinkSettings(endpoint_of(server), MARK, **options)
    return MysqlSink(settings, nonces())


def rows_of(server, sql, *args):
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(sql, args or None)
        return list(cursor.fetchall())


def execute(server, *statements):
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
