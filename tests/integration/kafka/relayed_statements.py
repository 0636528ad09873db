"""Runs the statements of `tests.oracle.cases` with relays beside them."""

from contextlib import contextmanager

import pymysql

from setl.channel.reading import parse_channel
from setl.codec.dts.relayed import HEARTBEAT, relay_position_of
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql
from tests.mysql_servers import is_mariadb
from tests.oracle.cases import SESSION

STRANGE = "strange-na.me é"


@contextmanager
def a_database(server):
    name = fresh_name("oracle")
    execute(server, f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield name
    finally:
        execute(server, f"DROP DATABASE {name}")


def relays(server, topics, db):
    """A channel with one relay for each topic: a format's settings by its topic."""
    pipelines = [
        {
            "name": f"r{i}",
            "source": {**mysql(server), "start": binlog_end(server), "heartbeat": 0},
            "target": {**topic.end, "heartbeat": 0.2, **target},
            "tables": [{"from": f"{db}.*"}],
        }
        for i, (topic, target) in enumerate(topics)
    ]
    return parse_channel({"channel": fresh_name("formats"), "pipelines": pipelines})


def run_all(server, db, statements):
    """Run what the server can run; returns the tables of which it cannot run everything."""
    refused, changes = set(), -1  # REPLACE counts two of what is one change
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (*SESSION, f"USE {db}"):
            cursor.execute(statement)
        if is_mariadb(connection):
            cursor.execute("SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')")
        for statement in statements:
            table = statement.split()[2].strip("`")
            if table in refused:
                continue
            try:
                changes += cursor.execute(statement)
            except pymysql.MySQLError:
                assert is_mariadb(connection), statement
                refused.add(table)
    return refused, changes


def written(topic):
    """What a topic has, without heartbeats."""
    (records,) = topic.records().values()
    found, orders = [], []
    for record in records:
        position = relay_position_of(record.headers)
        assert position is not None
        if position.ordinal != HEARTBEAT:
            found.append(record)
            orders.append(position.order)
        else:
            assert (record.key, record.value) == (None, None)
    assert orders == sorted(set(orders))
    return found


def has_passed(running, end):
    """Whether all up to a position is written; MariaDB may have added an event of its own since."""
    file, _, offset = running.figures.position.partition(" ")[0].rpartition(":")
    return (file, int(offset)) >= (end["file"], end["offset"])
