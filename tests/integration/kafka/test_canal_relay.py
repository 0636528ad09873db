"""A relay that writes Canal's format, as Canal's documentation and source say of it."""

import json
from functools import partial

import pytest

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.errors import ConfigurationError
from setl.systems.kafka.relay.log import KafkaRelayLog
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
from tests.oracle.cases import statements
from tests.waiting import eventually


def test_what_canal_writes(servers, kafka, position):
    a, _ = servers
    topic = Topic(kafka)
    with a_database(a) as db:
        running = position.lead(relays(a, [(topic, {"format": "canal"})], db), "r0").runs()
        with a.connect() as connection:
            said = statements(connection)
        refused, changes = run_all(a, db, said)
        running.applied(changes)
        eventually(
            partial(has_passed, running, binlog_end(a)), 60
        )  # behind the last row there is DDL
        running.stop()
    check_messages(written(topic), refused)
    check_another_format(topic)


def check_messages(found, refused):
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
    for name, wanted in VALUES.items():
        if name in values:
            assert values[name][1 : len(wanted) + 1] == wanted, name
    assert len(VALUES.keys() & values.keys()) > 10


VALUES = {
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


def check_another_format(topic):
    """A relay of another format does not go on in a topic."""
    target = KafkaTarget.model_validate({**topic.end, "format": "dts"})
    log = KafkaRelayLog(target, "setl/another")
    try:
        with pytest.raises(ConfigurationError, match="records of the format canal"):
            log.take_over()
    finally:
        log.close()
