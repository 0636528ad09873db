"""What goes which way between two sites."""

import pytest

from setl.channel.reading import parse_channel
from setl.channel.relations.overwriting import overwritten_by_loads


def both_ways(*tables, sites=("a", "b")):
    def one(name, source, target):
        return {
            "name": name,
            "source": {"type": "mysql", "host": source, "user": "u"},
            "target": {"type": "mysql", "host": target, "user": "u"},
            "tables": list(tables),
        }

    a, b = sites
    return parse_channel({"channel": "shop", "pipelines": [one("ab", "a", "b"), one("ba", b, a)]})


@pytest.mark.parametrize("policy", ["home", {"newest": "touched"}])
def test_loads_replace_newer_rows_where_nothing_decides(policy):
    tables = {"from": "s.plain"}, {"from": "s.decided", "conflict": policy}
    file = both_ways(*tables)
    assert overwritten_by_loads(file, file.pipeline("ab")) == ["s.plain"]


def test_in_one_direction_nothing_is_newer_at_the_target():
    file = both_ways({"from": "s.plain"}, sites=("c", "d"))
    assert overwritten_by_loads(file, file.pipeline("ab")) == []
