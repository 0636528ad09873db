"""How a load is cut for its tasks."""

import pytest

from setl.channel.mark_ids import MAX_SLOTS
from setl.run.load_work import staggered, stretches
from setl.transform.work import WorkItem

ITEM_BYTES = 16 * 1024


def items(count):
    return [WorkItem((0,), n, (), bytes(ITEM_BYTES), ("shop", "orders")) for n in range(count)]


@pytest.mark.parametrize("count", [1, 5, 16, 63, 64, 65, 127, 128, 1000])
@pytest.mark.parametrize("tasks", [1, 2, 3, 8])
def test_stretches_hold_every_item_once_and_in_order(count, tasks):
    for cut in (stretches(items(count), tasks), staggered(items(count), tasks)):
        assert [item.version for stretch in cut for item in stretch] == list(range(count))
        assert all(cut)


def test_a_small_load_is_cut_once_for_each_task():
    assert [len(stretch) for stretch in staggered(items(16), 2)] == [8, 8]


def test_a_large_load_has_several_stretches_for_each_task_and_the_first_ones_differ():
    assert [len(stretch) for stretch in staggered(items(70), 2)] == [10, 20, 20, 20]
    lengths = [len(stretch) for stretch in staggered(items(1000), 2)]
    assert lengths[0] == pytest.approx(lengths[1] / 2, abs=1)
    assert len(lengths) == 8


def test_no_more_stretches_than_there_are_marks():
    assert 700 < len(staggered(items(40_000), 400)) <= MAX_SLOTS
