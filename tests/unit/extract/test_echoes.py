"""Echoes are counted: those that are dropped, and those that somebody's meddling lets through."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.reading import parse_channel
from setl.channel.relations.mark_ids import WRITER_BITS, channel_writers, writer_number
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.systems.mysql.stored.marks import mark_id
from tests.unit.channel.channels import ONE_WAY
from tests.unit.extract.marked_streams import (
    OTHER,
    OWN,
    OWN_INFO,
    Stream,
    ToOneTarget,
    mark_row,
    marked_streams,
)

WRITER = 5
ME = MarkIdentity(OWN, OWN_INFO, frozenset({WRITER}))


def own_row(channel_id, info="3.17.0.9.f00d"):
    return (WRITER << WRITER_BITS | 3, channel_id, info, "extra")


def echoes(stream, size=None, identity=ME):
    """(dropped, passed) over batches of a size."""
    extractor, dropped, passed = Extractor(ToOneTarget(), identity, stream.codec), 0, 0
    for start in range(0, len(stream.entries), size or len(stream.entries)):
        stop = start + (size or len(stream.entries))
        counts = extractor.extract(stream.batch(start, stop)).counts
        dropped, passed = dropped + counts.echoes_dropped, passed + counts.echoes_replicated
    return dropped, passed


def transaction(stream, *marks, before=0, after=2):
    stream.begin()
    for _ in range(before):
        stream.row(expected=True)
    for mark in marks:
        stream.mark(mark)
    for _ in range(after):
        stream.row(expected=False)
    stream.commit()


@pytest.fixture
def stream():
    return Stream()


@pytest.mark.parametrize("size", [None, 1, 2])
def test_transactions_of_loaders_are_dropped_and_counted(stream, size):
    transaction(stream, own_row(OWN))
    transaction(stream, mark_row(OTHER))
    transaction(stream, mark_row(OWN))
    transaction(stream)
    transaction(stream, mark_row(None, "x_SYNC"))
    assert echoes(stream, size) == (3, 0)


def test_a_mark_that_comes_after_rows_has_let_them_pass(stream):
    transaction(stream, own_row(OWN), before=1)
    assert echoes(stream) == (0, 1)
    # However the batches are cut, and once however many marks follow.
    transaction(stream, own_row(OWN), own_row(OWN, "3.18.0.9.f00d"), before=2)
    assert echoes(stream, 1) == (0, 2)


def test_a_mark_at_the_very_end(stream):
    transaction(stream, own_row(OWN), before=3, after=0)
    # As Otter ends a transaction whose first mark the server has not logged.
    stream.begin()
    stream.row(expected=True)
    stream.mark(mark_row(0), before=mark_row(OWN))
    stream.commit()
    assert echoes(stream) == (0, 2)


def test_rows_of_the_transaction_before_are_none_of_this_one(stream):
    transaction(stream)
    transaction(stream, own_row(OWN))
    stream.add(EntryKind.DDL, schema="shop", statement="ALTER TABLE orders ADD x INT")
    stream.mark(own_row(OWN))
    stream.row(expected=False, schema="other")
    assert echoes(stream) == (2, 0)


@pytest.mark.parametrize("changed", [None, 0, OTHER])
def test_a_writer_of_this_channel_whose_number_is_changed(stream, changed):
    # As a trigger at the server does it.
    transaction(stream, own_row(changed))
    assert echoes(stream) == (0, 1)
    assert echoes(stream, identity=replace(ME, writers=frozenset())) == (0, 0)


def test_a_row_of_the_mark_table_that_is_removed_reports_nothing(stream):
    stream.begin()
    stream.mark(None, before=own_row(OWN), op=Op.DELETE)
    stream.row(expected=True)
    assert echoes(stream) == (0, 0)


@given(marked_streams(), st.integers(1, 9))
def test_loaders_and_users_let_no_echo_pass(stream, size):
    # Begins and commits that are left out make a new transaction look like the rest of one.
    whole = all(e.kind is not EntryKind.ROWS or e.table != "retl_mark" or i == 0
                or stream.entries[i - 1].kind is EntryKind.BEGIN
                for i, e in enumerate(stream.entries))  # fmt: skip
    assert not whole or echoes(stream, size)[1] == 0


def test_the_writers_of_a_channel_are_known_by_the_rows_that_they_use():
    file = parse_channel(ONE_WAY)
    assert channel_writers(file) == {writer_number("shop/p")}
    assert {mark_id("shop/p", slot) >> WRITER_BITS for slot in (0, 7, 1023)} == channel_writers(
        file
    )
