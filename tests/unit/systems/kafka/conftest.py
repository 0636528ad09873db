"""What tests of a subscription share."""

import pytest

from setl.model.position import KafkaPosition
from setl.systems.kafka.source import access as kafka_access
from setl.systems.kafka.source.subscription import DtsKafkaSource

from .fake_reader import FakeReader, config


@pytest.fixture
def opened(monkeypatch):
    """A source that is open at the third record, and the reader behind it."""
    reader = FakeReader()
    monkeypatch.setattr(
        kafka_access, "reader_and_partitions", lambda *_, **__: (reader, reader.partitions())
    )
    source = DtsKafkaSource(config(), clock=reader.clock)
    source.open(KafkaPosition("orders", 0, 3))
    return source, reader
