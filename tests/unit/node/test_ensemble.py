"""Which servers of ZooKeeper count as lost, and what is said of them."""

import pytest

from arbiter.errors import Contact
from arbiter.servers import Answer, ask
from setl.node.ensemble import after_look, lost_in, seen_of, servers_in
from setl.node.ensemble_watch import EnsembleWatch

THREE = ("zk1:2181", "zk2:2181", "zk3:2181")
ALL = {1, 2, 3}
NONE = set[int]()
NO_SESSION = None


def reported(*history):
    """What is known after looks; each is the set of servers that were silent."""
    looks = ()
    for silent in history:
        names = [f"zk{number}:2181" for number in silent or ()]
        looks = after_look(looks, THREE, names, session=silent is not NO_SESSION)
    return [seen.answers for seen in seen_of(THREE, looks)]


@pytest.mark.parametrize(
    ("history", "known"),
    [
        ([], [None, None, None]),
        ([NONE], [True, True, True]),
        ([{2}], [True, None, True]),
        ([NONE, {2}], [True, True, True]),
        ([{2}, {2}], [True, False, True]),
        ([{2}, NONE, {2}], [True, True, True]),
        ([{2}, {2}, NONE], [True, True, True]),
        ([{2}, {2}, {2, 3}], [True, False, True]),
        ([{2}, {2, 3}, {2, 3}], [True, False, False]),
        # A node that has lost all of them says nothing of one, and restarts.
        ([{2}, {2}, ALL], [None, None, None]),
        ([{2}, {2}, ALL, {2}], [True, None, True]),
        ([{2}, {2}, NO_SESSION], [None, None, None]),
        ([NO_SESSION, {2}], [True, None, True]),
    ],
)
def test_a_server_is_lost_that_is_silent_twice_while_others_answer(history, known):
    assert reported(*history) == known


def said(*lost):
    names = range(1, 4)
    return {"zookeeper": [{"address": f"zk{n}:2181", "answers": n not in lost} for n in names]}


def test_what_nodes_see_is_said_once_of_each_server_with_all_who_see_it():
    answers = {"n2": said(2), "n1": said(2), "n3": said(), "n4": None, "n5": {"contact": "lost"}}
    (lost,) = lost_in(answers)
    assert lost.sentence == (
        "ZooKeeper server zk2:2181 does not answer; n1, n2 see it so; 1 of 3 servers lost:"
        " no more may be lost, or no node can lead"
    )
    assert [each.answers for each in servers_in(answers)] == [True, False, True]


def test_what_no_node_knows_is_neither_lost_nor_well():
    unknown = {"zookeeper": [{"address": "zk1:2181", "answers": None}]}
    assert [each.answers for each in servers_in({"n1": unknown})] == [None]
    assert lost_in({"n1": unknown, "n2": {"zookeeper": []}}) == []


@pytest.mark.parametrize(
    ("servers", "lost", "words"),
    [
        (2, 1, "1 of 2 servers lost: no more may be lost"),
        (3, 2, "2 of 3 servers lost: no more may be lost"),
        (4, 1, "1 of 4 servers lost: no more may be lost"),
        (5, 1, "1 of 5 servers lost: 1 more may be lost"),
        (5, 2, "2 of 5 servers lost: no more may be lost"),
        (7, 1, "1 of 7 servers lost: 2 more may be lost"),
    ],
)
def test_it_says_how_many_more_may_be_lost(servers, lost, words):
    seen = [{"address": f"zk{n}", "answers": n >= lost} for n in range(servers)]
    reported = lost_in({"n1": {"zookeeper": seen}})
    assert len(reported) == lost
    assert all(words in each.sentence and "n1 sees it so" in each.sentence for each in reported)


class Ensemble:
    """Servers that can be silenced, and a node's contact with them."""

    def __init__(self, servers=3):
        self.silent = set[str]()
        self.contact = Contact.CONNECTED
        self.asked = []
        servers = [(f"zk{number}", 2181) for number in range(1, servers + 1)]
        self.watch = EnsembleWatch(servers, lambda: self.contact, self.connects)

    def connects(self, host, port, seconds):
        self.asked.append((host, port, seconds))
        return Answer(host not in self.silent)

    def lost(self):
        return [each.address for each in self.watch.seen() if each.answers is False]


def test_a_node_notices_a_server_that_is_gone_and_that_it_is_back(caplog):
    caplog.set_level("INFO", "setl.node.ensemble_watch")
    ensemble = Ensemble()
    ensemble.silent.add("zk2")
    ensemble.watch.look()
    assert ensemble.lost() == []
    ensemble.watch.look()
    ensemble.watch.look()
    assert ensemble.lost() == ["zk2:2181"]
    ensemble.silent.clear()
    ensemble.watch.look()
    assert ensemble.lost() == []
    assert [record.message for record in caplog.records] == [
        "a ZooKeeper server does not answer",
        "a ZooKeeper server answers again",
    ]
    assert ensemble.asked[:3] == [(f"zk{number}", 2181, 2.0) for number in (1, 2, 3)]


def test_a_node_without_a_session_says_nothing_of_servers():
    ensemble = Ensemble()
    ensemble.silent.add("zk2")
    ensemble.watch.look()
    ensemble.watch.look()
    ensemble.contact = Contact.SUSPENDED
    assert {each.answers for each in ensemble.watch.seen()} == {None}
    ensemble.watch.look()
    ensemble.contact = Contact.CONNECTED
    ensemble.watch.look()
    assert ensemble.lost() == []


def test_a_session_that_is_lost_during_a_look_makes_it_count_for_nothing():
    ensemble = Ensemble()
    ensemble.silent.add("zk2")
    ensemble.watch.look()

    def breaks(host, port, seconds):
        ensemble.contact = Contact.SUSPENDED
        return Answer(host != "zk2")

    ensemble.watch._asks = breaks
    ensemble.watch.look()
    ensemble.contact = Contact.CONNECTED
    assert ensemble.lost() == []


def test_one_server_is_not_looked_at():
    ensemble = Ensemble(servers=1)
    ensemble.watch.start()
    ensemble.watch.look()
    ensemble.watch.stop()
    assert not ensemble.watch._thread.is_alive()
    assert (ensemble.asked, ensemble.watch.seen()) == ([], ())


def test_an_ipv6_address_is_reported_as_people_write_it():
    watch = EnsembleWatch([("::1", 2181), ("zk2", 2181)], lambda: Contact.CONNECTED, ask)
    assert [each.address for each in watch.seen()] == ["[::1]:2181", "zk2:2181"]
