"""What a channel file says of standing verification, and what it cannot ask for."""

import copy

import pytest

from setl.channel.reading import parse_channel, resolve_and_parse
from setl.channel.text.problems import ChannelFileError

from .channels import DTS, SEARCH, changed
from .test_conflict_rules import both_ways

P = "pipelines[0]"
EVERY = {"every": "6h"}
DATABASE = {"host": "a", "user": "u"}
LOG = {"type": "kafka", "brokers": ["k:9092"], "topic": "t"}


def problems_of(definition):
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(definition)
    return [f"{p.path}: {p.message}" for p in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("6h", 21_600), ("90m", 5_400), ("1d 12h", 129_600), ("1D12H", 129_600), ("45s", 45),
        ("1.5h", 5_400), (3600, 3600), ("3600", 3600), (0.5 + 1, 1.5),
    ],
)  # fmt: skip
def test_times_are_written_as_people_do(written, seconds):
    file = parse_channel(changed(f"{P}.verify", {"every": written}))
    wanted = file.verification("p")
    assert wanted is not None
    assert (wanted.every, wanted.rate, wanted.repair) == (seconds, 20_000, False)


@pytest.mark.parametrize("wrong", ["", "h", "6h6h", "12h 1d", "-1h", "0s", "400d", "inf", "1 week"])
def test_what_is_no_time_is_refused(wrong):
    (problem,) = problems_of(changed(f"{P}.verify", {"every": wrong}))
    assert problem.startswith("pipelines[0].verify.every: ")


def test_a_reference_may_stand_for_a_time():
    definition = changed(f"{P}.verify", {"every": "${EVERY:-6h}"})
    wanted = resolve_and_parse(definition, {"EVERY": "1h"}).verification("p")
    assert wanted is not None
    assert wanted.every == 3600


def test_a_pipeline_has_its_own_or_the_channels():
    definition = both_ways(None, None, verify=EVERY)
    definition["pipelines"][1]["verify"] = {"every": "1h", "rate": 5}
    file = parse_channel(definition)
    ab, ba = (file.verification(name) for name in ("ab", "ba"))
    assert ab is not None
    assert ba is not None
    assert [(v.every, v.rate) for v in (ab, ba)] == [(21_600, 20_000), (3600, 5)]
    assert parse_channel(both_ways(None, None)).verification("ab") is None


def test_no_direction_of_a_two_way_channel_repairs_by_itself_without_a_policy():
    repair = {**EVERY, "repair": True}
    (problem,) = problems_of(both_ways(None, None, verify=repair))
    assert problem.startswith("verify.repair: cannot be `true` for pipelines[0], which writes what")
    definition = both_ways(None, None)
    definition["pipelines"][1]["verify"] = repair
    (problem,) = problems_of(definition)
    assert problem.startswith("pipelines[1].verify.repair: cannot be `true`")
    assert "`setl verify --repair`" in problem
    definition["pipelines"][1]["tables"].append({"from": "shop.other", "conflict": "home"})
    assert "while pipelines[1].tables[0] has no `conflict` policy" in problems_of(definition)[-1]
    one_way = copy.deepcopy(definition)
    for pipeline in one_way["pipelines"]:
        pipeline["tables"] = [{"from": "shop.stock"}]
    one_way["pipelines"][0]["target"]["host"] = "c"
    one_way["pipelines"][1]["target"]["host"] = "d"
    assert parse_channel(one_way).verification("ba") is not None


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (DTS, SEARCH, "needs the `database` of the topic"),
        (None, LOG, "means nothing to a relay"),
        ({**DTS, "partition": 3, "database": DATABASE}, SEARCH, "needs a topic of one partition"),
        ({**DTS, "database": DATABASE}, SEARCH, ""),
        (None, SEARCH, ""),
    ],
    ids=["no database", "relay", "partition", "subscription", "index"],
)
@pytest.mark.parametrize("path", ["verify", f"{P}.verify"])
def test_what_can_be_verified(path, source, target, message):
    definition = changed(path, EVERY)
    definition = changed(f"{P}.target", target, definition)
    if source:
        definition = changed(f"{P}.source", source, definition)
    if not message:
        assert parse_channel(definition).verification("p") is not None
        return
    found = [p for p in problems_of(definition) if p.startswith(f"{path}: ")]
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize("policy", ["home", {"newest": "touched"}])
def test_both_directions_may_repair_where_a_policy_decides(policy):
    file = parse_channel(both_ways(policy, policy, verify={**EVERY, "repair": True}))
    for name in ("ab", "ba"):
        wanted = file.verification(name)
        assert wanted is not None
        assert wanted.repair
