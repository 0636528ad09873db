from collections import defaultdict

import pytest

from arbiter.errors import Unreachable
from arbiter.paths import Paths
from arbiter.session.watching import TreeWatch


class Tree:
    """Watched reads over a set of paths; watches fire once, as ZooKeeper's do."""

    def __init__(self):
        self.paths = set()
        self.children_watches = defaultdict(list)
        self.data_watches = defaultdict(list)
        self.fails = False
        self.reads = 0
        self.before_answer = lambda: None

    def children_watched(self, path, fired):
        self._read()
        if path not in self.paths:
            return None
        self.children_watches[path].append(fired)
        names = [p.rpartition("/")[2] for p in self.paths if p.rpartition("/")[0] == path]
        self.before_answer()
        return names

    def exists_watched(self, path, fired):
        self._read()
        self.data_watches[path].append(fired)
        return path in self.paths

    def _read(self):
        self.reads += 1
        if self.fails:
            raise Unreachable("no answer")

    def add(self, path):
        self.paths.add(path)
        self.fire(self.data_watches, path)
        self.fire(self.children_watches, path.rpartition("/")[0])

    def remove(self, path):
        self.paths.discard(path)
        self.fire(self.data_watches, path)
        self.fire(self.children_watches, path)
        self.fire(self.children_watches, path.rpartition("/")[0])

    def fire(self, watches, path):
        for fired in watches.pop(path, []):
            fired(None)

    def watches(self):
        return sum(map(len, self.data_watches.values())) + sum(
            map(len, self.children_watches.values())
        )


@pytest.fixture
def tree():
    tree = Tree()
    tree.paths |= {"/s", "/s/channels", "/s/channels/c", "/s/channels/c/p"}
    return tree


@pytest.fixture
def stirs():
    return []


@pytest.fixture
def watch(tree, stirs):
    return TreeWatch(Paths.under("/s"), tree, lambda: stirs.append(1))


def test_channels_and_leader_locks_are_watched(tree, watch, stirs):
    watch.arm()
    assert watch.complete
    assert set(tree.children_watches) == {"/s/channels", "/s/channels/c"}
    assert set(tree.data_watches) == {
        "/s/channels/c",
        "/s/channels/c/p/mainstem",
        "/s/channels/c/p/signals",
        "/s/epoch",
        "/s/nodes",
    }
    assert watch.armed == 7
    assert not stirs


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.add("/s/channels/c/p/mainstem"),
        lambda tree: tree.add("/s/channels/new"),
        lambda tree: tree.add("/s/channels/c/q"),
        lambda tree: tree.add("/s/channels/c/p/signals"),
        lambda tree: tree.fire(tree.data_watches, "/s/channels/c"),
        lambda tree: tree.remove("/s/channels/c"),
        lambda tree: tree.add("/s/epoch"),
        lambda tree: tree.add("/s/nodes"),
    ],
)
def test_whatever_fires_is_armed_again(tree, watch, stirs, change):
    watch.arm()
    change(tree)
    assert stirs
    assert not watch.complete
    watch.arm()
    assert watch.complete
    stirs.clear()
    tree.add("/s/channels/another")
    assert stirs


def test_every_signal_is_noticed(tree, watch, stirs):
    tree.add("/s/channels/c/p/signals")
    for n in range(3):
        watch.arm()
        stirs.clear()
        tree.add(f"/s/channels/c/p/signals/signal-{n}")
        assert stirs


def test_only_what_fired_is_read_again(tree, watch):
    watch.arm()
    tree.add("/s/channels/c/p/mainstem")
    before = tree.reads
    watch.arm()
    assert tree.reads == before + 1
    assert tree.watches() == 7


def test_a_tree_that_is_not_there_yet(watch, stirs):
    tree = watch._reads
    tree.paths.clear()
    watch.arm()
    assert watch.complete
    tree.add("/s/channels")
    assert stirs
    watch.arm()
    stirs.clear()
    tree.add("/s/channels/c")
    assert stirs


def test_a_tree_that_comes_between_two_reads(watch, stirs):
    tree = watch._reads
    tree.paths.clear()
    exists = tree.exists_watched

    def comes(path, fired):
        tree.paths |= {"/s/channels", "/s/channels/c"}
        return exists(path, fired)

    tree.exists_watched = comes
    watch.arm()
    stirs.clear()
    tree.add("/s/channels/d")
    assert stirs


def test_a_watch_that_fires_before_its_answer_is_looked_at(tree, watch, stirs):
    def change():
        tree.before_answer = lambda: None
        tree.add("/s/channels/new")

    tree.before_answer = change
    watch.arm()
    assert stirs
    assert not watch.complete
    watch.arm()
    assert ("data", "/s/channels/new") in watch._armed


def test_a_new_connection_arms_everything_again(tree, watch, stirs):
    watch.arm()
    tree.children_watches.clear()
    tree.data_watches.clear()
    watch.forget()
    assert stirs
    assert not watch.complete
    watch.arm()
    assert tree.watches() == 7


def test_watches_of_an_earlier_connection_mean_nothing(tree, watch, stirs):
    watch.arm()
    old = [*tree.data_watches["/s/channels/c"]]
    watch.forget()
    watch.arm()
    stirs.clear()
    old[0](None)
    assert not stirs
    assert watch.complete


def test_a_connection_that_is_lost_while_arming(tree, watch, stirs):
    def lose():
        tree.before_answer = lambda: None
        watch.forget()

    tree.before_answer = lose
    watch.arm()
    assert not watch.complete
    tree.children_watches.clear()
    tree.data_watches.clear()
    watch.arm()
    assert watch.complete
    assert tree.watches() == 7


def test_a_failed_read_is_tried_again(tree, watch):
    tree.fails = True
    with pytest.raises(Unreachable):
        watch.arm()
    assert not watch.complete
    assert watch.armed == 0
    tree.fails = False
    watch.arm()
    assert watch.complete


def test_what_is_gone_is_forgotten(tree, watch):
    for n in range(50):
        tree.add(f"/s/channels/c{n}")
        watch.arm()
        tree.remove(f"/s/channels/c{n}")
        watch.arm()
    assert watch.armed == 7


def test_news_are_reported_once_all_is_armed_and_differ_with_every_change(tree, watch):
    tree.paths |= {"/s/nodes", "/s/nodes/n1", "/s/channels/c/p/signals"}
    tree.paths |= {"/s/channels/c/p/signals/signal-1"}
    assert watch.news is None
    watch.arm()
    changes = (
        lambda: tree.add("/s/nodes/n2"),
        lambda: tree.fire(tree.data_watches, "/s/nodes/n1"),
        lambda: tree.remove("/s/nodes/n1"),
        lambda: tree.add("/s/epoch"),
        lambda: tree.fire(tree.data_watches, "/s/epoch"),
        lambda: tree.fire(tree.data_watches, "/s/channels/c/p/signals/signal-1"),
        watch.forget,
    )
    for change in changes:
        before = watch.news
        assert before is not None
        change()
        assert watch.news is None  # nothing would tell of the next change
        watch.arm()
        assert watch.news not in (None, before)


def test_there_are_no_news_while_watches_are_being_armed(tree, watch):
    seen = []
    tree.before_answer = lambda: seen.append(watch.news)
    watch.arm()
    assert seen
    assert set(seen) == {None}


def test_what_this_session_changes_is_news_before_its_watch_fires(watch):
    watch.arm()
    before = watch.news
    watch.touched()
    assert watch.news not in (None, before)


def test_news_stay_the_same_while_nothing_changes(watch):
    watch.arm()
    before = watch.news
    watch.arm()
    assert watch.news == before


@pytest.mark.parametrize(
    ("path", "news"),
    [
        ("", True),
        ("/s/epoch", True),
        ("/s/nodes/n1", True),
        ("/s/channels/c", True),
        ("/s/channels/d", True),
        ("/s/channels/c/q", True),
        ("/s/channels/c/p/mainstem", True),
        ("/s/channels/c/p/signals", True),
        ("/s/channels/c/p/signals/s-", True),
        ("/s/channels/c/p/checkpoint", False),
        ("/s/channels/c/p/history/h-", False),
        ("/s/actions/a-", False),
    ],
)
def test_what_this_session_changes_is_news_if_a_decision_depends_on_it(watch, path, news):
    watch.touched(path)
    assert watch.news is None
    watch.arm()
    before = watch.news
    watch.touched(path)
    assert (watch.news != before) is news


def test_everything_is_news_while_watches_are_being_armed(tree, watch):
    watch.arm()
    before = watch.news
    tree.remove("/s/channels/c/p")
    assert watch.news is None
    watch.touched("/s/channels/c/p/checkpoint")
    watch.arm()
    assert watch.news > before + 1
