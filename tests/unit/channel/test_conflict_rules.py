"""What a channel file may say about rows that both sites write."""

import copy

import pytest

from setl.channel.reading import ChannelFileError, parse_channel
from setl.channel.routes.routing import Router
from setl.model.conflict import ConflictPolicy

from .channels import DTS, SEARCH, changed

NEWEST = {"newest": "touched"}


def both_ways(at_a: object = "home", at_b: object = "home", **channel):
    def one(name, source, target, conflict):
        return {
            "name": name,
            "source": {"type": "mysql", "host": source, "user": "u"},
            "target": {"type": "mysql", "host": target, "user": "u"},
            "tables": [{"from": "shop.stock", "conflict": conflict}],
        }

    pipelines = [one("ab", "a", "b", at_a), one("ba", "b", "a", at_b)]
    return {"channel": "shop", "pipelines": pipelines, **channel}


def problems_of(definition):
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(definition)
    return [f"{p.path}: {p.message}" for p in caught.value.problems]


@pytest.mark.parametrize("policy", ["home", "source", NEWEST])
def test_a_policy_that_both_pipelines_have_is_taken(policy):
    file = parse_channel(both_ways(policy, policy))
    expected = {"home": ConflictPolicy("", True), "source": None}
    wanted = ConflictPolicy("touched", True) if policy is NEWEST else expected[policy]
    router = Router(file.pipelines[0], from_home=file.from_home("ab"))
    assert router.route("shop", "stock")[0].conflict == wanted
    assert router.decides == (wanted is not None)
    # What both sites write is looked at in the order in which it was written.
    assert router.mixes("shop") == (wanted is None)
    assert not router.mixes("retl")


@pytest.mark.parametrize(
    ("mapping", "goes_back", "stays"),
    [
        ({}, "id Anything", ""),
        ({"exclude": ["Own"]}, "id", "own OWN"),
        ({"include": ["id", "Touched"]}, "ID touched", "own"),
        ({"columns": {"there": "here"}}, "here own", "there"),
        ({"columns": {"there": "here"}, "include": ["id"]}, "here id", "there own"),
    ],
)
def test_which_columns_of_the_target_go_to_the_source(mapping, goes_back, stays):
    forth, back = both_ways("home", "home")["pipelines"]
    back = {**back, "tables": [{**back["tables"][0], **mapping}]}
    file = parse_channel({"channel": "shop", "pipelines": [forth, back]})
    (route,) = Router(file.pipelines[0], back=file.pipelines[1]).route("shop", "stock")
    returning = route.returning
    assert returning is not None
    assert all(map(returning.has, goes_back.split()))
    assert not any(map(returning.has, stays.split()))
    assert Router(file.pipelines[0]).route("shop", "stock")[0].returning is None


@pytest.mark.parametrize(("home", "from_home"), [(None, [True, False]), ("ba", [False, True])])
def test_the_home_site_is_the_source_of_the_pipeline_named_or_of_the_first(home, from_home):
    file = parse_channel(both_ways(**({"home": home} if home else {})))
    assert [file.from_home(p.name) for p in file.pipelines] == from_home


TABLE = "pipelines[0].tables[0]"
MISTAKES = [
    ("home", "elsewhere", "home: names no pipeline of the channel; there are ab, ba"),
    (f"{TABLE}.conflict", "away", "pipelines[0].tables[0].conflict"),
    (f"{TABLE}.conflict", {"newest": ""}, "newest"),
    (f"{TABLE}.conflict", "source", "must be the same as in pipelines[1].tables[0]"),
    (f"{TABLE}.conflict", NEWEST, "must be the same as in pipelines[1].tables[0]"),
    (f"{TABLE}.where", "a > 1", "cannot be combined with `where`"),
    (f"{TABLE}.group", "g", "cannot be combined with `group`"),
    (f"{TABLE}.key", ["a"], "cannot be combined with `key`"),
    (f"{TABLE}.processor", "m:f", "cannot be combined with `processor`"),
    (f"{TABLE}.columns", {"b": "a + 1"}, "cannot be combined with the expression of `b`"),
    (f"{TABLE}.columns", {"b": "`a` + 1"}, "cannot be combined with the expression of `b`"),
    ("pipelines[0].target", SEARCH, "needs a target of type mysql"),
    ("pipelines[0].source", {**DTS, "partitions": 4}, "needs the changes in one order"),
]


@pytest.mark.parametrize(("path", "value", "message"), MISTAKES)
def test_what_a_policy_cannot_be_combined_with(path, value, message):
    problems = problems_of(changed(path, value, both_ways()))
    assert any(message in problem for problem in problems), problems


def test_a_policy_needs_two_directions():
    definition = both_ways()
    alone = {**definition, "pipelines": definition["pipelines"][:1]}
    assert "needs a channel of two pipelines" in problems_of(alone)[0]
    third = copy.deepcopy(definition["pipelines"][0]) | {"name": "third"}
    three = {**definition, "pipelines": [*definition["pipelines"], third]}
    assert any("needs a channel of two pipelines" in p for p in problems_of(three))


def test_a_column_that_has_another_name_at_the_target_is_fine():
    definition = changed(f"{TABLE}.columns", {"b": "a"}, both_ways(NEWEST, {"newest": "seen"}))
    parse_channel(definition)
