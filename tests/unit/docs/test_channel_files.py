"""Every whole channel file that is shown would be accepted."""

import re

import pytest
import yaml

from setl.channel.reading import definition_warnings, parse_channel, resolve_references

from .pages import blocks

BLOCKS = blocks("yaml", "yml")
WHOLE = [
    block
    for block in BLOCKS
    if isinstance(yaml.safe_load(block.text), dict)
    and {"channel", "pipelines"} <= yaml.safe_load(block.text).keys()
]


def test_there_are_some():
    assert {block.page for block in WHOLE} >= {
        "README.md",
        "channel-file.md",
        "conflicts.md",
        "migrate.md",
        "tutorial-elasticsearch.md",
        "tutorial-two-sites.md",
    }


@pytest.mark.parametrize("block", WHOLE, ids=str)
def test_it_is_accepted(block):
    definition = yaml.safe_load(block.text)
    names = re.findall(r"\$\{(\w+)", block.text)
    environment = dict.fromkeys(names, "a value")
    file = parse_channel(resolve_references(definition, environment))
    assert file.pipelines
    # Such as a password that stands in the file itself.
    assert not definition_warnings(definition)
