"""What tests of elections, and of what operators ask for, share."""

import pytest

from arbiter.values import ChannelState
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

from .elected_node import Node, set_state


@pytest.fixture
def cluster():
    """Where arbiters in memory meet."""
    return MemoryCluster()


@pytest.fixture
def operator(cluster):
    """An operator's arbiter, where the channel `shop` is started."""
    arbiter = MemoryArbiter(cluster)
    arbiter.channels.put("shop", {})
    set_state(arbiter, ChannelState.START)
    return arbiter


@pytest.fixture
def n1(cluster, operator):
    """A node that may lead."""
    return Node(cluster, "n1")


@pytest.fixture
def n2(cluster, operator):
    """Another one."""
    return Node(cluster, "n2")
