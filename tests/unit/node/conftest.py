"""What tests of a node's HTTP interface share."""

import pytest

from .http_node import Node


@pytest.fixture
def node():
    """A node that leads a pipeline, and answers over HTTP."""
    node = Node()
    node.lead()
    yield node
    node.close()
