import pickle

import pytest

from setl.channel.names.document_ids import IdTemplateError, document_form, parse_id
from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.channel.text.problems import ChannelFileError
from setl.errors import ConfigurationError
from setl.model.document import DocumentForm
from tests.unit.channel.channels import ONE_WAY, SEARCH, changed

P = "pipelines[0]"


def channel(*tables, target=SEARCH):
    return parse_channel(changed(f"{P}.tables", list(tables), changed(f"{P}.target", target)))


def router(*tables):
    return Router(channel(*tables).pipelines[0])


def problems(*tables, target=SEARCH):
    with pytest.raises(ChannelFileError) as caught:
        channel(*tables, target=target)
    return [(problem.path.removeprefix(f"{P}.tables"), problem.message) for problem in
            caught.value.problems]  # fmt: skip


# -- templates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{id", "brace"),
        ("id}", "brace"),
        ("{}", "brace"),
        ("fixed", "must name the key's columns"),
        ("{table}", "must name the key's columns"),
        ("{a}{b}", "run together"),
        ("{table}{id}", "run together"),
        ("{a}-{a}", "must not name a twice"),
        ("{a}\\{b}", "backslash"),
    ],
)
def test_malformed_templates(text, reason):
    with pytest.raises(IdTemplateError, match=reason):
        parse_id(text)
    ((path, message),) = problems({"from": "s.t", "id": text})
    assert path == "[0].id"
    assert reason in message


def test_a_template_may_be_a_reference_until_it_is_resolved():
    assert channel({"from": "s.t", "id": "${PREFIX}-{id}"})


@pytest.mark.parametrize(
    ("template", "routing", "key", "form"),
    [
        (None, None, ["a"], DocumentForm(("", ""), (0,))),
        (None, None, ["a", "b"], DocumentForm(("", ",", ""), (0, 1))),
        ("{B}-{a}", None, ["a", "b"], DocumentForm(("", "-", ""), (1, 0))),
        ("{table}-{a}", "x", ["a"], DocumentForm(("t-", ""), (0,), routing=1)),
        ("{a}/{b}", "B", ["a", "b"], DocumentForm(("", "/", ""), (0, 1), routing=1)),
    ],
)
def test_forms(template, routing, key, form):
    parsed = parse_id(template).of_table("s", "t") if template else None
    assert document_form(parsed, routing, key, location="tables[0]") == form


def test_columns_that_are_no_key_and_keys_that_are_left_out():
    with pytest.raises(ConfigurationError, match=r"tables\[4\].id names name, which is not part"):
        document_form(parse_id("{name}-{id}"), None, ["id"], location="tables[4]")
    with pytest.raises(ConfigurationError, match=r"lacks the key column id"):
        document_form(parse_id("{shop}"), None, ["shop", "id"], location="tables[4]")
    # The table's name is meant, not a column of this name.
    template = parse_id("{table}-{id}").of_table("s", "t")
    with pytest.raises(ConfigurationError, match="lacks the key column table"):
        document_form(template, None, ["id", "table"], location="tables[4]")


def test_a_name_with_a_backslash_has_no_position_in_an_id():
    with pytest.raises(ConfigurationError, match="backslash"):
        parse_id("{table}-{id}").of_table("s", "a\\b")


# -- what goes into one index ------------------------------------------------------------------


def test_what_only_means_something_for_documents():
    mysql = ONE_WAY["pipelines"][0]["target"]
    given = {"id": "{id}", "routing": "a", "zero_dates": "as_null", "geometry": "wkt"}
    found = problems({"from": "s.t", "to": "s.u", **given}, target=mysql)
    assert [path for path, _ in found] == [f"[0].{key}" for key in given]
    assert channel({"from": "s.t", **given})


@pytest.mark.parametrize(
    ("tables", "path"),
    [
        ([{"from": "s.a", "to": "x"}, {"from": "s.b", "to": "x"}], "[1].to"),
        ([{"from": "s.x"}, {"from": "s.b", "to": "x"}], "[1].to"),
        ([{"from": "r.X"}, {"from": "s.x"}], "[1].to"),
        ([{"from": "s.a", "to": "x", "id": "{id}"}, {"from": "s.b", "to": "x", "id": "{id}"}],
         "[1].to"),
        ([{"from": "s.a", "to": "x", "id": "a{id}"}, {"from": "s.b", "to": "x"}], "[1].to"),
        # "a-1" of one table and "a-1" of the other: 1 and "-1" behind "a-" and "a".
        ([{"from": "s.a", "to": "x", "id": "a-{id}"}, {"from": "s.b", "to": "x", "id": "a{id}"}],
         "[1].to"),
        ([{"from": "s.part_*", "to": "whole"}], "[0].to"),
        ([{"from": "*.orders"}], "[0].to"),
    ],
)  # fmt: skip
def test_tables_whose_rows_could_be_one_document(tables, path):
    ((found, _),) = problems(*tables)
    assert found == path


@pytest.mark.parametrize(
    "tables",
    [
        [{"from": "s.a", "to": "x", "id": "a-{id}"}, {"from": "s.b", "to": "x", "id": "b-{id}"}],
        [{"from": "s.a", "to": "x", "id": "{table}-{id}"},
         {"from": "s.b", "to": "x", "id": "{table}-{id}"}],
        [{"from": "s.a", "to": "x", "id": "{id}@a"}, {"from": "s.b", "to": "x", "id": "{id}@b"}],
        [{"from": "s.part_*", "to": "whole", "id": "{id}"}],
        [{"from": "s.part_*", "to": "whole", "id": "{table}-{id}"}],
        [{"from": "s.part_*", "to": "whole-*"}],
        [{"from": "s.*"}],
        [{"from": "s.a", "to": "x"}, {"from": "s.a", "to": "y", "id": "{table}-{id}"}],
    ],
)  # fmt: skip
def test_tables_that_are_reported_apart(tables):
    assert channel(*tables)


def test_tables_that_only_meet_in_a_run():
    routed = router({"from": "s.*"}, {"from": "r.*", "to": "*"})
    assert routed.route("s", "orders")
    with pytest.raises(ConfigurationError, match=r"rows of r\.orders and of s\.orders may become"):
        routed.route("r", "orders")
    with pytest.raises(ConfigurationError, match=r"s\.Orders"):
        routed.route("s", "Orders")


def test_one_entry_may_say_that_keys_are_unique_over_its_tables():
    routed = router({"from": "s.part_*", "to": "whole", "id": "{id}"})
    assert routed.route("s", "part_1")[0].target == routed.route("s", "part_2")[0].target


def test_one_table_in_one_index_twice():
    routed = router({"from": "s.t"}, {"from": "s.t", "to": "t"})
    with pytest.raises(ConfigurationError, match="may become the same document"):
        routed.route("s", "t")


def test_the_names_of_the_table_are_filled_in():
    entry = {"from": "s.part_*", "to": "all", "id": "{schema}.{table}-{id}", "routing": "shop"}
    first, second = (router(entry).route("s", f"part_{i}")[0] for i in (1, 2))
    one, two = first.document(["id"]), second.document(["id"])
    assert one == DocumentForm(("s.part_1-", ""), (0,), routing=1)
    assert one is not None
    assert two is not None
    assert one.distinguishes(two)
    assert pickle.loads(pickle.dumps(first)) == first


def test_rows_of_tables_have_no_form():
    target = ONE_WAY["pipelines"][0]["target"]
    (route,) = Router(channel({"from": "s.t"}, target=target).pipelines[0]).route("s", "t")
    assert route.document(["id"]) is None
