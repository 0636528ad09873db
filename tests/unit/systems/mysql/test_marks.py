import pytest

from setl.channel.relations.mark_ids import MAX_SLOTS
from setl.errors import ConfigurationError
from setl.systems.mysql.stored.marks import mark_id, mark_info, through_of
from tests.loading import ticket_for


def test_every_writer_of_a_pipeline_has_a_mark_of_its_own():
    ids = {mark_id(p, s) for p in ("shop/a-to-b", "shop/b-to-a") for s in range(MAX_SLOTS)}
    assert len(ids) == 2 * MAX_SLOTS
    assert all(0 <= i < 2**63 for i in ids)
    # It survives a new version: two writers on one id would wait for each other.
    assert mark_id("shop/a-to-b", 3) == 114991313923


@pytest.mark.parametrize("slot", [-1, MAX_SLOTS])
def test_a_slot_that_does_not_fit_is_refused(slot):
    with pytest.raises(ConfigurationError, match="one too many"):
        mark_id("shop/a-to-b", slot)


def test_the_text_fits_its_column_and_never_reads_as_a_foreign_mark():
    ticket = ticket_for("p", epoch=2**64 - 1, batch_id=2**63, slot=MAX_SLOTS - 1, through=2**63 - 1)
    info = mark_info(ticket, "f" * 16)
    assert len(info) <= 128
    assert not info.upper().endswith("_SYNC")
    assert through_of(info) == 2**63 - 1


@pytest.mark.parametrize(
    "info", [None, "", "anything", "1.2.3.x.n", "1.2.3", "a_SYNC", "1.2.3.-4.n"]
)
def test_a_text_of_somebody_else_says_nothing(info):
    assert through_of(info) == 0
