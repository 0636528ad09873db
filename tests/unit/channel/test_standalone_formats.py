"""What a channel file may say of topics in which each record stands alone."""

import pytest

from setl.channel.file import KafkaSource
from setl.channel.reading import ChannelFileError, parse_channel
from setl.errors import ConfigurationError
from setl.operate.peek.look import subject_at, target_subject
from tests.unit.formats.records import FORMATS, records_of

from .channels import SEARCH, changed

A = {"type": "mysql", "host": "a", "user": "u"}
B = {"type": "mysql", "host": "b", "user": "u"}


def topic(format_=FORMATS[0], **more):
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
        [*((topic(each), B) for each in FORMATS), (topic(), SEARCH)],
        [(topic(database=database("c")), B), (A, {**B, "host": "d"})],
        [(topic(), SEARCH), (A, B)],
    ],
)
def test_channels_in_one_direction(pipelines):
    assert parse_channel(channel(*pipelines))


@pytest.mark.parametrize("format_", FORMATS)
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


def fields_of_others():
    """Fields of both ends that a format has by itself, at an end of each other format."""
    for format_ in ("dts", *FORMATS):
        for other in FORMATS:
            for end, own in zip(("source", "target"), records_of(other).OWN, strict=True):
                for name, value in own.items() if other != format_ else ():
                    yield pytest.param(end, format_, name, value, other, id=f"{format_}-{name}")


@pytest.mark.parametrize(("end", "format_", "name", "value", "other"), [*fields_of_others()])
def test_a_field_of_another_format_means_nothing(end, format_, name, value, other):
    given = topic(format_, **{name: value})
    found = problems(channel((given, B) if end == "source" else (A, given)))
    assert found == {f"pipelines[0].{end}.{name}": f"means nothing without `format: {other}`"}


@pytest.mark.parametrize("format_", FORMATS)
def test_its_own_fields_mean_something(format_):
    source, target = records_of(format_).OWN
    assert parse_channel(channel((topic(format_, **source), B)))
    assert parse_channel(channel((A, topic(format_, **target))))


@pytest.mark.parametrize("format_", FORMATS)
def test_what_a_relay_has_written_is_read_as_that(format_):
    needed, codec = records_of(format_).READ
    (relay,) = parse_channel(channel((A, topic(format_, **needed)))).pipelines
    assert target_subject(relay).config.codec == codec
    found = subject_at(f"kafka://b1:9092/o?format={format_}", "").config
    assert isinstance(found, KafkaSource)
    assert (found.format, found.stands_alone) == (format_, True)
    if needed:
        (relay,) = parse_channel(channel((A, topic(format_)))).pipelines
        with pytest.raises(ConfigurationError, match="no records that setl reads") as caught:
            target_subject(relay)
        assert f"of `format: {format_}` with" in caught.value.hint


def test_logical_names_and_unknown_formats():
    source = "pipelines[0].source"
    found = problems(channel((topic(logical_names=True), B)))
    assert found == {f"{source}.logical_names": "means nothing without `format: dts`"}
    found = problems(changed(f"{source}.format", "avro", channel((topic(), B))))
    (message,) = found.values()
    assert list(found) == [f"{source}.format"]
    assert message.startswith("must be `dts`")
    assert all(f"`{each}`" in message for each in FORMATS)
