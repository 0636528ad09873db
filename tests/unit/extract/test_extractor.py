import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.names.shadow_tables import Shadow, ShadowPart
from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.extract.extractor import Extractor, HeartbeatSeen
from setl.extract.loopback import DROPPING, OUTSIDE, MarkIdentity
from setl.model.batch import Batch
from setl.model.change import Op
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from setl.model.session import StatementSession
from tests.unit.extract.marked_streams import (
    OTHER,
    OWN,
    OWN_INFO,
    XDUAL_SCHEMA,
    Stream,
    ToOneTarget,
    at,
    mark_row,
    marked_streams,
)

ME = MarkIdentity(OWN, OWN_INFO)


def extractor_for(stream, identity=ME):
    return Extractor(ToOneTarget(), identity, stream.codec)


def payloads(extracted):
    return [rows.entry.payload for rows in extracted.rows]


def test_an_own_transaction_is_dropped_in_all_batches_it_is_cut_into():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OWN))
    stream.row(expected=False, rows=3)
    stream.row(expected=False)
    stream.row(expected=False)
    stream.commit()
    stream.begin()
    stream.row(expected=True)
    extractor = extractor_for(stream)

    first = extractor.extract(stream.batch(0, 3))
    assert (first.rows, first.counts.loopback_rows) == ([], 3)
    assert extractor.state == DROPPING
    second = extractor.extract(stream.batch(3, 4))
    assert (second.rows, second.counts.loopback_rows) == ([], 1)
    third = extractor.extract(stream.batch(4, 8))
    assert payloads(third) == stream.expected
    assert (third.counts.rows, third.counts.entries, third.counts.loopback_rows) == (1, 1, 1)


def test_foreign_transactions_pass_without_their_marks():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OTHER, "1.1.0.a"))
    stream.row(expected=True)
    stream.commit()
    extracted = extractor_for(stream).extract(stream.batch())
    [rows] = extracted.rows
    assert (rows.entry.payload, rows.routes[0].target) == (b"row 3", ("shop", "orders"))


def test_an_own_mark_in_the_middle_begins_a_transaction():
    stream = Stream()
    stream.begin()
    stream.row(expected=True)
    stream.mark(mark_row(OWN))
    stream.row(expected=False)
    stream.add(EntryKind.HEARTBEAT)
    stream.row(expected=False)
    stream.begin()
    stream.row(expected=True)
    assert payloads(extractor_for(stream).extract(stream.batch())) == stream.expected


def test_nothing_of_the_system_schema_is_applied_whatever_its_case():
    stream = Stream()
    stream.begin()
    stream.row(expected=False, schema="RETL", table="retl_BUFFER", rows=4)
    stream.row(expected=False, schema="Retl", table="setl_checkpoint")
    stream.row(expected=False, schema="retl", table="anything")
    stream.mark(mark_row(OWN), table="RETL_Mark")
    stream.row(expected=False)
    stream.commit()
    routing = ToOneTarget()
    extracted = Extractor(routing, ME, stream.codec).extract(stream.batch())
    assert extracted.rows == []
    assert extracted.gate or extracted.gate_problems
    assert extracted.counts.loopback_rows == 1
    assert routing.asked == [("shop", "orders")]


def test_unmapped_tables_are_counted_and_asked_for_once():
    stream = Stream()
    for _ in range(5):
        stream.row(expected=False, schema="other", rows=2)
        stream.row(expected=True)
    routing = ToOneTarget()
    extracted = Extractor(routing, ME, stream.codec).extract(stream.batch())
    assert payloads(extracted) == stream.expected
    assert extracted.counts.unmapped == 10
    assert routing.asked == [("other", "orders"), ("shop", "orders")]


def test_heartbeats_are_read_in_seconds():
    stream = Stream()
    stream.heartbeat(3, "2026-03-01 10:00:00.250000")
    stream.heartbeat(4, "0000-00-00 00:00:00.000000")
    stream.heartbeat(5, None)
    stream.heartbeat(6, "2026-03-01 10:00:01")
    removed = stream.codec.put(XDUAL_SCHEMA, Op.DELETE, (7, None), None)
    stream.add(EntryKind.ROWS, schema="retl", table="xdual", rows=1, payload=removed)
    extracted = extractor_for(stream).extract(stream.batch())
    assert extracted.heartbeats == [HeartbeatSeen(3, 1772359200.25), HeartbeatSeen(6, 1772359201.0)]
    assert extracted.counts.heartbeats == 5


def test_an_unreadable_mark_says_where_it_is():
    stream = Stream()
    stream.row(expected=False, schema="retl", table="retl_mark")
    with pytest.raises(DataError) as raised:
        extractor_for(stream).extract(stream.batch())
    assert raised.value.where == {"table": "retl.retl_mark", "position": "t[0]@1"}


DDL = [
    ("shop", "ALTER TABLE orders ADD x INT", True),
    ("", "ALTER TABLE shop.orders ADD x INT", True),
    ("shop", "/*setl:11*/ ALTER TABLE orders ADD x INT", False),
    ("shop", "ALTER /* setl:11 */ TABLE orders ADD x INT", False),
    ("shop", "/*setl:12*/ ALTER TABLE orders ADD x INT", True),
    ("shop", "/*setl:11*/", False),
    ("shop", "ALTER TABLE orders ADD x INT COMMENT '/*setl:11*/'", True),
    ("shop", "ALTER TABLE orders ADD x INT COMMENT 'it''s' /*setl:11*/", False),
    ("shop", "ALTER TABLE orders ADD x INT /* see setl:11 */", True),
    ("other", "ALTER TABLE orders ADD x INT", False),
    ("other", "RENAME TABLE orders TO shop.orders", True),
    ("other", "ALTER TABLE orders RENAME TO shop.orders", True),
    ("shop", "ALTER TABLE retl.retl_mark ADD x INT", False),
    ("retl", "CREATE TABLE setl_x (a INT)", False),
    ("retl", "ALTER TABLE shop.orders ADD x INT", True),
    ("retl", "DROP TABLE retl_mark, shop.orders", True),
    ("", "CREATE DATABASE retl", False),
    ("retl", "CREATE DATABASE new", True),
    ("shop", "CREATE VIEW v AS SELECT 1", True),
]


@pytest.mark.parametrize(("schema", "statement", "stored"), DDL, ids=[d[1] for d in DDL])
def test_ddl_of_the_channel_itself_and_of_other_tables_is_dropped(schema, statement, stored):
    stream = Stream()
    stream.add(EntryKind.DDL, schema=schema, statement=statement)
    assert bool(extractor_for(stream).extract(stream.batch()).ddl) is stored


def test_ddl_ends_a_dropped_transaction():
    stream = Stream()
    stream.mark(mark_row(OWN))
    stream.row(expected=False)
    stream.add(EntryKind.DDL, schema="shop", statement="TRUNCATE orders")
    stream.row(expected=True)
    extracted = extractor_for(stream).extract(stream.batch())
    assert payloads(extracted) == stream.expected
    assert [e.statement for e in extracted.ddl] == ["TRUNCATE orders"]


def test_rows_applied_before_are_read_again_only_for_their_mark():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OTHER))
    stream.row(expected=False, rows=2)
    stream.heartbeat()
    stream.row(expected=True)
    stream.commit()
    extractor = extractor_for(stream)
    extractor.reset(Checkpoint(at(0), applied=at(4)))
    extracted = extractor.extract(stream.batch())
    assert payloads(extracted) == stream.expected
    assert extracted.counts.repeated == 2
    assert extracted.heartbeats == []


def test_reset_forgets_the_transaction_and_the_bound():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OWN))
    stream.row(expected=False)
    stream.commit()
    stream.begin()
    stream.row(expected=True)
    extractor = extractor_for(stream)
    extractor.reset(Checkpoint(at(0), applied=at(100)))
    extractor.extract(stream.batch(0, 3))
    assert extractor.state == DROPPING
    extractor.reset(Checkpoint(at(4)))
    assert extractor.state == OUTSIDE
    assert payloads(extractor.extract(stream.batch(4))) == stream.expected


@given(marked_streams(), st.integers(0, 2**32))
def test_each_row_comes_out_once_however_the_stream_is_cut_and_restarted(stream, seed):
    # A leader selects some batches, of which the first few are applied, and dies; the next one
    # starts from the checkpoint of the last that was applied.
    chance = random.Random(seed)
    applied, stored = [], Checkpoint(at(0))
    extractor = extractor_for(stream)
    while True:
        if chance.random() < 0.5:
            extractor = extractor_for(stream)
        extractor.reset(stored)
        tracker = CheckpointTracker(stored)
        lives = chance.random() < 0.3
        position, reached = stored.resume.offset, []
        while position < len(stream.entries) and (lives or chance.random() < 0.8):
            size = chance.randint(1, 8)
            entries = stream.entries[position : position + size]
            position += size
            checkpoint = tracker.advance_all(entries)
            batch = Batch(len(reached) + 1, 1, entries, checkpoint, len(entries), 0)
            reached.append((payloads(extractor.extract(batch)), checkpoint))
        done = len(reached) if lives else chance.randint(0, len(reached))
        for rows, checkpoint in reached[:done]:
            applied += rows
            stored = checkpoint
        if lives:
            break
    assert applied == stream.expected


@given(marked_streams())
def test_a_stream_in_one_piece_gives_what_it_gives_entry_by_entry(stream):
    whole = extractor_for(stream).extract(stream.batch())
    extractor = extractor_for(stream)
    singly = [extractor.extract(stream.batch(i, i + 1)) for i in range(len(stream.entries))]
    assert payloads(whole) == stream.expected == [p for part in singly for p in payloads(part)]
    for name in ("rows", "entries", "loopback_rows", "unmapped", "heartbeats"):
        total = sum(getattr(part.counts, name) for part in singly)
        assert getattr(whole.counts, name) == total, name


@pytest.mark.parametrize(("wanted", "stored"), [(False, []), (True, ["CREATE", "ALTER"])])
def test_ddl_of_shadow_tables_is_for_whom_it_concerns(wanted, stored):
    class Shadowed:
        def route(self, schema, table):
            return (Route(0, (schema, table)),) if table == "orders" else ()

        def shadow(self, schema, table):
            return Shadow("orders", ShadowPart.NEXT) if table == "_orders_gho" else None

    stream = Stream()
    for statement in (
        "CREATE TABLE _orders_gho LIKE orders",
        "ALTER TABLE _orders_gho ADD c INT",
        "ALTER TABLE _other_gho ADD c INT",
    ):
        session = StatementSession("shop")
        stream.add(EntryKind.DDL, schema="elsewhere", statement=statement, session=session)
    extractor = Extractor(Shadowed(), ME, stream.codec, shadow_ddl=wanted)
    extracted = extractor.extract(stream.batch())
    assert [entry.statement.split()[0] for entry in extracted.ddl] == stored


def test_what_holds_nothing_but_heartbeats():
    def stream_of(*steps):
        stream = Stream()
        for step in steps:
            step(stream)
        return stream

    begin, commit, beat = Stream.begin, Stream.commit, Stream.heartbeat

    def row(stream):
        stream.row(expected=True)

    def unmapped(stream):
        stream.row(expected=False, schema="other")

    def mark(stream):
        stream.mark(mark_row(OWN))

    def ddl(stream):
        stream.add(EntryKind.DDL, schema="shop", statement="DROP TABLE orders")

    def time(stream):
        stream.add(EntryKind.HEARTBEAT)

    whole = begin, beat, commit
    for yes in (whole, whole * 2, (time,), (begin, commit), (beat, commit)):
        stream = stream_of(*yes)
        assert extractor_for(stream).are_heartbeats(stream.entries)
    for no in (
        (begin, beat), (begin, time), (begin, beat, row, commit), (begin, mark, beat, commit),
        (*whole, ddl), (*whole, begin, unmapped, commit), (beat,),
    ):  # fmt: skip
        stream = stream_of(*no)
        assert not extractor_for(stream).are_heartbeats(stream.entries), no


def test_heartbeats_inside_a_transaction_are_none_alone():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OWN))
    extractor = extractor_for(stream)
    extractor.extract(stream.batch())
    stream.add(EntryKind.HEARTBEAT)
    assert not extractor.are_heartbeats(stream.entries[-1:])
    extractor.reset(Checkpoint(at(1), applied=at(2)))
    assert not extractor.are_heartbeats(stream.entries[-1:]), "what was applied comes again"
