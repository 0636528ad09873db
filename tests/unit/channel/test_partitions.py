"""A source with several partitions becomes a pipeline for each of them."""

import pytest

from setl.channel.partitions import read_expanded
from setl.channel.text.document import ChannelDefinition
from setl.channel.text.problems import ChannelFileError

from .channels import DTS, ONE_WAY, changed, pipelines_of

SOURCE = "pipelines[0].source"


def expanded(definition, **environment):
    made, file = read_expanded(ChannelDefinition(definition), environment)
    assert [p["name"] for p in made["pipelines"]] == [p.name for p in pipelines_of(file)]
    return [(p.name, getattr(p.source, "partition", None)) for p in pipelines_of(file)]


def test_each_partition_gets_a_pipeline_of_its_own():
    definition = changed(SOURCE, {**DTS, "partitions": 3})
    assert expanded(definition) == [("p-0", 0), ("p-1", 1), ("p-2", 2)]


def test_each_partition_stores_its_checkpoint_in_a_file_of_its_own():
    definition = changed(SOURCE, {**DTS, "partitions": 2})
    definition = changed("pipelines[0].checkpoint", "file", definition)
    definition = changed("pipelines[0].checkpoint_file", "/var/lib/p.json", definition)
    _, file = read_expanded(ChannelDefinition(definition), {})
    files = [p.checkpoint_file for p in pipelines_of(file)]
    assert files == ["/var/lib/p.json-0", "/var/lib/p.json-1"]


def test_the_number_may_come_from_the_environment():
    definition = changed(SOURCE, {**DTS, "partitions": "${PARTITIONS}"})
    assert expanded(definition, PARTITIONS="2") == [("p-0", 0), ("p-1", 1)]


def test_all_else_stays_as_it_is_written():
    definition = changed(SOURCE, {**DTS, "user": "u", "password": "${SECRET}", "partitions": 2})
    definition = changed("pipelines[1]", {**ONE_WAY["pipelines"][0], "name": "q"}, definition)
    made, _ = read_expanded(ChannelDefinition(definition), {"SECRET": "hidden"})
    assert [p["name"] for p in made["pipelines"]] == ["p-0", "p-1", "q"]
    assert made["pipelines"][1]["source"]["password"] == "${SECRET}"
    assert made["pipelines"][1]["tables"] == definition["pipelines"][0]["tables"]


def test_a_channel_without_them_is_not_touched():
    definition = ChannelDefinition(changed(SOURCE, {**DTS, "partition": 2}))
    assert read_expanded(definition, {})[0] is definition


def test_a_name_that_another_pipeline_has_already():
    definition = changed(SOURCE, {**DTS, "partitions": 2})
    definition = changed("pipelines[1]", {**ONE_WAY["pipelines"][0], "name": "p-1"}, definition)
    with pytest.raises(ChannelFileError, match="is already the name of"):
        read_expanded(ChannelDefinition(definition), {})


def test_a_mistake_is_reported_in_the_positions_of_the_file():
    definition = changed(SOURCE, {**DTS, "partitions": 2})
    definition = changed("pipelines[1]", {**ONE_WAY["pipelines"][0], "name": "a b"}, definition)
    with pytest.raises(ChannelFileError, match=r"pipelines\[1\].name"):
        read_expanded(ChannelDefinition(definition), {})
