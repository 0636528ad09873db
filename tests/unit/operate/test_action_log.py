"""What the log of actions says of commands that were broken off."""

import pytest

from arbiter.requests import Requester
from setl.operate.action_log import recorded
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("asked for: all tables", "asked for: all tables; nobody waited for the end"),
        ("", "ended before it was done"),
    ],
)
def test_what_was_asked_for_is_reported_though_nobody_waited(asked, stored):
    arbiter = MemoryArbiter(MemoryCluster())

    def broken_off():
        with recorded(arbiter, Requester("anna@db1", 1.0), "load", "shop/ab") as entry:
            entry.outcome = asked
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    (action,) = arbiter.actions.all()
    assert action.outcome == stored
