"""Runs that lie between each other, and batches: no checkpoint calls done what is not."""

import struct

from hypothesis import example, given
from hypothesis import strategies as st

from setl.channel.reading import parse_channel
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.row_codec import single_entries
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.run.selecting import select_settings
from setl.select.batching import BatchAssembler
from setl.systems.mysql.source_system import stream_limits
from tests.clocks import SetClock
from tests.unit.codec.binlog_events import START, EventWriter, names

CODEC = BinlogRowCodec()
INT, VARCHAR = (3, b""), (15, struct.pack("<H", 300))
END = {"type": "mysql", "user": "u", "password": "p"}


def pipeline(**settings):
    one = {
        "name": "one",
        "source": {**END, "host": "a"},
        "target": {**END, "host": "b"},
        "tables": [{"from": "shop.*"}],
        **settings,
    }
    return parse_channel({"channel": "c", "pipelines": [one]}).pipeline("one")


def changes(writer, table, count, size):
    image = b"\0" + struct.pack("<iH", 1, size) + b"x" * size
    optional = names("id", "v")
    columns = writer.table_map([INT, VARCHAR], table=f"t{table}", table_id=table, optional=optional)
    return [columns, writer.rows(30, 2, [image] * count, table_id=table)]


STATEMENT = st.tuples(st.integers(1, 2), st.integers(1, 9), st.sampled_from((0, 0, 60)))


@example([[(1, 1, 0), (2, 9, 0), (1, 1, 0)]], 5, 1 << 20)
@given(
    st.lists(st.lists(STATEMENT, min_size=1, max_size=6), min_size=1, max_size=8),
    st.sampled_from((1, 5, 8, 12, 1500)),
    st.sampled_from((300, 1 << 20)),
)
def test_what_a_batch_leaves_is_behind_its_checkpoint(transactions, rows, size):
    chosen = pipeline(batch_rows=rows, batch_bytes=size)
    limits, settings = stream_limits(chosen), select_settings(chosen)
    reader = BinlogHeaderReader(
        START,
        chunk_events=limits.chunk_events,
        chunk_bytes=limits.chunk_bytes,
        mixes=lambda _: True,
    )
    batches = BatchAssembler(1, Checkpoint(START), settings.batch, SetClock())
    writer, closed = EventWriter(), []
    events = [*writer.opening()]
    for number, statements in enumerate(transactions):
        events += [writer.gtid(number + 1), writer.query("BEGIN")]
        for statement in statements:
            events += changes(writer, *statement)
        events.append(writer.xid())
    for event in events:
        closed += batches.add(list(reader.read(event, checksum=True)))
    rest = batches.flush()
    closed += [rest] if rest else []
    for number, batch in enumerate(closed):
        reached = batch.checkpoint.applied or batch.checkpoint.resume
        for later in closed[number + 1 :]:
            for entry in later.entries:
                if entry.kind is EntryKind.ROWS:
                    first = next(iter(single_entries(CODEC, entry)))
                    assert first.position.order > reached.order
