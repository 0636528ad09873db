"""Each rule holds where it should, does not where it should not, and says when it does not know."""

import pytest

from setl.alarms.facts import NodeFacts, PipelineFacts
from setl.alarms.rules import RULES, judge_node, judge_pipeline, not_known
from setl.channel.fields.alarms import Alarms
from setl.systems.expiry import Expiration, ServerDisk, StreamRetention

NOW = 1_000_000.0
DAY = 86_400.0
WELL = {"state": "running", "lag": 0.4, "verification": {"age": 10.0, "differences": 0}}
KEPT = StreamRetention(written=NOW - 3600, retention=30 * DAY, now=NOW)


def disk(free, *, needed: int | None = 15, last: int | None = 5):
    return ServerDisk("es-1 of es1:9200", 100, free, needed, last)


def facts(**changes):
    given = {
        "leader": "n1",
        "figures": WELL,
        "standbys": 1,
        "verify_every": 3600.0,
        "retention": KEPT,
        "expirations": (Expiration("certificate", "db1:3306", NOW + 90 * DAY),),
        "disks": (disk(40),),
        "cutover": "",
    }
    return PipelineFacts("shop", "ab", **{**given, **changes})


def judged(of):
    return {judgement.key.rule: judgement for judgement in judge_pipeline(of, NOW)}


def holding(of):
    return {rule for rule, judgement in judged(of).items() if judgement.holds}


def figures(**changes):
    return facts(figures={**WELL, **changes})


WRONG = {
    "lag": figures(lag=301.0),
    "stopped": figures(state="failed", error="no such table"),
    "no_leader": facts(leader="", figures=None),
    "no_answer": facts(figures=None),
    "no_progress": figures(stalled="a lock is held by connection 7"),
    "no_standby": facts(standbys=0),
    "dead_letters": figures(dead_letters=1),
    "echoes": figures(echoes_replicated=1),
    "verification_differences": figures(verification={"differences": 2, "age": 1.0}),
    "verification_age": figures(verification={"differences": 0, "age": 3 * 3600 + 1.0}),
    "position": facts(
        retention=StreamRetention(written=NOW - DAY, retention=DAY + 3 * 3600, now=NOW)
    ),
    "position_lost": facts(retention=StreamRetention(lost="bin.000001 was purged")),
    "certificate": facts(expirations=(Expiration("certificate", "db1:3306", NOW + 13 * DAY),)),
    "password": facts(expirations=(Expiration("password", "retl at db1:3306", NOW - 1),)),
    "target_disk": facts(disks=(disk(14),)),
    "cutover": facts(cutover="the cut-over that ada began is at step `drain`"),
}


OF_NODES = {"disk", "channels_lost", "zookeeper_server"}


def test_nothing_holds_where_all_is_well():
    assert holding(facts()) == set()


@pytest.mark.parametrize("rule", WRONG)
def test_one_rule_holds_for_one_fault(rule):
    assert holding(WRONG[rule]) == {rule}


def test_every_rule_has_a_fault_here():
    assert set(WRONG) | OF_NODES == set(RULES)


def test_a_pipeline_that_tries_again_makes_no_progress():
    found = judged(figures(state="retrying", attempts=7, error="no connection"))["no_progress"]
    assert found.holds
    assert "7 attempts" in found.text
    assert "no connection" in found.text
    found = judged(figures(state="retrying", attempts=1, error="no connection"))["no_progress"]
    assert "1 attempt in a row has failed" in found.text


@pytest.mark.parametrize("rule", sorted(WRONG))
def test_every_rule_says_a_hint(rule):
    assert judged(WRONG[rule])[rule].hint


def test_the_position_says_when_it_will_be_purged():
    assert "will be purged in 3 h" in judged(WRONG["position"])["position"].text


def test_a_retention_that_a_person_knows_counts_where_it_is_shorter():
    rules = Alarms.model_validate({"position": {"retention": "2h"}})
    assert holding(facts(rules=rules)) == {"position"}
    unknown = StreamRetention(written=NOW - 3600, retention=None, now=NOW)
    assert holding(facts(retention=unknown)) == set()
    assert holding(facts(retention=unknown, rules=rules)) == {"position"}


def test_what_is_still_being_written_cannot_be_purged():
    assert holding(facts(retention=StreamRetention(written=None, retention=60.0, now=NOW))) == set()


def test_without_an_answer_of_the_leader_nobody_knows():
    found = judged(facts(figures=None))
    for rule in ("lag", "stopped", "no_progress", "dead_letters", "echoes"):
        assert found[rule].holds is None
    assert judged(facts(retention=None))["position"].holds is None
    assert judged(facts(cutover=None))["cutover"].holds is None


def test_of_servers_that_were_not_asked_or_do_not_answer_nobody_knows():
    def unknown(**changes):
        return {key.rule for key in not_known(facts(**changes))}

    assert unknown() == set()
    assert unknown(expirations=None, disks=None) == {"certificate", "password", "target_disk"}
    # One of its two servers has answered.
    assert unknown(unreachable="no connection", disks=()) == {"certificate", "password"}
    off = Alarms.model_validate({"expiry": {"enabled": False}})
    assert unknown(expirations=None, disks=(), rules=off) == set()


def test_a_target_needs_what_it_says_that_it_needs_or_a_tenth_or_what_a_person_says():
    small, enough = (disk(free, needed=None, last=None) for free in (9, 10))
    assert holding(facts(disks=(disk(15),))) == set()
    assert holding(facts(disks=(small,))) == {"target_disk"}
    assert holding(facts(disks=(enough,))) == set()
    rules = Alarms.model_validate({"target_disk": {"free_percent": 30}})
    assert holding(facts(rules=rules, disks=(disk(29),))) == {"target_disk"}
    assert holding(facts(rules=rules, disks=(disk(30),))) == set()
    assert holding(facts(disks=None)) == set()


def test_a_target_that_takes_no_writes_is_critical():
    found = judged(facts(disks=(disk(14),)))["target_disk"]
    assert (found.severity, found.text) == (
        "warning", "only 14 % (14 B) of the disk of es-1 of es1:9200 is free",
    )  # fmt: skip
    found = judged(facts(disks=(disk(4),)))["target_disk"]
    assert found.severity == "critical"
    assert "indexes on it take no writes" in found.text


@pytest.mark.parametrize("wanted", ["PAUSE", "STOP"])
def test_a_channel_that_is_not_to_run_is_only_watched_for_its_position(wanted):
    for rule, wrong in WRONG.items():
        changed = PipelineFacts(
            **{name: getattr(wrong, name) for name in wrong.__slots__} | {"wanted": wanted}
        )
        still = {"position", "position_lost", "certificate", "password", "cutover"} & {rule}
        assert holding(changed) == still, rule


def test_rules_can_be_switched_off_and_moved():
    off = Alarms.model_validate({"no_standby": {"enabled": False}, "lag": {"above": "1h"}})
    assert holding(facts(standbys=0, rules=off)) == set()
    assert "no_standby" not in judged(facts(rules=off))
    assert holding(facts(figures={**WELL, "lag": 1800.0}, rules=off)) == set()
    waits = Alarms.model_validate({"stopped": {"for": "5m"}, "repeat": "1d", "recover_after": 0})
    found = judged(facts(rules=waits))["stopped"]
    assert (found.patience, found.repeat, found.calm) == (300.0, DAY, 0.0)


def lasts_for(begun, left, rules=None):
    """What is said of a certificate that began so many days ago, and has so many left."""
    given = Expiration("certificate", "db1:3306", NOW + left * DAY, NOW - begun * DAY)
    found = judged(facts(expirations=(given,), rules=rules or Alarms()))["certificate"]
    return found.severity if found.holds else ""


def test_what_lives_for_days_is_reported_of_in_the_last_sixth_of_its_life():
    assert lasts_for(4, 2.5) == ""
    assert lasts_for(5.2, 0.8) == "warning"
    assert lasts_for(5.8, 0.2) == "critical"
    assert (lasts_for(351, 14), lasts_for(352, 13)) == ("", "warning")
    last_sent_at = Alarms.model_validate({"expiry": {"before": "3d"}})
    assert lasts_for(4, 2.5, last_sent_at) == "warning"


def test_a_nodes_disk():
    assert judge_node(NodeFacts("n1", "/tmp", 0.05), 0.1).holds
    assert judge_node(NodeFacts("n1", "/tmp", 0.5), 0.1).holds is False
    assert judge_node(NodeFacts("n1"), 0.1).holds is None
