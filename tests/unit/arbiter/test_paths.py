import pytest

from arbiter.errors import Invalid
from arbiter.paths import Paths, ancestors, checked_name
from arbiter.values import PipelineId

PIPELINE = PipelineId("shop", "orders-to.search_1")


def test_the_tree_is_as_designed():
    paths = Paths.under("/setl")
    below = "/setl/channels/shop/orders-to.search_1"
    assert paths.nodes == "/setl/nodes"
    assert paths.node("n1") == "/setl/nodes/n1"
    assert paths.channels == "/setl/channels"
    assert paths.channel("shop") == "/setl/channels/shop"
    assert paths.pipeline(PIPELINE) == below
    assert paths.leader_lock(PIPELINE) == f"{below}/mainstem"
    assert paths.position(PIPELINE) == f"{below}/position"
    assert paths.signals(PIPELINE) == f"{below}/signals"
    assert paths.history(PIPELINE) == f"{below}/history"


@pytest.mark.parametrize(
    ("root", "nodes"), [("/", "/nodes"), ("/setl/", "/setl/nodes"), ("/a/b-c", "/a/b-c/nodes")]
)
def test_roots(root, nodes):
    assert Paths.under(root).nodes == nodes


@pytest.mark.parametrize(
    "root", ["", "setl", "/a//b", "/a/../b", "/zookeeper", "/zookeeper/x", "/a b"]
)
def test_roots_that_are_none(root):
    with pytest.raises(Invalid):
        Paths.under(root)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/", "a b", "a\n", "ü", "a:b", "x" * 129, "a\0"]
)
def test_names_that_are_refused(name):
    with pytest.raises(Invalid, match="not a channel name"):
        checked_name(name, "channel")


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 128, "leader_lock", "zookeeper"])
def test_names_that_are_taken(name):
    assert checked_name(name, "channel") == name


def test_ancestors():
    assert ancestors("/a/b/c") == ["/a", "/a/b"]
    assert ancestors("/a") == []
