"""Which foreign keys a pipeline carries out, by its mapping and by their columns."""

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.codec.sql.created_table import ForeignKey
from setl.systems.mysql.acting_keys import RelatedTables, same_key, why_not_key

SERVER = {"type": "mysql", "host": "h", "user": "u", "password": "p"}


def related(*tables, there=()):
    target = {**SERVER, "host": "other"}
    pipeline = {"name": "p", "source": SERVER, "target": target, "tables": tables}
    file = parse_channel({"channel": "c", "pipelines": [pipeline]})
    return RelatedTables(Router(file.pipelines[0]), there)


def key(*actions, name="f", columns=("p",), parent="p", parent_columns=("id",)):
    return ForeignKey(name, columns, "", parent, parent_columns, actions)


@pytest.mark.parametrize(
    ("tables", "target", "source", "why_not"),
    [
        ([{"from": "a.*"}], ("a", "t"), ("a", "t"), ""),
        ([{"from": "a.*", "to": "b.*"}], ("b", "t"), ("a", "t"), ""),
        ([{"from": "a.t", "to": "b.u"}], ("b", "u"), ("a", "t"), ""),
        ([{"from": "a.*"}], ("b", "t"), ("", ""), "no table is mapped to it"),
        ([{"from": "a.t", "where": "x > 1"}], ("a", "t"), ("a", "t"), "its mapping has where"),
        ([{"from": "a.t", "exclude": ["x"]}], ("a", "t"), ("a", "t"), "its mapping has where"),
        (
            [{"from": "a.t"}, {"from": "a.t", "to": "b.t"}],
            ("b", "t"),
            ("a", "t"),
            "several targets",
        ),
        ([{"from": "a.t"}, {"from": "b.*", "to": "a.*"}], ("a", "t"), ("a", "t"), "rows of"),
        ([{"from": "a.t_*", "to": "a.t"}], ("a", "t"), ("", ""), "no table is mapped to it"),
    ],
)
def test_tables_of_the_target_by_the_mapping(tables, target, source, why_not):
    table = related(*tables).of_target(target)
    assert table.source == source
    assert why_not in table.why_not
    assert bool(table.why_not) == bool(why_not)
    assert (table.route is None) == bool(why_not)


def test_tables_that_the_source_has_are_found_whatever_they_are_called():
    table = related({"from": "a.t_*", "to": "a.t"}, there=[("a", "t_1")]).of_target(("a", "t"))
    assert table.source == ("a", "t_1")
    assert "rows of other tables" in table.why_not


@pytest.mark.parametrize(
    ("own", "others", "parent_key", "reason"),
    [
        (key("ON DELETE CASCADE"), (), ("ID",), ""),
        (key("ON DELETE CASCADE"), (), ("id", "n"), "distinguished by id, n"),
        (key("ON DELETE CASCADE"), (), (), "distinguished by nothing"),
        (key("ON UPDATE SET DEFAULT"), (), ("id",), "SET DEFAULT"),
        (
            key("ON DELETE SET NULL"), [key("ON DELETE CASCADE", name="g", columns=("a", "P"))],
            ("id",), "it shares a column with g",
        ),
        (
            key("ON DELETE CASCADE"), [key("ON DELETE CASCADE", name="g", columns=("a", "p"))],
            ("id",), "",
        ),
    ],
)  # fmt: skip
def test_keys_by_their_columns(own, others, parent_key, reason):
    found = why_not_key(own, [own, *others], parent_key)
    assert reason in found
    assert bool(found) == bool(reason)


def test_keys_are_the_same_under_any_name():
    own, parent = key("ON DELETE CASCADE", "ON UPDATE SET NULL"), ("a", "p")
    other = key("ON UPDATE SET NULL", "ON DELETE CASCADE", name="g", columns=("P",))
    assert same_key(own, parent, other, parent)
    assert not same_key(own, parent, other, ("b", "p"))
    assert not same_key(own, parent, key("ON DELETE CASCADE"), parent)
