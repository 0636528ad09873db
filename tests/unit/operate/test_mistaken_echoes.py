import pytest

from setl.channel.reading import parse_channel
from setl.operate.check import mistaken_for_echoes


def server(name):
    return {"type": "mysql", "host": name, "user": "u"}


SEARCH = {"type": "elasticsearch", "hosts": ["http://search:9200"]}
DTS = {"type": "kafka", "brokers": ["kafka:9092"], "topic": "t"}
OF_A = {**DTS, "database": {"host": "a", "user": "u"}}
OF_B = {**DTS, "database": {"host": "b", "user": "u"}}


def channel(*ways):
    return parse_channel(
        {
            "channel": "shop",
            "pipelines": [
                {
                    "name": name,
                    "source": source if isinstance(source, dict) else server(source),
                    "target": target if isinstance(target, dict) else server(target),
                    "tables": [{"from": "shop.*"}],
                }
                for name, source, target in ways
            ],
        }
    )


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        ([("ab", "a", "b"), ("ba", "b", "a")], {}),
        ([("ab", "a", "b"), ("ac", "a", "c")], {}),
        ([("ab", "a", "b"), ("ba", "b", "a"), ("search", "a", SEARCH)], {"search": ["ba"]}),
        ([("ab", "a", "b"), ("bc", "b", "c"), ("ca", "c", "a")],
         {"ab": ["ca"], "bc": ["ab"], "ca": ["bc"]}),
        ([("ab", "a", "b"), ("back", DTS, "a")], {}),
        ([("ab", OF_A, "b"), ("ba", OF_B, "a")], {}),
        ([("ab", OF_A, "b"), ("ba", OF_B, "a"), ("search", OF_A, SEARCH)], {"search": ["ba"]}),
        ([("ab", OF_A, "b"), ("ba", OF_B, "a"), ("relay", "a", DTS)], {}),
        ([("in", DTS, "a"), ("search", "a", SEARCH)], {"search": ["in"]}),
    ],
    ids=["two ways", "two targets", "a third way", "a ring", "back over DTS", "both over DTS",
         "a third over DTS", "a relay", "on from DTS"],
)  # fmt: skip
def test_which_pipelines_swallow_the_changes_of_others(ways, expected):
    file = channel(*ways)
    found = {p.name: mistaken_for_echoes(file, p) for p in file.pipelines}
    assert {name: names for name, names in found.items() if names} == expected
