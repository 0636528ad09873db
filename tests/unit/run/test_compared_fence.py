"""A fence that is compared with a checkpoint which is kept elsewhere."""

import pytest

from setl.errors import FatalError
from setl.run.checkpoints.compared_fence import ComparedFence


class Fence:
    def __init__(self, *held):
        self.held = list(held)
        self.raised = []

    def look(self):
        return self.held.pop(0) if len(self.held) > 1 else self.held[0]

    def raise_to(self, epoch, nid):
        self.raised.append((epoch, nid))

    def end_writers(self, epoch):
        self.raised.append(epoch)


def compared(fence, stored_by):
    return ComparedFence(
        fence,
        held=fence.look,
        stored_by=lambda: stored_by,
        pipeline="shop/p",
        target="db2:3306",
        sleep=lambda _: None,
    )


@pytest.mark.parametrize(
    ("held", "stored_by"),
    [
        ((None,), 0),  # the first leader ever
        ((7,), 7),
        ((8,), 7),  # a leader that stored nothing
        ((6, 7), 7),  # a member of a cluster that has it a moment later
    ],
)
def test_a_target_as_its_leader_left_it_is_taken_over(held, stored_by):
    fence = Fence(*held)
    compared(fence, stored_by).raise_to(9, "n")
    compared(fence, stored_by).end_writers(9)
    assert fence.raised == [(9, "n"), 9]


@pytest.mark.parametrize(("held", "what"), [(None, "has no fence"), (6, "at epoch 6")])
def test_a_target_from_before_the_checkpoint_is_not(held, what):
    fence = Fence(held)
    with pytest.raises(FatalError, match=f"db2:3306 .*{what}.* under epoch 7"):
        compared(fence, 7).raise_to(9, "n")
    assert fence.raised == []
