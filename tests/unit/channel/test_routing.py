"""Which table goes where."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.names.document_ids import IdsOf
from setl.channel.names.patterns import SYSTEM_SCHEMAS
from setl.channel.reading import parse_channel
from setl.channel.relations.mark_ids import channel_mark_id
from setl.channel.routes.routing import Route, Router
from setl.channel.rules.spark_sql import bare_column
from setl.errors import ConfigurationError

from .channels import DTS, SEARCH, changed


def router(*tables, target=None):
    definition = changed("pipelines[0].tables", list(tables))
    if target:
        definition = changed("pipelines[0].target", target, definition)
    return Router(parse_channel(definition).pipelines[0])


def targets(routed, schema, table):
    return [(route.index, *route.target) for route in routed.route(schema, table)]


def test_exact_names_beat_wildcards_and_the_first_wildcard_wins():
    routed = router(
        {"from": "s.*", "to": "first"},
        {"from": "*.*"},
        {"from": "s.x", "to": "exact"},
        {"from": "s.?", "to": "never"},
    )
    assert targets(routed, "s", "x") == [(2, "s", "exact")]
    assert targets(routed, "s", "y") == [(0, "s", "first")]
    assert targets(routed, "other", "y") == [(1, "other", "y")]


def test_entries_with_the_same_from_all_apply():
    routed = router(
        {"from": "s.x", "to": "one"},
        {"from": "s.t*", "to": "a*"},
        {"from": "s.x", "to": "two"},
        {"from": "s.*"},
        {"from": "s.t*", "to": "b*"},
    )
    assert targets(routed, "s", "x") == [(0, "s", "one"), (2, "s", "two")]
    assert targets(routed, "s", "t5") == [(1, "s", "a5"), (4, "s", "b5")]
    assert targets(routed, "s", "z") == [(3, "s", "z")]


def test_where_tables_of_a_schema_may_go():
    found = router(
        {"from": "a.*"}, {"from": "b.t", "to": "x.u"}, {"from": "c*.t_*", "to": "y.c*_*"}
    )

    def fills(schema, *targets):
        return [found.may_fill(schema, tuple(target.split("."))) for target in targets]

    assert fills("a", "a.t", "b.t", "x.u") == [True, False, False]
    assert fills("b", "b.t", "x.u", "x.v") == [False, True, False]
    assert fills("c1", "y.c1_2", "y.d_2", "c1.t_2") == [True, False, False]
    assert fills("d", "d.t", "x.u", "y.c1_2") == [False, False, False]


def test_unmapped_tables_have_no_route():
    routed = router({"from": "s.x"})
    assert routed.route("s", "y") == ()
    assert routed.route("S", "x") == ()


@given(st.sampled_from(sorted(SYSTEM_SCHEMAS)), st.booleans())
def test_system_schemas_match_no_wildcard(schema, upper):
    assert router({"from": "*.*"}).route(schema.upper() if upper else schema, "t") == ()


def test_a_log_gets_rows_in_the_order_in_which_they_were_written():
    assert router({"from": "shop.*"}).mixes("shop")
    assert not router({"from": "shop.*"}, target=DTS).mixes("shop")


def test_indexes():
    routed = router(
        {"from": "s.Orders"}, {"from": "S*.*_X", "to": "i-*-*"}, {"from": "s.*"}, target=SEARCH
    )
    assert targets(routed, "s", "Orders") == [(0, "", "orders")]
    assert targets(routed, "SHOP", "Ab_X") == [(1, "", "i-hop-ab")]
    with pytest.raises(ConfigurationError, match=r"`_tmp`, made from s\._tmp, must not start"):
        routed.route("s", "_tmp")


def test_everything_an_entry_says():
    routed = router({
        "from": "s.t",
        "to": "d.u",
        "columns": {"a": "b", "c": "`d e`", "f": "upper(g)", "now": "current_timestamp"},
        "include": ["id", "x"],
        "where": "x > 1",
        "group": "g",
        "key": ["id"],
    })  # fmt: skip
    (route,) = routed.route("s", "t")
    assert route == Route(
        index=0,
        target=("d", "u"),
        include=("id", "x"),
        renames={"a": "b", "c": "d e"},
        expressions={"f": "upper(g)", "now": "current_timestamp"},
        where="x > 1",
        group="g",
        key=("id",),
        ids_of=IdsOf("s.t -> d.u"),
        mapped_by=route.mapped_by,
    )
    assert not route.plain
    assert router({"from": "s.t", "exclude": ["a"]}).route("s", "t")[0].exclude == ("a",)
    assert router({"from": "s.t", "to": "x", "group": "g"}).route("s", "t")[0].plain


def test_a_mapping_that_makes_other_rows_is_known_by_another_digest():
    def digest(**entry):
        (route,) = router({"from": "s.t", **entry}).route("s", "t")
        return route.mapped_by

    # Kept with dead letters, so each release has to give the same.
    assert digest() == "44136fa355b3678a"
    others = [{"to": "u.t"}, {"key": ["a"]}, {"columns": {"a": "b"}}, {"columns": {"a": "c"}}]
    others += [{"exclude": ["a"]}, {"include": ["a"]}, {"where": "a > 1"}, {"where": "a > 2"}]
    assert len({digest(), *(digest(**other) for other in others)}) == 1 + len(others)
    assert digest(group="g") == digest(load=True) == digest()


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a", "a"),
        (" a_1 ", "a_1"),
        ("größe", "größe"),
        ("`a b`", "a b"),
        ("`a``b`", "a`b"),
        ("`current_date`", "current_date"),
        ("current_date", None),
        ("NULL", None),
        ("1", None),
        ("1a", None),
        ("'a'", None),
        ("a b", None),
        ("a.b", None),
        ("a + b", None),
        ("`a` + `b`", None),
    ],
)
def test_bare_columns(text, column):
    assert bare_column(text) == column


def test_answers_are_stored_but_not_for_ever():
    routed = router({"from": "s.*"})
    first = routed.route("s", "x")
    assert routed.route("s", "x") is first
    for i in range(10_001):
        routed.route("s", f"t{i}")
    assert routed.route("s", "x") is not first
    assert routed.route("s", "x") == first


def test_routers_travel():
    routed = router({"from": "s.t*", "to": "u*"}, {"from": "s.x"})
    again = pickle.loads(pickle.dumps(routed))
    for table in ("t1", "x", "y"):
        assert again.route("s", table) == routed.route("s", table)


def test_mark_ids():
    assert channel_mark_id(parse_channel(changed("mark_id", 7))) == 7
    # CRC-32 of "shop", as gzip computes it, without the highest bit.
    assert channel_mark_id(parse_channel(changed("channel", "shop"))) == 0xAC6A4CA2 & 0x7FFFFFFF
    for name in ("a", "b", "c"):
        assert 0 < channel_mark_id(parse_channel(changed("channel", name))) < 1 << 31


def test_tables_that_an_entry_leaves_out():
    routed = router(
        {"from": "d.*", "except": ["d.log_*", "d.copy"]},
        {"from": "d.*", "to": "other.*"},
        {"from": "d.log_[1-2]", "to": "logs.*"},
    )
    assert targets(routed, "d", "t") == [(0, "d", "t"), (1, "other", "t")]
    assert targets(routed, "d", "copy") == [(1, "other", "copy")]
    alone = router({"from": "d.*", "except": ["d.copy", "d.log_*"]}, {"from": "d.log_*"})
    assert targets(alone, "d", "copy") == []
    assert targets(alone, "d", "log_1") == [(1, "d", "log_1")]
    assert targets(alone, "d", "Copy") == [(0, "d", "Copy")]


@pytest.mark.parametrize("name", ["_copy_new", "_copy_old", "_copy_gho", "_copy_ghc", "_copy_del"])
def test_online_schema_changes_of_a_table_that_is_left_out_are_left_out_too(name):
    assert targets(router({"from": "d.*", "except": ["d.copy"]}), "d", name) == []
    assert targets(router({"from": "d.*", "except": ["d.other"]}), "d", "_t") == [(0, "d", "_t")]


def test_only_wildcards_leave_tables_out():
    with pytest.raises(ConfigurationError, match="needs a `from` with wildcards"):
        router({"from": "d.t", "except": ["d.x"]})
