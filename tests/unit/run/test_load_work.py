"""How a load is cut for its tasks."""

import pytest

from setl.run.runners.work import insert_partitions, pieces
from setl.transform.work import WorkItem

ITEM_BYTES = 16 * 1024


def items(count, size=ITEM_BYTES):
    return [WorkItem((0,), n, (), bytes(size), ("shop", "orders")) for n in range(count)]


@pytest.mark.parametrize("count", [1, 5, 16, 63, 64, 65, 127, 128, 1000])
@pytest.mark.parametrize("tasks", [1, 2, 3, 8])
def test_a_cut_holds_every_item_once_and_in_order(count, tasks):
    for cut in (insert_partitions(items(count), tasks), pieces(items(count))):
        assert [item.version for part in cut for item in part] == list(range(count))
        assert all(cut)


def test_stretches_are_about_equal():
    assert [len(insert_partition) for insert_partition in insert_partitions(items(100), 3)] == [
        34,
        33,
        33,
    ]


def test_a_large_item_leaves_fewer_stretches():
    large = items(1, 100 * ITEM_BYTES)
    assert [
        len(insert_partition) for insert_partition in insert_partitions([*large, *items(10)], 4)
    ] == [1, 10]


@pytest.mark.parametrize(
    ("count", "cut"), [(1, [1]), (127, [127]), (128, [64, 64]), (400, [100] * 4)]
)
def test_a_large_insert_partition_has_up_to_four_pieces(count, cut):
    assert [len(piece) for piece in pieces(items(count))] == cut
