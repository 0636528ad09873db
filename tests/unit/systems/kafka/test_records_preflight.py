"""What `setl check` says of a topic's last records, without brokers."""

import pytest

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.channel.reading import parse_channel
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.preflight import records as preflight
from setl.systems.kafka.record import Record
from setl.systems.pipeline_check import PipelineCheck, SourceTable
from tests.unit.codec.json_records import debezium, key


class Reader:
    """A partition that holds some records."""

    def __init__(self, values):
        self.records = [Record(0, n, 0, key(id=1), value) for n, value in enumerate(values)]
        self.next = 0

    def bounds(self, partition):
        return Bounds(0, len(self.records))

    def seek(self, starts):
        self.next = starts[0]

    def position(self, partition):
        return self.next

    def poll(self, limit, timeout):
        found, self.next = self.records[self.next :], len(self.records)
        return found

    def close(self):
        pass


@pytest.fixture
def findings(monkeypatch):
    """Checks records; returns code and level of what was found, "" for what is right."""

    def check(*values, policy="delete", columns=()):
        monkeypatch.setattr(preflight, "topic_setting", lambda *_: policy)
        monkeypatch.setattr(preflight, "open_reader", lambda *_: Reader(values))
        source = {"type": "kafka", "format": "debezium", "brokers": ["k:9092"], "topic": "t"}
        pipeline = {
            "name": "p",
            "source": source,
            "target": {"type": "elasticsearch", "hosts": ["http://e:9200"]},
            "tables": [{"from": "shop.orders", "to": "orders"}],
        }
        file = parse_channel({"channel": "c", "pipelines": [pipeline]})
        report = Report("p")
        tables = [SourceTable(RowSchema("shop", "orders", columns), ())] if columns else ()
        checked = PipelineCheck(file.pipelines[0], tables=tables)
        kafka = file.pipelines[0].source
        assert isinstance(kafka, KafkaSource)
        preflight.check_records(kafka, checked, report)
        return [(f.level, f.code if f.level != "ok" else "") for f in report.findings]

    return check


def test_records_that_can_be_read(findings):
    assert findings(debezium("c", after={"id": 1}), None) == [("ok", "")]


def test_what_is_not_mapped_is_not_looked_at(findings):
    other = debezium("c", after={"id": 1}, fields={"id": "array"}, table="other")
    assert findings(other) == []
    assert findings() == []


def test_a_compacted_topic_is_an_error(findings):
    assert findings(policy="compact,delete") == [("error", "compacted-topic")]


@pytest.mark.parametrize(
    "value",
    [b"\0\0\0\0\1\2", b'{"id":1}', debezium("c", after={"id": 1}, fields={"id": "array"})],
)
def test_records_that_cannot_be_read(findings, value):
    assert findings(debezium("c", after={"id": 1}), value) == [("error", "record-unreadable")]


def test_columns_are_compared_with_those_of_the_database(findings):
    row = {"id": 1, "d": 1.5, "b": "YQ=="}
    record = debezium("c", after=row, fields={"id": "int32", "d": "double", "b": "string"})
    known = (
        Column("id", Kind.INTEGER),
        Column("D", Kind.DECIMAL),
        Column("b", Kind.BINARY),
        Column("gone", Kind.TEXT),
    )
    inexact = ("error", "inexact-records")
    assert findings(record, columns=known) == [inexact, inexact, ("ok", "")]
    right = (Column("id", Kind.INTEGER), Column("d", Kind.FLOAT), Column("b", Kind.TEXT))
    assert findings(record, columns=right) == [("ok", "")]


def test_a_default_may_stand_for_null_until_a_null_is_seen(findings):
    fields = {"id": "int32", "v": ("int32", "", {}, 5)}
    five, null = (debezium("c", after={"id": 1, "v": v}, fields=fields) for v in (5, None))
    assert findings(five) == [("error", "null-or-default"), ("ok", "")]
    assert findings(null, five) == [("ok", "")]
