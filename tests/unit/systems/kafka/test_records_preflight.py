"""What `setl check` says of a topic's last records, without brokers."""

import pytest

from setl.codec.dts.relayed import HEADER
from tests.unit.formats.records import FORMATS, records_of
from tests.unit.systems.kafka.standalone import checker


@pytest.fixture(params=FORMATS)
def made(request):
    return records_of(request.param)


@pytest.fixture
def findings(made, monkeypatch):
    return checker(monkeypatch, made.__name__.split(".")[-2])


def test_records_that_can_be_read(findings, made):
    assert findings(made.insert(1), made.heartbeat()) == [("ok", "")]


def test_what_is_not_mapped_is_not_looked_at(findings, made):
    assert findings(made.insert(1, table="other")) == []
    assert findings() == []


def test_a_compacted_topic_is_an_error(findings):
    assert findings(policy="compact,delete") == [("error", "compacted-topic")]


def test_rows_that_do_not_decide_their_partition(findings, made):
    (key, value), relayed = made.insert(1), ((HEADER, b"1"),)
    unknown = [("error", "order-unknown"), ("ok", "")]
    assert findings((None, value), partitions=[0, 1]) == unknown
    assert findings((None, value), partitions=[0]) == [("ok", "")]
    assert findings((None, value, relayed), partitions=[0, 1]) == [("ok", "")]
    assert (findings((key, value), partitions=[0, 1]) == unknown) is (key is None)


@pytest.mark.parametrize("value", [b"\0\0\0\0\1\2", b'{"id":1}'])
def test_records_that_cannot_be_read(findings, made, value):
    assert findings(made.insert(1), (None, value)) == [("error", "record-unreadable")]
