"""What a subscription makes of records of a relay, and of rows that follow each other."""

from zlib import crc32

import pytest

from setl.codec.dts.relayed import HEADER, HEARTBEAT, LAST, RelayPosition, RelayTransaction
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import FatalError
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.systems.kafka.source import row_chunks as kafka_runs
from tests.unit.codec.dts_records import integer, row_record
from tests.unit.codec.dts_records import record as dts_record
from tests.unit.systems.kafka.fake_reader import give_header, valued

TRANSACTIONS = [RelayTransaction(1, "mariadb-bin.000003", begin) for begin in (100, 200, 300)]


def relayed(*positions, first):
    """Records with these places, as (number of the transaction, ordinal) or None."""
    value = dts_record(sourceTimestamp=1_700_000_100)
    records = valued(*[value] * len(positions), first=first)
    for i, position in enumerate(positions):
        if position is not None:
            header = RelayPosition(TRANSACTIONS[position[0]], position[1]).encoded()
            give_header(records, i, (HEADER, header))
    return records


def offsets(entries):
    return [entry.position.offset - 1 for entry in entries]


@pytest.mark.parametrize(
    ("positions", "stored"),
    [
        ([(0, 0), (0, 1), (0, 2), (0, LAST), (1, 0), (1, 4)], [0, 1, 2, 3, 4, 5]),
        ([(0, 0), (0, 1), (0, 0), (0, 1), (0, 2)], [0, 1, 4]),
        ([(0, 0), (0, LAST), (1, 0), (0, 1), (0, LAST), (1, 1)], [0, 1, 2, 5]),
        ([(1, HEARTBEAT), (1, HEARTBEAT), (1, 0), (1, HEARTBEAT), (1, 1)], [0, 1, 2, 4]),
        ([(0, 0), None, (0, 0), (0, 1)], [0, 1, 3]),
        ([(0, 0), (2, 5), (1, LAST), (2, 5), (2, 6)], [0, 1, 4]),
    ],
)
def test_what_a_relay_wrote_twice_is_dropped(opened, positions, stored):
    source, reader = opened
    source.open(KafkaPosition("orders", 0, 0))
    reader.polls = [relayed(*positions, first=0)]
    assert offsets(source.read(10, 1)) == stored


def test_a_newer_generation_of_a_relay_goes_before_any_older_position(opened):
    source, reader = opened
    anew = RelayTransaction(2, "mariadb-bin.000001", 4)
    records = relayed((2, LAST), None, (1, 0), first=0)
    give_header(records, 1, ("x", b"1"), (HEADER, RelayPosition(anew, 0).encoded()))
    source.open(KafkaPosition("orders", 0, 0))
    reader.polls = [records]
    assert offsets(source.read(10, 1)) == [0, 1]


def test_the_record_before_the_position_reports_where_the_relay_stood(opened, caplog):
    source, reader = opened
    caplog.set_level("INFO")
    reader.polls = [relayed((1, LAST), (0, 5), (1, 0), first=2), relayed((1, LAST), first=5)]
    # All of it was there before, so nothing comes of it, not even an error or a position.
    assert source.read(10, 0.5) == ()
    reader.polls = [relayed((2, 0), first=6)]
    [entry] = source.read(10, 1)
    assert entry.position.offset == 7
    reported = [r.getMessage() for r in caplog.records if "dropped" in r.getMessage()]
    assert reported == [
        "orders[0]: 3 records from offset 3 on were dropped: a relay had written them before"
    ]


@pytest.mark.parametrize("header", [b"", b"2 1 f.1 4 - 0 0 - 7", b"1 1 f.1 4 - 0 0 - x", None])
def test_a_position_of_another_release_is_an_error_after_what_came_before(opened, header):
    source, reader = opened
    source.open(KafkaPosition("orders", 0, 0))
    records = relayed((0, 0), (0, 1), first=0)
    give_header(records, 1, (HEADER, header))
    reader.polls = [records]
    assert offsets(source.read(10, 1)) == [0]
    with pytest.raises(FatalError, match="not a relay's place"):
        source.read(10, 1)


def test_an_ordinal_that_is_no_number_is_an_error(opened):
    source, reader = opened
    source.open(KafkaPosition("orders", 0, 0))
    records = relayed((0, 0), (0, 1), first=0)
    give_header(records, 1, (HEADER, TRANSACTIONS[0].encoded() + b"two"))
    reader.polls = [records]
    source.read(10, 1)
    with pytest.raises(FatalError, match="not a relay's place"):
        source.read(10, 1)


def rows_of(*numbers, first, table="orders", operation="INSERT"):
    """Rows records at consecutive offsets."""
    return valued(
        *(
            row_record(
                operation,
                [("id", 8)],
                name=f"shop.{table}",
                id=number,
                after=[integer(number)],
                before=[integer(number)] if operation == "UPDATE" else None,
            )
            for number in numbers
        ),
        first=first,
    )


def together(*answers):
    """One answer made of several."""
    return [record for answer in answers for record in answer]


def test_rows_that_follow_each_other_are_one_entry(opened):
    source, reader = opened
    begin = {"first": 3}
    reader.polls = [
        together(
            valued(dts_record("BEGIN"), **begin),
            rows_of(1, 2, first=4),
            rows_of(3, first=6, operation="UPDATE"),
            rows_of(4, first=7, table="items"),
            rows_of(5, first=8),
            valued(dts_record("COMMIT"), first=9),
        )
    ]
    entries = source.read(10, 1)
    assert [(e.table, e.rows, e.position.offset) for e in entries] == [
        ("", 0, 4),
        ("orders", 3, 7),
        ("items", 1, 8),
        ("orders", 1, 9),
        ("", 0, 10),
    ]
    codec = DtsRowCodec()
    run = codec.records(entries[1].payload)
    assert [older for older, _ in run] == [2, 1, 0]
    values = [codec.decode(value, ()).images[0][1] for _, value in run]
    assert values == [(1,), (2,), (3,)]
    assert entries[1].position.record == crc32(run[-1][1])
    assert entries[1].timestamp == entries[1].position.timestamp == 1_700_000_000


def test_what_ends_before_a_full_load_ends_behind_its_last_row(opened):
    source, reader = opened
    rows, loaded = rows_of(1, 2, 3, first=3), rows_of(9, first=6, operation="INIT")
    for polls in ([together(rows, loaded)], [rows, loaded]):
        source.open(KafkaPosition("orders", 0, 3))
        reader.polls, entries = polls, []
        while reader.polls:
            entries += source.read(10, 1)
        positions = [(e.kind, e.rows, e.position.offset) for e in entries]
        assert positions == [
            (EntryKind.ROWS, 3, 6), (EntryKind.COMMIT, 0, 6), (EntryKind.ROWS, 1, 7)
        ]  # fmt: skip


def test_rows_of_a_table_whose_name_is_empty_are_not_lost(opened):
    source, reader = opened
    rows = valued(*(
        row_record("INSERT", [("id", 8)], name=".", id=n, after=[integer(n)]) for n in range(4)
    ), first=3)  # fmt: skip
    reader.polls = [rows[:2], rows[2:]]
    entries = [*source.read(10, 1), *source.read(10, 1)]
    assert [(e.schema, e.table, e.rows, e.position.offset) for e in entries] == [
        ("", "", 2, 5), ("", "", 2, 7)
    ]  # fmt: skip


def test_a_run_ends_where_it_is_long_enough(opened, monkeypatch):
    source, reader = opened
    monkeypatch.setattr(kafka_runs, "MOST_RECORDS", 3)
    reader.polls = [rows_of(*range(8), first=3)]
    assert [e.rows for e in source.read(10, 1)] == [3, 3, 2]
    monkeypatch.setattr(kafka_runs, "MOST_BYTES", 1)
    reader.polls = [rows_of(*range(3), first=11)]
    assert [e.rows for e in source.read(10, 1)] == [1, 1, 1]


def test_rows_before_what_is_no_record_are_given_out(opened):
    source, reader = opened
    reader.polls = [together(rows_of(1, 2, first=3), valued(b"\xff" * 200, first=5))]
    assert [(e.rows, e.position.offset) for e in source.read(10, 1)] == [(2, 5)]
    with pytest.raises(FatalError, match="not a DTS record"):
        source.read(10, 1)


def test_rows_before_a_position_that_nobody_understands_are_given_out(opened):
    source, reader = opened
    answer = rows_of(1, 2, 3, first=3)
    give_header(answer, 2, (HEADER, b"another release"))
    reader.polls = [answer]
    assert [(e.rows, e.position.offset) for e in source.read(10, 1)] == [(2, 5)]
    with pytest.raises(FatalError, match="not a relay's place"):
        source.read(10, 1)


def test_what_a_relay_repeats_is_not_in_a_run(opened):
    source, reader = opened
    answer = rows_of(1, 2, 1, 2, 3, first=3)
    for i, ordinal in enumerate((1, 2, 1, 2, 3)):
        give_header(answer, i, (HEADER, RelayPosition(TRANSACTIONS[0], ordinal).encoded()))
    reader.polls = [answer]
    (entry,) = source.read(10, 1)
    assert (entry.rows, entry.position.offset) == (3, 8)
    assert [older for older, _ in DtsRowCodec().records(entry.payload)] == [4, 3, 0]
