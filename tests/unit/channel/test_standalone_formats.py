"""What a channel file may say of topics in which each record stands alone."""

import pytest

from setl.channel.reading import ChannelFileError, parse_channel

from .channels import SEARCH, changed

A = {"type": "mysql", "host": "a", "user": "u"}
B = {"type": "mysql", "host": "b", "user": "u"}


def topic(format_="debezium", **more):
    return {"type": "kafka", "format": format_, "brokers": ["k:9092"], "topic": "t", **more}


def channel(*pipelines):
    """A channel of pipelines, each a source and a target."""
    return {
        "channel": "shop",
        "pipelines": [
            {"name": f"p{n}", "source": s, "target": t, "tables": [{"from": "shop.orders"}]}
            for n, (s, t) in enumerate(pipelines)
        ],
    }


def problems(definition):
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(definition)
    return {str(p.path): p.message for p in caught.value.problems}


def database(host, **more):
    return {"host": host, "user": "u", **more}


@pytest.mark.parametrize(
    "pipelines",
    [
        [(topic(), B)],
        # A topic for each table.
        [(topic(), B), (topic("canal"), B), (topic(), SEARCH)],
        [(topic(database=database("c")), B), (A, {**B, "host": "d"})],
        [(topic(), SEARCH), (A, B)],
    ],
)
def test_channels_in_one_direction(pipelines):
    assert parse_channel(channel(*pipelines))


@pytest.mark.parametrize("format_", ["debezium", "canal"])
@pytest.mark.parametrize(
    ("source", "other"),
    [
        # Nobody says whose changes are in the topic.
        ({}, (topic(), A)),
        ({}, (B, A)),
        ({"database": database("a")}, (B, A)),
        ({"database": database("a", port=3306)}, (B, A)),
    ],
)
def test_changes_that_could_come_back_are_refused(format_, source, other):
    found = problems(channel((topic(format_, **source), B), other))
    assert "have no marks" in found["pipelines[0].source.format"]


def test_another_port_is_another_server():
    source = topic(database=database("a", port=3307))
    assert parse_channel(channel((source, B), (B, A)))


def test_codecs():
    def codec(**more):
        return parse_channel(channel((topic(**more), B))).pipelines[0].source.codec

    assert codec() == "debezium"
    assert codec(format_="canal") == "canal"
    assert codec(format_="canal", time_zone="+08:00") == "canal +08:00"


@pytest.mark.parametrize(
    "zone", ["UTC", "+08:00", "Asia/Shanghai", "Etc/GMT+8", "America/Port-au-Prince"]
)
def test_time_zones(zone):
    assert parse_channel(channel((topic("canal", time_zone=zone), B)))


@pytest.mark.parametrize("zone", ["", "8", "+8", "+25:00", "../../etc/passwd", "Asia/", "a b"])
def test_what_is_no_time_zone(zone):
    found = problems(channel((topic("canal", time_zone=zone), B)))
    assert "time_zone" in "".join(found)


def test_what_means_nothing():
    source = "pipelines[0].source"
    found = problems(channel((topic(time_zone="UTC", logical_names=True), B)))
    assert found[f"{source}.time_zone"] == "means nothing without `format: canal`"
    assert found[f"{source}.logical_names"] == "means nothing without `format: dts`"
    found = problems(changed("pipelines[0].source.format", "avro", channel((topic(), B))))
    assert list(found) == [f"{source}.format"]
