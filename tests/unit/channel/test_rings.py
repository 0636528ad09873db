"""Channels whose changes would go round."""

import pytest

from setl.channel.relations.rings import of_unknown_database, ring_through


def pipeline(source, target, *tables, name="p"):
    def end(given):
        return given if isinstance(given, dict) else {"type": "mysql", "host": given, "user": "u"}

    entries = [t if isinstance(t, dict) else {"from": t} for t in tables or ("s.*",)]
    return {"name": name, "source": end(source), "target": end(target), "tables": entries}


def channel(name, *pipelines, **more):
    return {"channel": name, "pipelines": list(pipelines), **more}


def one_way(name, source, target, *tables):
    return channel(name, pipeline(source, target, *tables, name="there"))


def two_way(name, a, b, *tables, **more):
    there = pipeline(a, b, *tables, name="there")
    return channel(name, there, pipeline(b, a, *tables, name="back"), **more)


def names(ring):
    return None if ring is None else sorted(link.pipeline for link in ring)


def test_a_row_of_sites_is_no_ring():
    row = [two_way("one", "a", "b"), two_way("two", "b", "c"), two_way("three", "c", "d")]
    for i, each in enumerate(row):
        assert ring_through(each, row[:i] + row[i + 1 :]) is None
    assert ring_through(one_way("one", "a", "b"), [one_way("two", "a", "b")]) is None


@pytest.mark.parametrize("kind", [one_way, two_way])
def test_three_sites_in_a_ring(kind):
    first, second = kind("one", "a", "b"), kind("two", "b", "c")
    assert ring_through(second, [first]) is None
    ring = ring_through(kind("three", "c", "a"), [first, second])
    assert ring is not None
    assert names(ring) == ["one/there", "three/there", "two/there"]
    assert str(ring[0]) == "three/there (c:3306 to a:3306)"


def test_two_channels_between_two_sites():
    first = two_way("one", "a", "b", "s.orders")
    ring = ring_through(two_way("two", "a", "b", "s.*"), [first])
    assert names(ring) == ["one/back", "two/there"]
    assert ring_through(two_way("two", "a", "b", "s.items"), [first]) is None
    # There and back in one-way channels.
    assert ring_through(one_way("back", "b", "a"), [one_way("there", "a", "b")])
    # With the same mark they are one channel to each other.
    assert not ring_through(two_way("two", "a", "b", mark_id=5), [{**first, "mark_id": 5}])


def test_the_tables_have_to_lead_back():
    there = one_way("there", "a", "b", {"from": "s.orders", "to": "copy.orders"})
    assert ring_through(one_way("back", "b", "a", "s.*"), [there]) is None
    assert ring_through(one_way("back", "b", "a", "copy.*"), [there]) is None
    back = one_way("back", "b", "a", {"from": "copy.*", "to": "s.*"})
    assert names(ring_through(back, [there])) == ["back/there", "there/there"]
    # It is one entry whose rows go on, not some entry.
    mixed = one_way("mixed", "b", "a", {"from": "copy.orders", "to": "x.orders"}, "s.orders")
    assert ring_through(mixed, [there]) is None


def test_servers_are_compared_as_they_are_written():
    first = one_way("one", "DB1", "db2")
    assert ring_through(one_way("two", "db2", "db1"), [first])
    assert not ring_through(one_way("two", "db2", "10.0.0.1"), [first])
    other = {"type": "mysql", "host": "db1", "user": "u", "port": 3307}
    assert not ring_through(one_way("two", "db2", other), [first])
    same = {"type": "mysql", "host": "${DB}", "user": "u"}
    assert ring_through(one_way("two", "db2", same), [one_way("one", same, "db2")])


def test_an_index_leads_nowhere():
    index = {"type": "elasticsearch", "hosts": ["http://es"]}
    assert ring_through(one_way("two", "b", index), [one_way("one", "a", "b")]) is None


def test_relays_and_subscriptions_are_links_of_a_way():
    topic = {"type": "kafka", "brokers": ["k1:9092", "k2:9092"], "topic": "t"}
    again = {**topic, "brokers": ["k2:9092", "k1:9092"]}
    relay, first = one_way("relay", "a", topic), one_way("one", again, "b")
    back = one_way("back", "b", "a")
    assert names(ring_through(back, [relay, first])) == ["back/there", "one/there"]
    assert of_unknown_database(back, [relay, first]) == []
    # Nobody says what is in the topic.
    assert ring_through(back, [first]) is None
    assert of_unknown_database(back, [first]) == ["one/there"]
    assert of_unknown_database(first, []) == []
    named = {**again, "database": {"host": "a", "user": "u"}}
    assert ring_through(back, [one_way("one", named, "b")])


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"channel": "x", "pipelines": 3},
        channel("x", {"source": 1, "tables": [{}, 3]}),
        one_way("x", "b", "a", {"from": "nonsense"}),
        one_way("x", "b", "c", {"from": "s.*", "to": "a.b.c"}),
    ],
)
def test_what_another_release_has_stored_is_passed_over(damaged):
    assert ring_through(one_way("one", "a", "b"), [damaged]) is None
