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


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        ("9" * 40, int("9" * 40)),
        ("0.5", 0.5),
        ("-1.5e+3", -1500.0),
        ("12:30 h", "12:30 h"),
        ("2026-02-30", "2026-02-30"),
        ("2026-02-03T04:05:06Z", "2026-02-03T04:05:06Z"),
        ("'010'", "010"),
        ("!!str 010", "010"),
        ("1e5", "1e5"),  # text to YAML, without a point
        ("=", "="),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
    ],
)
def test_scalars_are_what_json_has(written, value):
    definition = read_channel_definition(f"a: {written}")
    assert (definition["a"], definition.problems) == (value, ())
    assert type(definition["a"]) is type(value)
    assert json.loads(json.dumps(definition)) == definition


NO_DECIMAL = "must be a decimal number such as 90 or 0.5"
NO_VALUE = "is neither text nor a number"
TOO_LONG = "is a number of more than 40 digits"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("1:30", NO_DECIMAL),  # 90 to YAML 1.1
        ("1:59.5", NO_DECIMAL),
        ("0b11", NO_DECIMAL),
        ("0x1F", NO_DECIMAL),
        ("010", NO_DECIMAL),  # 8
        ("1_000", NO_DECIMAL),
        (".inf", NO_DECIMAL),
        (".nan", NO_DECIMAL),
        ("1.0e+999", NO_DECIMAL),
        ("!!int abc", NO_DECIMAL),
        ("!!float x", NO_DECIMAL),
        ("1" * 41, TOO_LONG),
        ("1" * 300_000, TOO_LONG),
        ("0b" + "1" * 300_000, TOO_LONG),
        ("1" + ":59" * 200_000, TOO_LONG),
        ("1." + "1" * 300_000, TOO_LONG),
        ("!!binary aGk=", NO_VALUE),
        ("!!bool x", NO_VALUE),
        ("!mine x", NO_VALUE),
        ("!!python/object:os.system x", NO_VALUE),
    ],
)
def test_other_scalars_are_mistakes_with_their_position(written, message):
    definition = read_channel_definition(f"a: x\nb:\n- {written}\nc: 1:30")
    assert [str(p).partition(";")[0].partition(",")[0] for p in definition.problems] == [
        f"b[0]: {message} (line 3)" if message == TOO_LONG else f"b[0]: {message}",
        f"c: {NO_DECIMAL}",
    ]
    assert [p.line for p in definition.problems] == [3, 4]


def test_merges_of_merges_stay_small():
    """Copied each time, these would be 9**29 values."""
    lines = ["a0: &a0 {k: 1}"]
    lines += [
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], j{n}: {n}}}" for n in range(1, 30)
    ]
    definition = read_channel_definition("\n".join(lines))
    assert definition["a29"] == {"k": 1, **{f"j{n}": n for n in range(1, 30)}}


def test_lines_and_json():
    definition = read_channel_definition("a:\n  - b: 1\n    c: 2\n  -\n    b: 3\n")
    assert definition.lines["a", 0, "c"] == 3
    assert definition.lines["a", 1, "b"] == 5
    assert json.loads(json.dumps(definition)) == {"a": [{"b": 1, "c": 2}, {"b": 3}]}
