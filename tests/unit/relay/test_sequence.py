"""What the sequencer makes of a stream, in examples; see test_resuming for crashes."""

from dataclasses import replace

import pytest

from setl.errors import DataError, FatalError
from setl.extract.statements import SkippedStatements
from setl.model.change import ABSENT, Op
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, KafkaPosition
from tests.unit.relay.relay_streams import (
    BUFFER,
    ITEMS,
    LOG,
    ORDERS,
    OTHER,
    START,
    XDUAL,
    Binlog,
    Relay,
    ordinals,
    position,
    relayed,
    words,
)


def test_a_transaction_is_written_with_its_begin_and_commit():
    binlog = Binlog().begin("0-1-8").insert(ORDERS, 1, 2).commit()
    (records,) = relayed(binlog).partitions
    assert words(records) == [
        "BEGIN",
        "INSERT shop.orders None (1, 'new')",
        "INSERT shop.orders None (2, 'new')",
        "COMMIT",
    ]
    transaction = position(records[0]).transaction
    assert transaction == (3, "binlog.000007", 4, "srv-1", 7, 1_700_000_000, "0-1-8", "dts")
    assert {position(r).transaction for r in records} == {transaction}
    # The event ends 61 bytes behind the boundary: 30 for the BEGIN, 31 for itself.
    assert ordinals(records) == [0, 60, 61, "end"]
    assert [r.timestamp_ms for r in records] == [1_700_000_000_000 + 1000 * n for n in (0, 1, 1, 2)]


def test_what_nobody_may_see_leaves_nothing_behind():
    binlog = Binlog().begin().insert(OTHER, 1).commit()
    binlog.begin().mark().commit()  # marks alone say nothing
    binlog.begin().insert(XDUAL, 1).commit()
    binlog.begin().commit()
    relay = relayed(binlog)
    assert relay.partitions == [[]]
    assert [entry.table for entry in relay.heartbeats] == ["xdual"]
    assert relay.sequencer.checkpoint.resume == binlog.entries[-1].position


def test_own_marks_travel_ahead_of_the_rows_and_the_buffer_passes():
    binlog = Binlog().begin().mark(7).insert(OTHER, 1).insert(BUFFER, 5).mark(0).commit()
    (records,) = relayed(binlog).partitions
    assert [w.split()[:2] for w in words(records)] == [
        ["BEGIN"],
        ["UPDATE", "retl.retl_mark"],
        ["INSERT", "retl.retl_buffer"],
        ["UPDATE", "retl.retl_mark"],
        ["COMMIT"],
    ]


def test_each_partition_with_rows_gets_begin_marks_and_commit():
    binlog = Binlog().begin().mark(1).insert(ORDERS, 1).mark(2).insert(LOG, 1)
    binlog.mark(3).commit()
    partitions = relayed(binlog, "table", 4).partitions
    filled = [words(p) for p in partitions if p]
    assert len(filled) == 2
    first, second = sorted(filled, key=lambda w: "shop.log" in str(w))
    marks = [f"UPDATE retl.retl_mark ({n}, 'old') ({n}, 'new')" for n in (1, 2, 3)]
    orders, log = "INSERT shop.orders None (1, 'new')", "INSERT shop.log None (1, 'new')"
    assert first == ["BEGIN", marks[0], orders, *marks[1:], "COMMIT"]
    assert second == ["BEGIN", *marks[:2], log, marks[2], "COMMIT"]


def test_ddl_goes_to_all_partitions_and_stands_alone():
    binlog = Binlog().ddl("ALTER TABLE orders ADD x INT").ddl("ALTER TABLE t ADD x INT", "other")
    for records in relayed(binlog, "table", 3).partitions:
        assert words(records) == ["DDL ALTER TABLE orders ADD x INT"]
        assert ordinals(records) == ["end"]


def test_ddl_inside_a_transaction_begins_it_everywhere():
    binlog = Binlog().begin().ddl("CREATE TABLE orders (id INT)").insert(ORDERS, 1).commit()
    partitions = relayed(binlog, "table", 2).partitions
    kinds = sorted([[w.split()[0] for w in words(p)] for p in partitions], key=len)
    assert kinds == [["BEGIN", "DDL", "COMMIT"], ["BEGIN", "DDL", "INSERT", "COMMIT"]]
    for records in partitions:
        assert ordinals(records)[0] == 0
        assert 0 < position(records[1]).ordinal < position(records[2]).ordinal


def test_a_statement_instead_of_rows_is_absorbed_only_where_nothing_is_mapped():
    binlog = Binlog().begin()
    binlog.add(EntryKind.STATEMENT, schema="other", statement="DELETE FROM t")
    binlog.insert(ORDERS, 1).commit()
    accepts = SkippedStatements(lambda schema, _: schema == "shop", lambda _: True)
    (records,) = relayed(binlog, statements=accepts).partitions
    assert [w.split()[0] for w in words(records)] == ["BEGIN", "INSERT", "COMMIT"]
    with pytest.raises(FatalError, match=r"it writes other\.t"):
        relayed(binlog)


def test_a_begin_or_ddl_ends_a_transaction_without_commit():
    binlog = Binlog().insert(ORDERS, 1).begin().insert(ORDERS, 2).commit()
    binlog.insert(ORDERS, 3).ddl("ALTER TABLE orders ADD x INT")
    (records,) = relayed(binlog).partitions
    assert [w.split()[0] for w in words(records)] == [
        *("BEGIN", "INSERT", "COMMIT"),
        *("BEGIN", "INSERT", "COMMIT"),
        *("BEGIN", "INSERT", "COMMIT"),
        "DDL",
    ]
    begins = [position(r).transaction.begin for r in records]
    assert begins == sorted(begins)
    assert len(set(begins)) == 4


def test_a_key_that_changes_partition_is_deleted_there_and_inserted_here():
    relay = relayed(Binlog().begin().insert(ORDERS, *range(20)).commit(), "key", 3)
    home = {
        int(w.split("(")[1].split(",")[0]): p
        for p, records in enumerate(relay.partitions)
        for w in words(records)
        if w.startswith("INSERT")
    }
    assert set(home.values()) == {0, 1, 2}
    stays = next(k for k in range(1, 20) if home[k] == home[0])
    moves = next(k for k in range(1, 20) if home[k] != home[0])
    binlog = Binlog().begin().mark().update(ORDERS, 0, stays).update(ORDERS, 0, moves).commit()
    partitions = relayed(binlog, "key", 3).partitions
    mark = "UPDATE retl.retl_mark (1, 'old') (1, 'new')"
    assert words(partitions[home[0]]) == [
        "BEGIN",
        mark,
        f"UPDATE shop.orders (0, 'old') ({stays}, 'new')",
        "DELETE shop.orders (0, 'old') None",
        "COMMIT",
    ]
    assert words(partitions[home[moves]]) == [
        "BEGIN",
        mark,
        f"INSERT shop.orders None ({moves}, 'new')",
        "COMMIT",
    ]


def test_a_row_that_moves_has_to_be_known_in_full():
    binlog = Binlog().begin()
    for key in range(1, 5):
        binlog.rows(ORDERS, Op.UPDATE, ((0, "old"), (key, ABSENT)))
    values = [w for p in relayed(binlog, "key", 2).partitions for w in words(p)]
    assert any(w.endswith("'old')") and w.startswith("INSERT") for w in values)
    binlog.rows(ORDERS, Op.UPDATE, *[((0, ABSENT), (key, ABSENT)) for key in range(1, 5)])
    with pytest.raises(DataError, match=r"not said in full .*orders.*binlog_row_image"):
        relayed(binlog, "key", 2)


def test_rows_that_do_not_say_what_the_server_computes_are_refused():
    """Whoever read the record would take the column for unchanged."""
    binlog = Binlog().begin().update(replace(ORDERS, unlogged=("g",)), 1, 1)
    with pytest.raises(DataError, match=r"does not say what g of its row holds .*orders"):
        relayed(binlog)


def test_positions_do_not_depend_on_what_is_mapped():
    binlog = Binlog().begin().insert(ITEMS, 1, 2, 3).insert(ORDERS, 1).insert(LOG, 1).commit()
    (all_mapped,) = relayed(binlog).partitions
    (one_mapped,) = relayed(binlog, mapped=("orders",)).partitions
    orders = [r for r in all_mapped if b"shop.items" not in r.value and b"shop.log" not in r.value]
    assert len(orders) == 3
    assert orders == one_mapped


def test_the_checkpoint_is_the_boundary_before_what_is_open():
    binlog = Binlog().begin().insert(ORDERS, 1, 2).commit().begin().insert(ORDERS, 3)
    relay = Relay(binlog, start=Checkpoint(START.resume, rows=10, generation=3, requested=2))
    assert relay.sequencer.checkpoint.resume == START.resume
    assert not relay.sequencer.inside
    relay.take(binlog.entries)
    boundary = binlog.entries[2]
    assert relay.sequencer.inside
    assert relay.sequencer.checkpoint == Checkpoint(
        boundary.position, timestamp=boundary.timestamp, generation=3, rows=12, requested=2
    )


def test_boundaries_do_not_depend_on_statements_that_change_nothing():
    binlog = Binlog().begin().insert(ORDERS, 1).commit().idle()
    relay = relayed(binlog)
    assert relay.sequencer.checkpoint.resume == binlog.entries[2].position


def test_a_new_file_is_a_boundary_at_its_beginning():
    binlog = Binlog().begin().insert(ORDERS, 1).commit().rotate()
    relay = relayed(binlog)
    assert str(relay.sequencer.checkpoint.resume) == "binlog.000008:4"
    assert relay.sequencer.checkpoint.resume == binlog.entries[-1].position
    with pytest.raises(FatalError, match="inside a transaction"):
        relayed(Binlog().begin().insert(ORDERS, 1).rotate())


def test_heartbeats_go_everywhere_but_not_inside_a_transaction():
    binlog = Binlog().begin().insert(ORDERS, 1).commit()
    relay = Relay(binlog, "table", 3).beat().take(binlog.entries[:2]).beat()
    assert sum(len(p) for p in relay.partitions) == 3 + 2
    relay.take(binlog.entries[2:]).beat(7.0).beat(8.5)
    for records in relay.partitions:
        beats = [r for r in records if r.value.startswith(b"HEARTBEAT")]
        assert words(beats) == [
            f"HEARTBEAT binlog.000007:{offset} {seconds}"
            for offset, seconds in ((4, 5), (92, 7), (92, 8))
        ]
        assert ordinals(beats) == [-1, -1, -1]
        assert beats[-1].timestamp_ms == 8500


def test_errors_name_the_position():
    class Broken(Binlog):
        def decode(self, payload, context):
            raise DataError("not a row")

    binlog = Broken().begin().insert(ORDERS, 1)
    with pytest.raises(DataError, match=r"not a row .*table orders.*binlog.000007:62") as caught:
        relayed(binlog)
    assert caught.value.where["schema"] == "shop"


def test_a_relay_needs_a_binlog_and_the_partitions_it_knows():
    with pytest.raises(FatalError, match="no place in a binlog"):
        Relay(Binlog(), start=Checkpoint(KafkaPosition("t", 0, 1)))
    with pytest.raises(FatalError, match="2 partitions are there and 3 were expected"):
        Relay(Binlog(), "table", 3, last=[None, None])


def test_a_file_that_begins_without_a_word_is_noticed():
    binlog = Binlog().begin().insert(ORDERS, 1).commit()
    start = Checkpoint(BinlogPosition("binlog.000006", 999), generation=3)
    (records,) = relayed(binlog, start=start).partitions
    assert {position(r).transaction[1:3] for r in records} == {("binlog.000007", 4)}
