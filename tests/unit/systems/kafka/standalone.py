"""What tests of topics share in which each record stands alone, whatever the format."""

from typing import TYPE_CHECKING, cast

from setl.channel.file import KafkaSource
from setl.channel.reading import parse_channel
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.preflight import records as preflight
from setl.systems.kafka.record import Record, TopicPartition
from setl.systems.kafka.record_describer import StandaloneDescriber
from setl.systems.kafka.source.record_entries import StandaloneEntries
from setl.systems.pipeline_check import PipelineCheck, SourceTable

if TYPE_CHECKING:
    import confluent_kafka

PLACE = TopicPartition("orders", 0)


def source_of(format_):
    return KafkaSource(type="kafka", format=format_, brokers=["k:9092"], topic="orders")


class Message:
    def __init__(self, offset, key=None, value=None, headers=None, stamp=(0, 0)):
        self._offset, self._key, self._value = offset, key, value
        self._headers, self._stamp = headers, stamp

    def headers(self):
        return self._headers

    def timestamp(self):
        return self._stamp

    def offset(self):
        return self._offset

    def key(self):
        return self._key

    def value(self):
        return self._value


def message(offset, *record):
    return cast("confluent_kafka.Message", Message(offset, *record))


def messages(*records, first=0):
    return [message(first + i, *record) for i, record in enumerate(records)]


def entries_from(format_, start=0):
    """What makes entries of records of a format, from an offset on."""
    reader = header_reader(source_of(format_))
    assert reader is not None
    return StandaloneEntries(PLACE, KafkaOrigin(), KafkaPosition("orders", 0, start), reader)


def entries_of(format_, *records, first=0):
    """Entries of records, each a key and a value, and the error behind them."""
    made = entries_from(format_)
    return made, made.of(messages(*records, first=first))


def kinds(entries):
    return "".join(entry.kind.name[0] for entry in entries)


def describe(format_, record_key, value):
    """What people see of a record."""
    record = Record(2, 7, 1_700_000_001_000, record_key, value, (("h", b"v"),))
    return StandaloneDescriber(source_of(format_)).describe(record)


class Reader:
    """A partition that holds some records."""

    def __init__(self, records):
        self.records = [Record(0, n, 0, *record) for n, record in enumerate(records)]
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


def checker(monkeypatch, format_):
    """Checks records; returns code and level of what was found, "" for what is right."""

    def check(*records, policy="delete", columns=(), partitions=()):
        monkeypatch.setattr(preflight, "topic_setting", lambda *_: policy)
        monkeypatch.setattr(preflight, "open_reader", lambda *_: Reader(records))
        source = {"type": "kafka", "format": format_, "brokers": ["k:9092"], "topic": "t"}
        pipeline = {
            "name": "p",
            "source": source,
            "target": {"type": "elasticsearch", "hosts": ["http://e:9200"]},
            "tables": [{"from": "shop.orders", "to": "orders"}],
        }
        file = parse_channel({"channel": "c", "pipelines": [pipeline]})
        report = Report("p")
        tables = [SourceTable(RowSchema("shop", "orders", columns), ())] if columns else ()
        checked = PipelineCheck(file.pipelines[0], tables=tables, partitions=frozenset(partitions))
        kafka = file.pipelines[0].source
        assert isinstance(kafka, KafkaSource)
        preflight.check_records(kafka, checked, report)
        return [(f.level, f.code if f.level != "ok" else "") for f in report.findings]

    return check
