"""What the opposite pipeline tells of conflicts stands in transactions that are dropped."""

import pytest

from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.checkpoint import Checkpoint
from tests.unit.extract.marked_streams import OTHER, OWN, Stream, ToOneTarget, at, mark_row


def passed(mark, *, agrees=True):
    stream = Stream()
    stream.begin()
    if mark is not None:
        stream.mark(mark_row(mark, "1.2.0.3.f00d"))
    stream.row(expected=False)
    stream.row(expected=False, schema="retl", table="setl_recent")
    stream.row(expected=False, schema="retl", table="setl_passed")
    stream.commit()
    extractor = Extractor(ToOneTarget(), MarkIdentity(OWN), stream.codec, agrees=agrees)
    rows = extractor.extract(stream.batch()).rows
    return [(row.entry.table, row.routes[0].index) for row in rows]


def test_rows_about_conflicts_pass_and_the_rest_of_their_transaction_does_not():
    assert passed(OWN) == [("setl_recent", -1)]


@pytest.mark.parametrize("mark", [OTHER, None])
def test_those_of_other_channels_do_not(mark):
    assert passed(mark) == [("orders", 0)]


def test_a_pipeline_without_policies_wants_none():
    assert passed(OWN, agrees=False) == []


def test_they_are_not_applied_again():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OWN, "1.2.0.3.f00d"))
    for _ in range(3):
        stream.row(expected=False, schema="retl", table="setl_recent")
    stream.commit()
    extractor = Extractor(ToOneTarget(), MarkIdentity(OWN), stream.codec, agrees=True)
    extractor.reset(Checkpoint(at(0), applied=at(4)))
    assert [row.entry.position for row in extractor.extract(stream.batch()).rows] == [at(5)]
