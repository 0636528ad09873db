from itertools import product

import pytest

from setl.extract.loopback import (
    DROPPING,
    OUTSIDE,
    PASSING,
    Mark,
    MarkIdentity,
    after_entry,
    after_mark,
    read_mark,
)
from setl.model.change import ABSENT, Op
from setl.model.entry import EntryKind
from setl.model.schema import Column, Kind, RowSchema
from tests.unit.extract.marked_streams import MARK_SCHEMA, OTHER, OWN, OWN_INFO, mark_row

ME = MarkIdentity(OWN, OWN_INFO)
CLEARED = mark_row(0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # The mark that stands first.
        (CLEARED, mark_row(OWN), Mark.LOOPBACK),
        (None, mark_row(OWN, "1.1.0.a"), Mark.LOOPBACK),
        (CLEARED, mark_row(OTHER), Mark.FOREIGN),
        (CLEARED, mark_row(OTHER, OWN_INFO), Mark.LOOPBACK),
        (CLEARED, mark_row(None, OWN_INFO), Mark.LOOPBACK),
        # Dropped by everybody, whosever number it has.
        (CLEARED, mark_row(OTHER, "shop_SYNC"), Mark.LOOPBACK),
        (CLEARED, mark_row(OTHER, "shop_sync"), Mark.LOOPBACK),
        (CLEARED, mark_row(None, "_SYNC"), Mark.LOOPBACK),
        (CLEARED, mark_row(OTHER, "SYNC"), Mark.FOREIGN),
        (CLEARED, mark_row(OTHER, "_SYNC.1"), Mark.FOREIGN),
        # The end mark: only there does the before image speak.
        (mark_row(OWN), CLEARED, Mark.LOOPBACK_END),
        (mark_row(OWN), mark_row(None), Mark.LOOPBACK_END),
        (mark_row(OWN), mark_row(ABSENT, ABSENT), Mark.LOOPBACK),
        (mark_row(77, OWN_INFO), CLEARED, Mark.LOOPBACK_END),
        (mark_row(77, "x_SYNC"), CLEARED, Mark.LOOPBACK_END),
        (mark_row(77, "x_SYNC"), mark_row(0, ""), Mark.LOOPBACK_END),
        (mark_row(OTHER), CLEARED, Mark.NONE),
        # A number used by one channel after another: the row of the last transaction is past.
        (mark_row(OWN, "1.1.0.a"), mark_row(OTHER, "2.5.0.b"), Mark.FOREIGN),
        (mark_row(OTHER, "2.5.0.b"), mark_row(OWN, "1.2.0.c"), Mark.LOOPBACK),
        (mark_row(0, "x_SYNC"), mark_row(OTHER, "2.5.0.b"), Mark.FOREIGN),
        # Nothing said.
        (None, CLEARED, Mark.NONE),
        (None, mark_row(None), Mark.NONE),
        (None, mark_row(ABSENT, ABSENT), Mark.NONE),
        (mark_row(ABSENT, ABSENT), mark_row(ABSENT, "1.1.0.a"), Mark.NONE),
        (CLEARED, mark_row(""), Mark.NONE),
        (CLEARED, mark_row("no number"), Mark.NONE),
        (mark_row(None), mark_row(str(OWN)), Mark.LOOPBACK),
        # An image that leaves out what did not change.
        (mark_row(OWN, "1.1.0.a"), mark_row(ABSENT, "1.2.0.b"), Mark.LOOPBACK),
        (mark_row(OTHER, "1.1.0.a"), mark_row(ABSENT, "1.2.0.b"), Mark.FOREIGN),
    ],
)
def test_a_mark_row_is_read(before, after, expected):
    op = Op.INSERT if before is None else Op.UPDATE
    assert read_mark(ME, MARK_SCHEMA, op, before, after) is expected


def test_a_removed_mark_row_says_nothing():
    assert read_mark(ME, MARK_SCHEMA, Op.DELETE, mark_row(OWN, "a_SYNC"), None) is Mark.NONE


@pytest.mark.parametrize("channel_id", [0, None, ABSENT, "", OTHER])
def test_a_channel_without_marks_has_no_own_ones(channel_id):
    nobody = MarkIdentity(None)
    assert read_mark(nobody, MARK_SCHEMA, Op.UPDATE, CLEARED, mark_row(channel_id)) in (
        Mark.NONE,
        Mark.FOREIGN,
    )
    assert read_mark(nobody, MARK_SCHEMA, Op.UPDATE, mark_row(channel_id), CLEARED) is Mark.NONE
    synced = mark_row(channel_id, "a_SYNC")
    assert read_mark(nobody, MARK_SCHEMA, Op.UPDATE, CLEARED, synced) is Mark.LOOPBACK


def test_columns_may_stand_anywhere_and_be_missing():
    only_id = RowSchema(
        "RETL", "RETL_MARK", (Column("channel_id", Kind.INTEGER), Column("id", Kind.INTEGER)), (1,)
    )
    assert read_mark(ME, only_id, Op.UPDATE, (0, 5), (OWN, 5)) is Mark.LOOPBACK
    assert read_mark(ME, only_id, Op.UPDATE, (OWN, 5), (0, 5)) is Mark.LOOPBACK_END
    only_info = RowSchema("retl", "retl_mark", (Column("Channel_Info", Kind.TEXT),))
    assert read_mark(ME, only_info, Op.INSERT, None, ("a_SYNC",)) is Mark.LOOPBACK
    assert read_mark(ME, only_info, Op.INSERT, None, ("a",)) is Mark.NONE


def test_entries_open_and_close_transactions():
    for state in (OUTSIDE, PASSING, DROPPING):
        assert after_entry(state, EntryKind.BEGIN) == PASSING
        assert after_entry(state, EntryKind.COMMIT) == OUTSIDE
        assert after_entry(state, EntryKind.DDL) == OUTSIDE
        assert after_entry(state, EntryKind.HEARTBEAT) == state
    assert after_entry(OUTSIDE, EntryKind.ROWS) == PASSING
    assert after_entry(PASSING, EntryKind.ROWS) == PASSING
    assert after_entry(DROPPING, EntryKind.ROWS) == DROPPING


def test_marks_rule_from_where_they_stand():
    expected = {
        (OUTSIDE, Mark.LOOPBACK): DROPPING,
        (PASSING, Mark.LOOPBACK): DROPPING,
        (DROPPING, Mark.LOOPBACK): DROPPING,
        (OUTSIDE, Mark.FOREIGN): PASSING,
        (PASSING, Mark.FOREIGN): PASSING,
        (DROPPING, Mark.FOREIGN): PASSING,
        # Nothing follows an end mark in its transaction.
        (OUTSIDE, Mark.LOOPBACK_END): DROPPING,
        (PASSING, Mark.LOOPBACK_END): DROPPING,
        (DROPPING, Mark.LOOPBACK_END): OUTSIDE,
        (OUTSIDE, Mark.NONE): PASSING,
        (PASSING, Mark.NONE): PASSING,
        (DROPPING, Mark.NONE): DROPPING,
    }
    assert {
        pair: after_mark(*pair) for pair in product((OUTSIDE, PASSING, DROPPING), Mark)
    } == expected
