"""The published JSON Schema agrees with the models."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from setl.channel.json_schema import channel_schema, channel_schema_text
from setl.channel.reading import parse_channel, read_channel_definition
from setl.channel.text.problems import ChannelFileError
from setl.resources import read_text

from .channels import DTS, REMOVED, SEARCH, changed

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[3]
VALIDATOR = Draft202012Validator(channel_schema())

GOOD = [
    DATA / "two_way.yaml",
    DATA / "dts_to_search.yaml",
    DATA / "from_environment.yaml",
    *sorted((ROOT / "deploy" / "examples").glob("shop*.yaml")),
]


def test_the_file_is_up_to_date():
    assert read_text("schemas", "channel.schema.json") == channel_schema_text(), (
        "write it again with: python -m setl.channel.json_schema"
    )


def test_it_is_a_schema():
    Draft202012Validator.check_schema(channel_schema())


def test_everything_is_described():
    schema = channel_schema()
    parts = [schema, *schema["$defs"].values()]
    for part in parts:
        for name, value in part.get("properties", {}).items():
            assert value.get("description"), name


@pytest.mark.parametrize("file", GOOD, ids=lambda f: f.name)
def test_it_accepts_good_files(file):
    # As JSON, since a schema knows lists and mappings only as JSON does.
    VALIDATOR.validate(json.loads(json.dumps(read_channel_definition(file))))


def test_it_refuses_the_file_with_ten_mistakes():
    definition = read_channel_definition(DATA / "ten_mistakes.yaml")
    assert not VALIDATOR.is_valid(json.loads(json.dumps(definition)))


P, S, T, M = "pipelines[0]", "pipelines[0].source", "pipelines[0].target", "pipelines[0].tables[0]"


@pytest.mark.parametrize(
    ("path", "value", "right"),
    [
        ("channel", "shop", True),
        ("channel", "a shop", False),
        ("channel", REMOVED, False),
        ("channel", 5, False),
        ("mark_id", None, True),
        ("mark_id", 1 << 31, False),
        ("pipelines", [], False),
        ("colour", 1, False),
        (f"{S}.type", "mysq", False),
        (f"{S}.type", REMOVED, False),
        (f"{S}.host", REMOVED, False),
        (f"{S}.port", "3306", True),
        (f"{S}.port", "many", False),
        (f"{S}.port", 65536, False),
        (f"{S}.port", True, False),
        (f"{S}.port", 3306.5, False),
        (f"{S}.password", 5, False),
        (f"{S}.heartbeat", 0, True),
        (f"{S}.heartbeat", "0.5", True),
        (f"{S}.heartbeat", -1, False),
        (f"{S}.start", {"file": "b.1"}, True),
        (f"{S}.start", {"file": "b.1", "offset": 3}, False),
        (f"{S}.start", {"gtid": "0-1-2", "file": "b.1"}, False),
        (f"{S}.start", {"offset": 4}, False),
        (f"{S}.start", "now", False),
        (S, DTS, True),
        (S, {**DTS, "start": {"timestamp": 5}}, True),
        (S, {**DTS, "start": {"timestamp": 5, "offset": 5}}, False),
        (S, {**DTS, "brokers": []}, False),
        (S, {**DTS, "kafka": {"check_crcs": [1]}}, False),
        (S, {**DTS, "kafka": {"fetch.max.bytes": 1.5, "check.crcs": True}}, True),
        (S, {**DTS, "host": "x"}, False),
        (T, SEARCH, True),
        (T, {**SEARCH, "hosts": ["es"]}, False),
        (T, {**SEARCH, "request_timeout": 0}, False),
        (f"{T}.fence_timeout", 3601, False),
        (f"{P}.tables", [], False),
        (f"{P}.ddl", "skip", False),
        (f"{P}.checkpoint", None, True),
        (f"{P}.generation", 2048, False),
        (f"{P}.window", "0x4", False),
        (f"{P}.verify", {"every": "6h"}, True),
        (f"{P}.verify", {"every": "1d 12h", "rate": 500, "repair": True}, True),
        (f"{P}.verify", {"every": 3600.5}, True),
        (f"{P}.verify", {"every": "3600"}, True),
        (f"{P}.verify", {"every": 0}, False),
        (f"{P}.verify", {"every": "6 o'clock"}, False),
        (f"{P}.verify", {"every": True}, False),
        (f"{P}.verify", {"rate": 5}, False),
        (f"{P}.verify", {"every": "6h", "rate": 0}, False),
        ("verify", {"every": "6h"}, True),
        (f"{M}.from", "orders", False),
        (f"{M}.from", "a\\.b", False),
        (f"{M}.from", "a\\.b.c", True),
        (f"{M}.from", "a.b.c", False),
        (f"{M}.form", "a.b", False),
        (f"{M}.columns", {"a": ""}, False),
        (f"{M}.columns", ["a"], False),
        (f"{M}.key", [], False),
        (M, {"from": "a.b", "include": ["x"], "exclude": ["y"]}, False),
        (M, {"from": "a.b", "include": ["x"], "exclude": []}, True),
    ],
)
def test_it_judges_as_the_models_do(path, value, right):
    definition = changed(path, value)
    assert VALIDATOR.is_valid(definition) == right
    try:
        parse_channel(definition)
        accepted = True
    except ChannelFileError:
        accepted = False
    assert accepted == right
