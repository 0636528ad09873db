"""What is told of alarms: when, how often, and that it is over."""

from dataclasses import replace

import pytest

from setl.alarms.alarm_state import (
    Alarm,
    AlarmState,
    Event,
    Notice,
    Silence,
    silences_from_json,
    silences_to_json,
)
from setl.alarms.deciding import MOST_ALARMS, decide, firing
from setl.alarms.facts import PipelineFacts
from setl.alarms.judgement import AlarmKey, Judgement
from setl.alarms.restarting import due_restarts
from setl.channel.fields.alarms import Alarms

LAG = AlarmKey("lag", "shop", "ab")
RULE = Judgement(LAG, True, "is 6 min behind", "look", patience=120.0, calm=60.0, repeat=3600.0)


class Watched:
    """One rule over time, from 1000 on."""

    def __init__(self):
        self.alarms, self.silences, self.now = (), (), 1000.0

    def after(self, seconds, holds: bool | str | None = True, **changes):
        """The kinds of the events after so many seconds."""
        self.now += seconds
        rules = () if holds == "gone" else (replace(RULE, holds=holds, **changes),)
        # As another node would, that reads what was kept.
        retention = AlarmState.from_json(AlarmState(alarms=self.alarms).to_json()).alarms
        assert retention == self.alarms
        self.alarms, events = decide(rules, retention, self.silences, self.now)
        self.events = events
        return [event.kind for event in events]

    def silence(self, seconds, **of):
        self.silences = (Silence("s", self.now + seconds, **of),)


@pytest.fixture
def watched():
    return Watched()


def raised(watched):
    assert watched.after(0) == []
    assert watched.after(119.9) == []
    assert watched.after(0.1) == ["firing"]


def test_it_is_raised_once_when_it_has_lasted_long_enough(watched):
    raised(watched)
    assert watched.after(5) == []
    assert [alarm.key for alarm in firing(watched.alarms)] == [LAG]


def test_it_is_not_raised_if_it_passes_meanwhile(watched):
    watched.after(0)
    assert watched.after(100, holds=False) == []
    assert watched.alarms == ()
    assert watched.after(1) == []
    assert watched.after(119) == []
    assert firing(watched.alarms) == []


def test_it_is_over_when_all_has_been_well_for_a_while(watched):
    raised(watched)
    assert watched.after(10, holds=False) == []
    assert watched.after(59, holds=False) == []
    assert watched.after(1, holds=False) == ["recovered"]
    assert watched.alarms == ()


def test_one_that_comes_and_goes_is_reported_once(watched):
    raised(watched)
    for _ in range(10):
        assert watched.after(30, holds=False) == []
        assert watched.after(30) == []


def test_it_is_repeated_with_the_newest_text(watched):
    raised(watched)
    assert watched.after(3599.9) == []
    assert watched.after(0.1, text="is 2 h behind") == ["repeated"]
    assert watched.events[0].text == "is 2 h behind"
    assert watched.after(3599) == []
    assert watched.after(1) == ["repeated"]


def test_what_nobody_knows_changes_nothing(watched):
    watched.after(0)
    assert watched.after(60, holds=None) == []
    assert watched.after(60) == ["firing"]
    assert watched.after(1000, holds=None) == []
    assert watched.after(2600, holds=None, text="nothing is known") == ["repeated"]
    assert watched.events[0].text == "is 6 min behind"
    assert Watched().after(0, holds=None) == []


def test_one_that_is_not_watched_any_more_is_over(watched):
    raised(watched)
    assert watched.after(1, holds="gone") == []
    assert watched.after(60, holds="gone") == ["recovered"]
    watched.after(0)
    assert watched.after(1, holds="gone") == []
    assert watched.alarms == ()


def test_a_silence_delays_and_an_end_is_reported_of_what_was_reported(watched):
    watched.silence(600, channel="shop")
    watched.after(0)
    assert watched.after(200) == []
    assert len(firing(watched.alarms)) == 1
    assert watched.after(400) == ["firing"]
    watched.silence(10_000, rule="lag")
    assert watched.after(5000) == []
    watched.after(0, holds=False)
    assert watched.after(60, holds=False) == ["recovered"]


def test_what_was_never_reported_ends_without_a_word(watched):
    watched.silence(10_000)
    watched.after(0)
    watched.after(200)
    watched.after(0, holds=False)
    assert watched.after(60, holds=False) == []
    assert watched.alarms == ()


@pytest.mark.parametrize(
    ("of", "covers"),
    [
        ({}, True),
        ({"channel": "shop"}, True),
        ({"channel": "shop", "pipeline": "ab", "rule": "lag"}, True),
        ({"channel": "shop", "pipeline": "ba"}, False),
        ({"channel": "other"}, False),
        ({"rule": "stopped"}, False),
    ],
)
def test_what_a_silence_covers(of, covers):
    silence = Silence("s", 100.0, **of)
    assert silence.covers(LAG, 99.0) is covers
    assert not silence.covers(LAG, 100.0)


def test_no_more_alarms_are_stored_than_fit_and_the_worst_stay():
    rules = [
        replace(RULE, key=AlarmKey("lag", "shop", f"p{i}"), patience=0.0 if i else 10.0)
        for i in range(MOST_ALARMS + 1)
    ]
    worst = replace(rules[-1], key=AlarmKey("stopped", "shop", "p"), severity="critical")
    alarms, _ = decide([*rules, worst], (), (), 1000.0)
    assert len(alarms) == MOST_ALARMS
    assert alarms[0].key.rule == "stopped"
    assert all(alarm.fired for alarm in alarms)


def test_what_is_stored_comes_back_and_what_cannot_be_read_is_left_out():
    event = Event("firing", LAG, "warning", "text", "way", 3.0)
    retention = AlarmState(
        (Alarm(LAG, 1.0, 2.0, 3.0, 4.0, "critical", "t", "w"),),
        (Notice("n", 5.0, (event,), ("mail",)),),
        {"shop/ab": (1.0, 2.0)},
    )
    assert AlarmState.from_json(retention.to_json()) == retention
    broken = retention.to_json()
    broken["alarms"] += [7, {}, {"key": ["a"]}]
    broken["notices"] += [None, {"id": 1}]
    assert AlarmState.from_json(broken) == retention
    assert AlarmState.from_json({"alarms": 3, "notices": {}, "restarts": []}) == AlarmState()
    silences = (Silence("a", 7.0, "shop", "ab", "lag", "me", "work"),)
    assert silences_from_json(silences_to_json(silences)) == silences


STOPPED = (Alarm(AlarmKey("stopped", "shop", "ab"), 990.0, 1000.0, 1000.0),)


def stopped(**changes):
    given = {"figures": {"state": "failed", "error": "no table"}, "leader": "n1"}
    rules = Alarms.model_validate({"restart": {"times": 2, "after": "1m"}})
    return PipelineFacts("shop", "ab", **{**given, "rules": rules, **changes})


def test_a_stopped_pipeline_is_started_again_at_most_so_often_an_hour():
    def due(now, *times):
        return [each.number for each in due_restarts([stopped()], STOPPED, {"shop/ab": times}, now)]

    assert due(1059.0) == []
    assert due(1060.0) == [1]
    assert due(1100.0, 1060.0) == []
    assert due(1120.0, 1060.0) == [2]
    assert due(3000.0, 1060.0, 1120.0) == []
    assert due(1060.0 + 3600, 1060.0, 1120.0) == [2]


@pytest.mark.parametrize(
    "facts",
    [
        stopped(rules=Alarms()),
        stopped(wanted="STOP"),
        stopped(wanted="PAUSE"),
        stopped(figures={"state": "running"}),
        stopped(figures=None),
    ],
)
def test_nothing_else_is_started_again(facts):
    assert list(due_restarts([facts], STOPPED, {}, 5000.0)) == []
    assert list(due_restarts([stopped()], (), {}, 5000.0)) == []


def test_whoever_looks_gets_the_words_of_now_and_nobody_is_reported_again(watched):
    raised(watched)
    assert watched.after(60, text="is 9 min behind") == []
    now = replace(RULE, text="is 9 min behind")
    assert [alarm.text for alarm in firing(watched.alarms, [now])] == ["is 9 min behind"]
    assert [alarm.text for alarm in watched.alarms] == ["is 6 min behind"], "nothing is stored"
    for unsure in (None, False):
        (alarm,) = firing(watched.alarms, [replace(now, holds=unsure)])
        assert alarm.text == "is 6 min behind"


@pytest.mark.parametrize(("known", "last_sent_at"), [(False, []), (True, ["recovered"])])
def test_an_alarm_about_a_server_that_does_not_answer_is_not_over(known, last_sent_at):
    """A node that has just begun to decide has never heard of what the server told before."""
    key = AlarmKey("certificate", "shop", "ab", "db1:3306")
    alarms = (
        Alarm(key, 1000.0, severity="warning", text="expires", fired=1000.0, last_sent_at=1000.0),
    )
    unknown = set() if known else {AlarmKey("certificate", "shop", "ab")}
    kinds = []
    for now in (2000.0, 2100.0):
        alarms, events = decide((), alarms, (), now, unknown)
        kinds += [event.kind for event in events]
    assert kinds == last_sent_at
    assert bool(alarms) is not known
