"""A relay writes a format, a pipeline reads it: every type arrives as the source has it."""

import pytest

from setl.channel.fields.kafka_formats import STANDALONE
from setl.channel.reading import parse_channel
from tests.integration.every_type import TYPES
from tests.integration.kafka.test_relay import Topic
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, shown_rows
from tests.integration.type_catalogue import known
from tests.unit.formats.records import FORMATS, records_of
from tests.waiting import eventually

# Values that say nothing of formats, and make records of megabytes.
LARGE = ("mediumtext", "mediumblob", "text", "varchar_long", "set_large")


def is_lost(format_, type_, value):
    """Whether the format does not tell a value: zero dates."""
    if records_of(format_).ZERO_DATES or not type_.startswith(("DATE", "TIMESTAMP")):
        return False
    return value == "0" or "0000-00" in value or "-00-" in value or "-00'" in value


def rows_of(server, db):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        return shown_rows(cursor, db, "every")


@pytest.mark.parametrize("format_", FORMATS)
def test_every_type_arrives(servers, kafka, position, format_):
    a, b = servers
    db, topic = fresh_name("both"), Topic(kafka)
    writing, reading = records_of(format_).READ[0], STANDALONE[format_].source_fields
    with a.connect() as connection:
        types = {n: each for n, each in known(TYPES, connection).items() if n not in LARGE}
    columns = ", ".join(f"`{name}` {type_}" for name, (type_, _) in types.items())
    for server in servers:
        execute(
            server,
            f"CREATE DATABASE {db} CHARACTER SET utf8mb4",
            f"CREATE TABLE {db}.every (id INT PRIMARY KEY, {columns})",
        )
    source = {**mysql(a), "start": binlog_end(a), "heartbeat": 0}
    target = {**topic.end, "heartbeat": 0.2, "format": format_, **writing}
    tables = [{"from": f"{db}.*"}]
    relay = {"name": "r", "source": source, "target": target, "tables": tables}
    position.lead(parse_channel({"channel": fresh_name("r"), "pipelines": [relay]}), "r").runs()
    rows = [
        [
            values[n] if n < len(values) and not is_lost(format_, type_, values[n]) else "NULL"
            for type_, values in types.values()
        ]
        for n in range(5)
    ]
    execute(
        a,
        "SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'",
        *(f"INSERT INTO {db}.every VALUES ({n}, {', '.join(row)})" for n, row in enumerate(rows)),
        f"UPDATE {db}.every SET id = 10 WHERE id = 0",
        f"UPDATE {db}.every SET `int` = 77 WHERE id = 1",
        f"DELETE FROM {db}.every WHERE id = 2",
    )
    given = topic.source(format=format_, **reading)
    pipeline = {"name": "p", "source": given, "target": mysql(b), "tables": tables}
    running = position.lead(parse_channel({"channel": fresh_name("p"), "pipelines": [pipeline]}))
    wanted = rows_of(a, db)

    def arrived():
        assert running.thread.is_alive(), running.error
        return rows_of(b, db) == wanted

    eventually(arrived, 60)
    for server in servers:
        execute(server, f"DROP DATABASE {db}")
