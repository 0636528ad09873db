"""Which other pipelines write what a pipeline writes, as far as channel files tell."""

import pytest

from setl.channel.relations.shared_targets import other_writers


def source(host, **more):
    return {"type": "mysql", "host": host, "user": "u", **more}


def tables(host):
    return {"type": "mysql", "host": host, "user": "u"}


def index(*hosts):
    return {"type": "elasticsearch", "hosts": list(hosts)}


def subscription(partition, **more):
    topic = {"brokers": ["k:9092"], "topic": "t", "partition": partition}
    return {"type": "kafka", **topic, **more}


def channel(name, *pipelines):
    return {
        "channel": name,
        "pipelines": [
            {"name": f"p{i}", "source": reads, "target": writes, "tables": list(entries)}
            for i, (reads, writes, *entries) in enumerate(pipelines)
        ],
    }


def entry(read, to=None):
    return {"from": read} | ({"to": to} if to else {})


SHARDS = [
    channel("one", (source("s1"), tables("t"), entry("a.own"), entry("a.orders", "all.orders"))),
    channel("two", (source("s2"), tables("T"), entry("b.orders*", "all.orders*"))),
]


def test_only_the_entry_that_others_write_as_well_is_named():
    assert other_writers("one/p0", SHARDS) == {1: ("two/p0",)}
    assert other_writers("two/p0", SHARDS) == {0: ("one/p0",)}
    assert other_writers("one/p0", SHARDS[:1]) == {}


def test_pipelines_of_one_channel_count_too():
    both = channel(
        "c",
        (source("s1"), tables("t"), entry("a.orders")),
        (source("s2"), tables("t"), entry("a.*")),
    )
    assert other_writers("c/p0", [both]) == {0: ("c/p1",)}


def test_two_directions_write_to_different_servers():
    both = channel(
        "c", (source("a"), tables("b"), entry("s.t")), (source("b"), tables("a"), entry("s.t"))
    )
    assert other_writers("c/p0", [both]) == {}


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (entry("a.Orders"), entry("b.orders"), True),
        (entry("a.orders", "sales-1"), entry("b.orders", "sales-2"), False),
        (entry("a.orders_*", "sales-*"), entry("b.orders", "sales-7"), True),
    ],
)
def test_indexes_go_by_their_names_alone(one, other, shared):
    both = [
        channel("one", (source("s1"), index("http://e1:9200", "http://e2:9200"), one)),
        channel("two", (source("s2"), index("http://E2:9200/"), other)),
    ]
    assert (other_writers("one/p0", both) == {0: ("two/p0",)}) is shared


def test_an_index_is_no_table():
    both = [
        channel("one", (source("s1"), index("http://t:9200"), entry("a.orders"))),
        channel("two", (source("s2"), tables("t"), entry("a.orders"))),
    ]
    assert other_writers("one/p0", both) == {}


def test_partitions_of_one_topic_bring_rows_of_the_same_tables():
    parts = [(subscription(i), tables("t"), entry("a.orders")) for i in range(3)]
    assert other_writers("c/p0", [channel("c", *parts)]) == {}
    elsewhere = subscription(0, topic="other")
    both = channel("c", parts[0], (elsewhere, tables("t"), entry("a.orders")))
    assert other_writers("c/p0", [both]) == {0: ("c/p1",)}


def test_other_tables_of_the_same_server_bring_other_rows():
    both = channel(
        "c",
        (source("s"), tables("t"), entry("a.orders", "all.orders")),
        (source("s"), tables("t"), entry("b.orders", "all.orders")),
    )
    assert other_writers("c/p0", [both]) == {0: ("c/p1",)}
