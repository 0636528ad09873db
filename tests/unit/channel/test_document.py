"""The YAML of channel files: lines, repeated keys, and what is no YAML at all."""

import json

import pytest

from setl.channel.reading import resolve_and_parse
from setl.channel.text.document import read_channel_definition
from setl.channel.text.problems import ChannelFileError
from setl.errors import ConfigurationError


def problem_in(text):
    with pytest.raises(ChannelFileError) as caught:
        read_channel_definition(text)
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- a", "the file must be a mapping that begins with `channel:` and `pipelines:`"),
        ("a: [1", ("the file is not YAML: while parsing a flow sequence, expected ',' or ']', but"
                  " got '<stream end>' (line 1)")),
        ("a: 1\nb: !!python/object:os.system x", ("the file is not YAML: could not determine a"
         " constructor for the tag 'tag:yaml.org,2002:python/object:os.system' (line 2)")),
        ("a: &a [*a]", "the file is not YAML: an alias that holds itself (line 1)"),
        ("? [a]\n: 1", "the file is not YAML: a key must be a word (line 1)"),
        ("a: \x00", ("the file is not YAML: unacceptable character #x0000: special characters are"
                    " not allowed")),
        ("a: 1\n---\nb: 1", ("the file is not YAML: expected a single document in the stream, but"
                            " found another document (line 2)")),
    ],
)  # fmt: skip
def test_what_cannot_be_read(text, message):
    assert problem_in(text) == message


def test_anchors_cannot_blow_a_file_up():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "too many values" in problem_in("\n".join(lines))
    assert problem_in("a: " + "x" * (1 << 20)) == "the file is larger than 1 MiB"


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 5000, "a: " + "[" * 60 + "]" * 60]
    + [
        "a0: &a0 []\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, n))
        for n in (60, 2000)
    ],
    ids=["open", "closed", "aliases", "many aliases"],
)
def test_values_cannot_be_nested_without_end(text):
    assert "nested more than 50 deep" in problem_in(text)


def test_files_that_are_not_there_or_not_text(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot read .*No such file"):
        read_channel_definition(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("channel: café".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_channel_definition(tmp_path / "latin.yaml")


def test_repeated_keys_are_reported_with_everything_else():
    definition = read_channel_definition("channel: a\nchannel: b\npipelines: 5\n")
    with pytest.raises(ChannelFileError) as caught:
        resolve_and_parse(definition, {})
    assert [str(p) for p in caught.value.problems] == [
        "channel: stands twice, first in line 1 (line 2)",
        "pipelines: must be a list (each item on a line that begins with -), not 5 (line 3)",
    ]


def test_merged_keys_may_be_overridden():
    text = "x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n"
    definition = read_channel_definition(text)
    assert definition["y"] == {"a": 1, "b": 3}
    assert definition.problems == ()


def test_keys_are_words_as_written():
    assert read_channel_definition("1: a\nyes: b") == {"1": "a", "yes": "b"}


def test_lines_and_json():
    definition = read_channel_definition("a:\n  - b: 1\n    c: 2\n  -\n    b: 3\n")
    assert definition.lines["a", 0, "c"] == 3
    assert definition.lines["a", 1, "b"] == 5
    assert json.loads(json.dumps(definition)) == {"a": [{"b": 1, "c": 2}, {"b": 3}]}
