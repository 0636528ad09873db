"""Rows found by column, against what the decoder of rows says of the same events."""

import pickle
import struct
from random import Random

import numpy as np
import pytest

from setl.codec.binlog.columns import finding
from setl.codec.binlog.columns.finding import find_rows
from setl.codec.binlog.event import DELETES, UPDATES
from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.images import UnfitRowsError
from setl.errors import DataError
from tests.unit.codec.binlog_tables import changes, has_readable_values, image, table_of, written

TABLES = 1_500


def found_rows(table, payload):
    found = find_rows(table.form, [(0, payload)])
    return found, ColumnRows(found, found.starts)


@pytest.fixture(params=["lockstep", "loop", "both"], autouse=True)
def way(request, monkeypatch):
    least = {"lockstep": 1, "loop": 1 << 30, "both": 4}[request.param]
    monkeypatch.setattr(finding, "_LEAST_EVENTS", least)


def test_rows_lie_where_the_decoder_of_rows_finds_them():
    for seed in range(TABLES):
        table = table_of(Random(seed))
        changed = changes(table)
        events = written(table, changed)
        found, rows = found_rows(table, b"".join(events))
        if not has_readable_values(rows):
            with pytest.raises(DataError):
                table.images(events)
            continue
        expected = table.images(events)
        assert repr(list(rows)) == repr(expected), seed
        kinds = [kind for kind, images in changed for _ in images]
        assert found.updated[found.events].tolist() == [kind in UPDATES for kind in kinds], seed
        assert found.deleted[found.events].tolist() == [kind in DELETES for kind in kinds], seed
        for i in range(len(table.columns)):
            nulls = rows.values.nulls.get(i, np.zeros(len(rows), bool)).tolist()
            assert nulls == [row[i] is None for row in expected], seed
            if table.layout.columns[i].size < 0:
                lengths = found.values.spans(i).lengths
                assert (lengths >= 0).all()
                assert not lengths[nulls].any()


def test_rows_are_a_sequence():
    table = table_of(Random(5))
    changed = [(30, [image(table, key=key, odd=0) for key in range(5)])]
    events = written(table, changed)
    _, rows = found_rows(table, b"".join(events))
    expected = table.images(events)
    assert (len(rows), rows[1:], rows[::2]) == (5, expected[1:], expected[::2])
    assert (rows[0], rows[-1], rows[-5]) == (expected[0], expected[-1], expected[-5])
    for index in (5, -6):
        with pytest.raises(IndexError):
            rows[index]
    assert rows == expected
    assert rows.picked([1, 0, 1]).picked([0, 1]) == [(row[1], row[0]) for row in expected]


def test_rows_are_chosen_joined_and_sent_as_bytes():
    for seed in range(TABLES // 5):
        pick = Random(seed)
        table = table_of(pick)
        parts, expected = [], []
        for _ in range(1 + pick.randrange(3)):
            changed = changes(table, kinds=(23, 30), odd=0.01)
            events = written(table, changed)
            part = found_rows(table, b"".join(events))[1]
            if not has_readable_values(part):
                continue
            parts.append(part)
            expected += list(part)
        if not parts:
            continue
        picks = pick.choice([None, pick.choices(range(len(table.columns)), k=3)])
        if picks is not None:
            parts = [part.picked(picks) for part in parts]
            expected = [tuple(row[i] for i in picks) for row in expected]
        rows = parts[0].joined(parts[1:])
        assert rows is not None
        assert repr(rows) == repr(expected)
        for chosen in (sorted, list):
            numbers = chosen(pick.sample(range(len(rows)), pick.randrange(len(rows) + 1)))
            taken, wanted = rows.taken(numbers), [expected[i] for i in numbers]
            again = pickle.loads(pickle.dumps(taken))
            assert type(again) is ColumnRows
            assert repr(taken) == repr(again) == repr(wanted), seed
            assert len(pickle.dumps(taken)) < len(pickle.dumps(table.context)) + 400 + sum(
                stop - start + 4
                for start, stop in zip(taken.starts, taken.values.stops, strict=True)
            )
            for i in range(len(expected[0])):
                assert repr(again.values_at(i)) == repr([row[i] for row in wanted]), seed


def test_rows_of_other_tables_are_not_joined():
    tables = [table_of(Random(seed)) for seed in range(2)]
    one, other = (
        found_rows(table, b"".join(written(table, changes(table, odd=0))))[1] for table in tables
    )
    assert one.joined([other]) is None
    assert one.joined([one.picked([0])]) is None


def test_damaged_bytes_are_refused_or_read_as_the_decoder_of_rows_reads_them():
    refused = 0
    for seed in range(TABLES):
        pick = Random(seed)
        table = table_of(pick)
        payload = bytearray(b"".join(written(table, changes(table))))
        for _ in range(1 + pick.randrange(3)):
            at = pick.randrange(len(payload) or 1)
            match pick.randrange(4):
                case 0:
                    payload[at : at + 1] = pick.choice([b"\0", b"\1", b"\x7f", b"\xfb", b"\xff"])
                case 1:
                    payload[at : at + 4] = struct.pack("<I", pick.getrandbits(32))
                case 2:
                    del payload[at:]
                case _:
                    payload[at:at] = pick.randbytes(pick.randrange(6))
        refused += is_refused_or_right(table, bytes(payload))
    assert TABLES // 4 < refused < TABLES


def is_refused_or_right(table, payload):
    try:
        _, rows = found_rows(table, payload)
    except UnfitRowsError as error:
        return 0 <= error.position <= len(payload)
    records = [event for _, event in table.codec.records(payload)]
    if not has_readable_values(rows):
        with pytest.raises(DataError):
            table.images(records)
        return True
    assert repr(list(rows)) == repr(table.images(records))
    return False


def test_one_event_of_many_rows_beside_many_events_is_bounded_in_memory():
    table = table_of(Random(1), types=[(1, b"")], most=0)
    row = b"\0" + struct.pack("<i", 7)
    events = [table.writer.rows(23, 1, [row]) for _ in range(100)]
    events.append(table.writer.rows(23, 1, [row] * 50_000))
    found, _ = found_rows(table, b"".join(events))
    assert len(found.starts) == 50_100
