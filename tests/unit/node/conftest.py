"""What tests of a node's pipeline controller, and of its HTTP interface, share."""

import pytest

from arbiter import requests
from arbiter.values import ChannelState
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

from .http_node import node  # noqa: F401


@pytest.fixture
def cluster():
    """Where arbiters in memory meet."""
    return MemoryCluster()


@pytest.fixture
def operator(cluster):
    """An operator's arbiter, where the channel `shop` is started."""
    arbiter = MemoryArbiter(cluster)
    arbiter.channels.put("shop", {})
    requests.change_state(arbiter, "shop", ChannelState.START)
    return arbiter
