"""Extract over a recorded DTS stream: real records, real codec."""

import json
import struct
from pathlib import Path

import pytest

from setl.channel.routes.routing import Route
from setl.codec.dts.header_reader import DtsHeaderReader
from setl.codec.dts.rows import DtsRowCodec
from setl.extract.extractor import Extractor, HeartbeatSeen
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaPosition

DATA = Path(__file__).parents[1] / "data" / "dts"
SYNCED = "11912@78"  # the row of the transaction whose mark ends with _SYNC


class Everything:
    def route(self, schema, table):
        return (Route(0, (schema, table)),)

    def shadow(self, schema, table):
        return None


@pytest.fixture(scope="module")
def said():
    return json.loads((DATA / "orders.json").read_text())


@pytest.fixture(scope="module")
def entries():
    data, position, reader, found = (DATA / "orders.bin").read_bytes(), 0, DtsHeaderReader(), []
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        value = data[position + 4 : position + 4 + length]
        position += 4 + length
        found.append(reader.read(value, KafkaPosition("orders", 0, len(found) + 1)))
    return found


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("mark_id", "dropped"),
    [(11, {"9674@78", SYNCED}), (12, {"10980@78", SYNCED}), (None, {SYNCED}), (7, {SYNCED})],
)
def test_the_transactions_of_the_channel_are_dropped(entries, said, mark_id, dropped, size):
    assert len(entries) == len(said)
    extractor = Extractor(Everything(), MarkIdentity(mark_id), DtsRowCodec())
    start = Checkpoint(KafkaPosition("orders", 0, 0))
    parts = [
        extractor.extract(Batch(1, 1, entries[i : i + size], start, size, 0))
        for i in range(0, len(entries), size)
    ]
    stored = [said[r.entry.position.offset - 1]["position"] for part in parts for r in part.rows]
    assert stored == [
        record["position"]
        for record in said
        if "table" in record and record["db"] != "retl" and record["position"] not in dropped
    ]
    assert sum(part.counts.loopback_rows for part in parts) == len(dropped)
    assert sum(part.counts.heartbeats for part in parts) == 1
    assert [e.statement for part in parts for e in part.ddl] == [
        record["ddl"] for record in said if "ddl" in record
    ]


def test_the_heartbeat_is_read(entries):
    extractor = Extractor(Everything(), MarkIdentity(None), DtsRowCodec())
    start = Checkpoint(KafkaPosition("orders", 0, 0))
    [seen] = extractor.extract(Batch(1, 1, entries, start, len(entries), 0)).heartbeats
    assert seen == HeartbeatSeen(1, 1700000054.0)
