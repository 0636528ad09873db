"""Every field of a channel file with every kind of wrong value: plain words, in places of the file.

What a library says of its own insides is of no use to a person, so no message may hold any of it.
"""

import copy
import re

import pytest

from setl.channel.fields.endpoints import BUILT_IN_TARGETS, SOURCES
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.fields.nested_rows import NestedRows
from setl.channel.fields.node_choice import NodeChoice
from setl.channel.fields.table_mapping import TableMapping
from setl.channel.file import ChannelFile, Database, Pipeline
from setl.channel.reading import parse_channel
from setl.channel.text.problems import ChannelFileError
from setl.channel.text.strict_model import aliases

ENDS = {
    "mysql": {"type": "mysql", "host": "h", "user": "u"},
    "kafka": {"type": "kafka", "brokers": ["k:9092"], "topic": "t"},
    "elasticsearch": {"type": "elasticsearch", "hosts": ["http://e:9200"]},
    "opensearch": {"type": "opensearch", "hosts": ["http://o:9200"]},
    "delta": {"type": "delta", "path": "/lake"},
}
FILE = {
    "channel": "x",
    "pipelines": [
        {
            "name": "a",
            "source": ENDS["mysql"],
            "target": {**ENDS["mysql"], "host": "g"},
            "tables": [{"from": "s.t"}],
        }
    ],
}
VALUES = [
    None, True, 1, -1, 1.5, "nonsense", "", [], [1], [{"x": 1}], {}, {"a": 1}, {1: 2},
    {"newest": 1}, {"newest": ""}, {"newest": "a", "b": 2}, {"load": False}, {"offset": "x"},
    {"file": 1}, {"gtid": []}, {"timestamp": "x"}, {"offset": 3, "timestamp": 4},
    10**40, -(10**400), {"timestamp": 10**400},  # the second is too large for a float
]  # fmt: skip
INSIDES = re.compile(
    r"Input should|function-|literal\[|union|unable to|Value error|Keys should|Field required"
    r"|pydantic|NewestRow|Tag\(|None"
)
POSITION = re.compile(r"([A-Za-z_0-9]+(\[\d+\])*)(\.[A-Za-z_0-9]+(\[\d+\])*)*|")


def kind_of(form):
    (kind,) = form.model_fields["type"].annotation.__args__
    return kind


def fields():
    """Each field: a name, and what puts a value there."""
    top = ("pipelines", 0)
    for key in aliases(ChannelFile):
        yield (key,), {}
    for key in aliases(Pipeline):
        yield (*top, key), {}
    for part, model in (("load_limits", LoadLimits), ("nodes", NodeChoice)):
        for key in aliases(model):
            yield (*top, part, key), {(*top, part): {}}
    table = (*top, "tables", 0)
    for key in aliases(TableMapping):
        yield (*table, key), {}
    nested = {"from": "s.i", "field": "i", "on": {"a": "b"}}
    for key in aliases(NestedRows):
        yield (*table, "nested", 0, key), {(*table, "nested"): [nested]}
    for end, forms in (("source", SOURCES), ("target", BUILT_IN_TARGETS)):
        for form in forms:
            whole = ENDS[kind_of(form)]
            for key in aliases(form):
                yield (*top, end, key), {(*top, end): whole}
    read = {**ENDS["kafka"], "database": ENDS["mysql"]}
    for key in aliases(Database):
        yield (*top, "source", "database", key), {(*top, "source"): read}


def put(file, path, value):
    part = file
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_no_message_shows_the_insides_of_a_library(value):
    wrong = []
    tried = 0
    for path, before in fields():
        file = copy.deepcopy(FILE)
        for where, part in before.items():
            put(file, where, copy.deepcopy(part))
        put(file, path, value)
        try:
            parse_channel(file)
        except ChannelFileError as error:
            tried += 1
            wrong += [
                str(problem)
                for problem in error.problems
                if INSIDES.search(str(problem)) or not POSITION.fullmatch(problem.path)
            ]
    assert wrong == []
    assert tried > 30


@pytest.mark.parametrize(
    ("value", "path", "says"),
    [
        ("newer", "", "must be `source` or `home`, not `newer`"),
        (True, "", "must be source, home or {newest: COLUMN}, not true"),
        ({"latest": "at"}, "", "must be source, home or {newest: COLUMN}, not a mapping"),
        ({"newest": 1}, ".newest", "must be text (put it in quotes), not 1"),
        ({"newest": "at", "than": 1}, ".than", "is an unknown key; known are newest"),
    ],
)
def test_a_wrong_conflict_policy(value, path, says):
    file = copy.deepcopy(FILE)
    file["pipelines"][0]["tables"][0]["conflict"] = value
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(file)
    assert (f"pipelines[0].tables[0].conflict{path}", says) in [
        (problem.path, problem.message) for problem in caught.value.problems
    ]
