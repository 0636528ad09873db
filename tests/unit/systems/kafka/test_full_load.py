"""A full load that comes through the topic, before and between changes."""

from hypothesis import given
from hypothesis import strategies as st

from setl.channel.routes.routing import Route
from setl.codec.dts.header_reader import DtsHeaderReader
from setl.codec.dts.rows import DtsRowCodec
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, CheckpointTracker, check_progress
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition
from setl.select.batching import BatchAssembler, BatchSettings
from setl.transform.compaction import Compactor
from tests.unit.codec.dts_records import character, integer, record, row_record
from tests.unit.select.fakes import ManualClock

COLUMNS = [("id", 8), ("name", 253)]
KEY = {"pk_uk_info": '{"PRIMARY":["id"]}'}
MARK = [("ID", 8), ("CHANNEL_ID", 3)]
OWN = 7


def image(key, name):
    return [integer(key), character(name.encode())]


def loaded(key, name):
    return row_record("INIT", COLUMNS, after=image(key, name), tags=KEY)


def inserted(key, name):
    return row_record("INSERT", COLUMNS, after=image(key, name), tags=KEY)


def updated(key, name):
    before, after = image(key, "?"), image(key, name)
    return row_record("UPDATE", COLUMNS, before=before, after=after, tags=KEY)


def deleted(key):
    return row_record("DELETE", COLUMNS, before=image(key, "?"), tags=KEY)


def marked():
    after = [integer(1), integer(OWN)]
    return row_record("UPDATE", MARK, before=after, after=after, name="retl.retl_mark")


BEGIN, COMMIT, HEARTBEAT = record("BEGIN"), record("COMMIT"), record("HEARTBEAT")


def entries_of(values, first=0):
    reader, entries = DtsHeaderReader(), []
    for offset, value in enumerate(values[first:], first):
        entry = reader.read(value, KafkaPosition("orders", 0, offset + 1))
        if reader.boundary:
            entries.append(Entry(EntryKind.COMMIT, entries[-1].position, entries[-1].timestamp))
        entries.append(entry)
    return entries


class Everything:
    def route(self, schema, table):
        return (Route(0, (schema, table)),)

    def shadow(self, schema, table):
        return None


def extract(entries):
    start = Checkpoint(KafkaPosition("orders", 0, 0))
    extractor = Extractor(Everything(), MarkIdentity(OWN), DtsRowCodec())
    return extractor.extract(Batch(1, 1, entries, start, len(entries), 0))


def applied(values):
    """What a stream leaves in the target: the name of each key, None for a deleted one."""
    codec, compactor = DtsRowCodec(), Compactor()
    for version, (entry, _) in enumerate(extract(entries_of(values)).rows):
        compactor.add_many(codec.decode(entry.payload, ()), version)
    state: dict = {}
    for part in compactor.survivors():
        state |= {key: None for (key,) in part.deletes}
        for key, name in part.upserts:
            state[key] = name
    return state


def test_loaded_rows_overwrite_and_changes_overwrite_them():
    stream = [
        loaded(1, "loaded"), loaded(2, "loaded"), loaded(3, "loaded"),
        BEGIN, updated(2, "changed"), deleted(3), inserted(4, "new"), COMMIT,
        loaded(5, "loaded"), loaded(4, "loaded again"),
        BEGIN, loaded(6, "in a transaction"), COMMIT,
    ]  # fmt: skip
    assert applied(stream) == {
        1: "loaded", 2: "changed", 3: None, 4: "loaded again", 5: "loaded", 6: "in a transaction",
    }  # fmt: skip


def test_a_marked_transaction_beside_a_full_load_is_dropped_alone():
    for own in (
        [BEGIN, marked(), inserted(9, "echo"), COMMIT],
        [marked(), inserted(9, "echo")],  # without the records around it
        [marked(), inserted(9, "echo"), HEARTBEAT],
        [BEGIN, marked(), inserted(9, "echo"), COMMIT, HEARTBEAT],
    ):
        stream = [loaded(1, "a"), *own, loaded(2, "b"), BEGIN, inserted(3, "c"), COMMIT]
        assert applied(stream) == {1: "a", 2: "b", 3: "c"}


def test_the_checkpoint_moves_on_in_an_endless_full_load():
    values = [loaded(n, "x") for n in range(5000)]
    clock = ManualClock()
    start = Checkpoint(KafkaPosition("orders", 0, 0))
    assembler = BatchAssembler(1, start, BatchSettings(rows=1000, wait=60), clock)
    batches = assembler.add(entries_of(values))
    assert len(batches) >= 4
    for batch in batches:
        # Nobody would have to read more than a few hundred rows again.
        behind = batch.entries[-1].position.order[1] - batch.checkpoint.resume.order[1]
        assert 0 <= behind < 512


def test_heartbeats_and_fillers_move_the_position_during_a_full_load():
    tracker = CheckpointTracker(Checkpoint(KafkaPosition("orders", 0, 0)))
    entries = entries_of([loaded(1, "a"), loaded(2, "b"), HEARTBEAT, b"mock", b""])
    checkpoint = tracker.advance_all(entries)
    assert (checkpoint.resume.order[1], checkpoint.applied) == (5, None)


OPERATIONS = {
    "load": loaded(1, "x"), "row": inserted(1, "x"), "begin": BEGIN, "commit": COMMIT,
    "heartbeat": HEARTBEAT, "filler": b"", "mark": marked(),
}  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(1, 700)), max_size=8),
    st.data(),
)
def test_reading_again_from_any_checkpoint_goes_on_from_there(script, data):
    values = []
    for name, count in script:
        values += [OPERATIONS[name]] * (count if name == "load" else 1 + count % 3)
    whole = entries_of(values)
    orders = [entry.position.order for entry in whole]
    assert orders == sorted(orders)
    cut = data.draw(st.integers(0, len(whole)))
    tracker = CheckpointTracker(Checkpoint(KafkaPosition("orders", 0, 0)))
    checkpoint = tracker.advance_all(whole[:cut])
    again = entries_of(values, checkpoint.resume.order[1])
    follower = CheckpointTracker(checkpoint)
    for entry in again:
        # A store would refuse a checkpoint that lies before the one it has.
        check_progress(checkpoint, follower.advance(entry))
    rows = [e.position for e in whole[cut:] if e.kind is EntryKind.ROWS]
    assert [e.position for e in again if e.rows and not checkpoint.covers(e)] == rows
