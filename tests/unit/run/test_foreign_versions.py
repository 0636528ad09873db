"""Versions that no write of a pipeline can have are told from those of its own later writes."""

import pytest

from setl.errors import FatalError
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition, KafkaPosition, Position, document_version
from setl.run.targets.foreign_versions import ForeignVersions
from tests.loading import ticket_for

END = BinlogPosition("binlog.000007", 5_000)
HERE = document_version(2, BinlogPosition("binlog.000005", 4))


def met(held, latest: Position = END):
    ticket = ticket_for("p", through=HERE)
    versions = ForeignVersions(lambda ticket: ticket.version_of(latest))
    versions.check(ticket, Loaded(stale=3, held=held))


@pytest.mark.parametrize(
    "held",
    [
        0,
        HERE,
        document_version(1, BinlogPosition("binlog.000900", 4)),
        document_version(2, END),
        document_version(2, END) + 100,  # somebody has edited the document a hundred times
    ],
)
def test_what_a_former_leader_has_written_is_left_alone(held):
    met(held)


@pytest.mark.parametrize(
    ("held", "generation"),
    [
        (document_version(2, BinlogPosition("binlog.000008", 4)), 3),
        (document_version(2, BinlogPosition("binlog.000007", 9_000_000)), 3),
        (document_version(5, BinlogPosition("binlog.000001", 4)), 6),
    ],
)
def test_what_is_above_the_end_of_the_source_is_not_its_own(held, generation):
    with pytest.raises(FatalError, match=f"refused 3 writes .* for version {held}") as raised:
        met(held)
    assert f"`generation: {generation}`" in raised.value.hint


def test_above_the_last_generation_the_index_has_to_go():
    with pytest.raises(FatalError) as raised:
        met(document_version(2_047, BinlogPosition("binlog.000001", 4)))
    assert "generation" not in raised.value.hint
    assert "delete the index" in raised.value.hint


def test_a_subscription_meets_versions_of_the_binlog_that_it_has_taken_the_position_of():
    end = KafkaPosition("topic", 0, 7)
    ticket = ticket_for("p", through=document_version(1, KafkaPosition("topic", 0, 5)))
    versions = ForeignVersions(lambda ticket: ticket.version_of(end))
    versions.check(ticket, Loaded(stale=1, held=document_version(1, end)))
    with pytest.raises(FatalError):
        versions.check(ticket, Loaded(stale=1, held=document_version(1, END)))
