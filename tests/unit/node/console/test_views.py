"""From the cluster to what pages show."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from arbiter.values import (
    Channel,
    ChannelState,
    Facts,
    HistoryItem,
    LeaderLock,
    LeaderLockStatus,
    NodeInfo,
    PipelineId,
)
from setl.model.standing import TableFinding
from setl.node.alarm_status import AlarmStatus, FiringAlarm
from setl.node.cluster.view import view_of
from setl.node.console.console import _contact_words
from setl.node.console.pages.mapping import as_text, mapped_tables
from setl.node.console.pages.node import node_page
from setl.node.console.pages.overview import MOST_ALARMS, overview_of, pipeline_row
from setl.node.console.pages.picture import NARROW, WIDE, Direction, drawn
from setl.node.console.pages.pipeline import WIDTH, pipeline_page, timeline_of
from setl.node.console.pages.problems import problems_of
from setl.node.console.pages.rendering import regions
from setl.node.console.pages.states import look_of
from setl.operate import units
from setl.run.measured.figures import VerificationFigures
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster

A, B = {"type": "mysql", "host": "a"}, {"type": "mysql", "host": "b", "port": 3307}
AB, BA = PipelineId("shop", "ab"), PipelineId("shop", "ba")
DEFINITION = {
    "channel": "shop",
    "pipelines": [
        {"name": "ab", "source": A, "target": B, "tables": [{"from": "s.t"}]},
        {"name": "ba", "source": B, "target": A, "tables": [{"from": "s.t", "to": "s.u"}]},
    ],
}

LOST = [{"address": f"zk{n}:2181", "answers": n != 2} for n in (1, 2, 3)]
"""What a node says of ZooKeeper's servers when the second is gone."""


def cluster(*, state=ChannelState.START, led=(AB, BA), nodes=("n1", "n2"), figures=None, **said):
    facts = Facts(
        nodes={nid: NodeInfo(nid, http=f"http://{nid}", ready=True) for nid in nodes},
        channels={"shop": Channel("shop", state, DEFINITION)},
        leader_locks={p: LeaderLock("n1", LeaderLockStatus.OVERTAKE, 7, 1, number=3) for p in led},
    )
    lines = [
        {
            "channel": "shop",
            "pipeline": p.pipeline,
            "decision": "leads",
            "figures": {"state": "running", "lag": 0.5, **(figures or {})},
        }
        for p in led
    ]
    answer = {"contact": "connected", "warm": True, "version": "1", "pipelines": lines, **said}
    answers = {nid: answer if nid == "n1" else {**answer, "pipelines": []} for nid in nodes}
    return facts, answers


def view(**options):
    facts, answers = cluster(**options)
    return view_of(facts, answers, 1000.0)


def render(page, part="r-problems"):
    """A part of the first page; if none is named, the one that says whether all is well."""
    around = {"path": "/", "writable": True, "elsewhere": ()}
    values = {"page": page, "session": None, "silences": (), "jobs": (), **around}
    return regions("overview", values)[part]


def levels(found):
    return [(p.level, p.subject) for p in found]


def test_nothing_is_wrong_where_all_run_with_a_standby():
    assert problems_of(view()) == []
    page = overview_of(view(), here="n1")
    assert page.counts == {"error": 0, "warning": 0, "note": 0}
    assert [row.name for row in page.pipelines] == ["shop/ab", "shop/ba"]
    assert page.pipelines[0].standbys == ("n2",)
    assert [(n.name, n.leads, n.here) for n in page.nodes] == [("n1", 2, True), ("n2", 0, False)]


def test_the_page_of_a_node():
    said = {
        "memory": {"driver": 1 << 30, "jvm": 2 << 30, "workers": 0, "worker_most": 0},
        "disk": {"folder": "/tmp", "size": 10 << 30, "free": 4 << 30},
        "threads": 48,
        "spark": {"master": "local[2]", "answered": 1.5},
    }
    seen = view(led=(AB,), contact="suspended", **said)
    page = node_page(seen, "n1", "n2")
    assert [(line.row.name, line.role) for line in page.pipelines] == [
        ("shop/ab", "leads"),
        ("shop/ba", "standby 2"),
    ]
    shown = {figure.name: (figure.value, figure.note) for figure in page.figures}
    assert shown["memory"][0] == "3 GiB"
    assert shown["threads"][0] == "48"
    assert shown["Spark"] == ("local[2]", "answered 1.5 s ago")
    assert shown["disk"] == ("4 GiB", "of 10 GiB free, /tmp")
    assert [p.text for p in page.problems] == ["its contact with ZooKeeper is suspended"]
    assert node_page(seen, "n2", "n2").problems  # what is wrong with itself only


def test_the_page_of_a_node_that_does_not_answer():
    facts, answers = cluster()
    page = node_page(view_of(facts, {**answers, "n1": None}, 1000.0), "n1", "n2")
    assert page.memory == ()
    assert "Spark" not in {figure.name for figure in page.figures}
    assert "does not answer over HTTP" in page.problems[0].text


def test_a_table_is_sorted_by_figures_and_not_by_their_texts():
    row = pipeline_row(view(figures={"lag": 75.04, "pending": None}).pipelines[0])
    assert row.keys == {"lag": 75.0, "rate": "", "pending": "", "leadership": 3}
    assert row.leadership == "3"
    assert look_of("failed").rank < look_of("retrying").rank < look_of("running").rank


def test_alarms_that_are_raised_are_listed_as_whoever_sends_them_reports():
    alarm = FiringAlarm("lag", "shop", "ab", "", "critical", "is late", "Wait", 940.0, calm=990.0)
    disk = replace(
        alarm, rule="disk", channel="", pipeline="", subject="node n2", silenced=True, calm=0.0
    )
    reported = asdict(AlarmStatus(sends=True, firing=(alarm, disk)))
    page = overview_of(view(alarms=reported), here="n1")
    assert [(row.about, row.lasts, row.silenced) for row in page.firing] == [
        ("shop/ab", "1 min, well for 10 s", False),
        ("node n2", "1 min", True),
    ]
    assert page.alarms == "2 alarms are raised, 2 of them critical"
    one = asdict(AlarmStatus(sends=True, firing=(alarm,)))
    assert overview_of(view(alarms=one), here="n1").alarms == "1 critical alarm is raised"
    assert page.problems == ()
    first = render(page)
    assert "What is wrong" in first
    assert "All is well" not in first
    assert 'href="/console/docs/troubleshooting.md#lag-grows">Lag grows</a>' in render(
        page, "r-alarms"
    )
    assert "All is well" in render(overview_of(view(), here="n1"))
    assert page.silenceable == ("shop", "shop/ab", "shop/ba")
    many = asdict(AlarmStatus(sends=True, firing=(alarm,) * (MOST_ALARMS + 2)))
    page = overview_of(view(alarms=many), here="n1")
    assert (len(page.firing), page.firing_more) == (MOST_ALARMS, 2)


def test_without_a_node_that_decides_nobody_knows_of_alarms():
    reported = asdict(AlarmStatus(sends=True))
    assert overview_of(view(alarms=reported), here="n1").decided
    assert not overview_of(view(), here="n1").decided


def test_errors_come_first_in_their_own_words():
    error = "the table s.t is missing (pipeline shop/ab). Create it"
    found = problems_of(view(figures={"state": "failed", "error": error, "dead_letters": 2}))
    assert [p.level for p in found] == ["error", "warning", "warning"]
    assert found[0].text == f"failed: {error}"
    assert found[0].hint == (
        "Once it is fixed, press “Try again what failed”, or run `setl start shop`"
    )
    assert "Look at its dead letters" in found[2].hint


@pytest.mark.parametrize(
    ("options", "level", "words"),
    [
        ({"led": ()}, "error", "has no leader"),
        ({"nodes": ("n1",)}, "warning", "has no standby"),
        ({"figures": {"lag": 61.0}}, "warning", "is 1 min 1 s behind"),
        ({"figures": {"stalled": "no room"}}, "warning", "stalled: no room"),
        ({"figures": {"no_heartbeats": "read-only"}}, "note", "no heartbeats can be written"),
        ({"figures": {"waiting_for": "its turn"}}, "warning", "waits for its turn"),
        ({"figures": {"echoes_replicated": 3}}, "error", "3 transactions"),
        ({"figures": {"state": "retrying", "error": "x", "attempts": 4}}, "warning", "4 attempts"),
        ({"state": ChannelState.PAUSE}, "note", "is paused"),
        ({"problem": "no such thing"}, "error", "cannot look at the cluster: no such thing"),
        ({"contact": "lost"}, "warning", "its contact with ZooKeeper is lost"),
        (
            {"figures": {"echoes_replicated": 1}},
            "error",
            "1 transaction of this channel came back and",
        ),
        ({"warm": False}, "note", "is not warm"),
        ({"zookeeper": LOST}, "warning", "zk2:2181 does not answer; n1, n2 see it so"),
    ],
)
def test_what_is_wrong_is_found(options, level, words):
    found = [p for p in problems_of(view(**options)) if words in p.text]
    assert found
    assert {p.level for p in found} == {level}


def test_who_does_not_reach_zookeeper_is_reported_why():
    arbiter: Any = MemoryArbiter(MemoryCluster(ManualClock()))
    arbiter.session.problem = lambda: "zk1:2181: Connection refused"
    words = _contact_words(arbiter, 1e9)
    assert words == "lost (zk1:2181: Connection refused)"
    (found,) = [p for p in problems_of(view(), contact=words) if p.subject == "this node"]
    assert (found.level, words in found.text) == ("error", True)


@pytest.mark.parametrize(("days", "level"), [(5, "warning"), (1, "error")])
def test_a_certificate_for_zookeeper_that_expires_is_wrong_once(days, level):
    facts, answers = cluster(nodes=("n1", "n2"))
    ends = 1000.0 + days * 86_400.0
    of = {"kind": "server", "of": "zk1:2181", "begins": ends - 1e8, "expires": ends}
    answers = {
        nid: {**(reported or {}), "zookeeper_certificates": [of]}
        for nid, reported in answers.items()
    }
    found = [p for p in problems_of(view_of(facts, answers, 1000.0)) if "zk1:2181" in p.text]
    assert [(p.level, p.subject, bool(p.hint)) for p in found] == [(level, "ZooKeeper", True)]


def test_what_is_suspended_is_behind_because_of_zookeeper_and_not_of_a_stage():
    figures = {"state": "suspended", "lag": 61.0, "seconds": {"load": 9.0}}
    (found,) = [p for p in problems_of(view(figures=figures)) if "behind" in p.text]
    assert "ZooKeeper" in found.hint


@pytest.mark.parametrize("why", [{"state": "retrying", "error": "x"}, {"stalled": "no room"}])
def test_what_cannot_go_on_is_not_behind_because_of_a_slow_stage(why):
    figures = {"lag": 61.0, "seconds": {"load": 9.0}}
    (slow,) = [p for p in problems_of(view(figures=figures)) if "behind" in p.text]
    assert slow.hint == "Most time goes into load"
    (found,) = [p for p in problems_of(view(figures={**figures, **why})) if "behind" in p.text]
    assert found.hint == ""


def test_a_node_that_lacks_something_is_no_standby_and_not_passed_over():
    why = "the environment variable X is not set"
    facts, answers = cluster(nodes=("n1", "n2", "n3"))
    lacking = replace(facts.nodes["n3"], not_ready={AB: why})
    seen = view_of(replace(facts, nodes={**facts.nodes, "n3": lacking}), answers, 1000.0)
    (found,) = problems_of(seen)
    assert (found.level, found.subject) == ("warning", "shop/ab")
    assert found.text == f"node n3 could not take over: {why}"
    assert [row.able for row in overview_of(seen, here="n1").pipelines] == [1, 2]


def test_a_stopped_channel_is_nothing_wrong():
    assert problems_of(view(state=ChannelState.STOP, led=())) == []


def test_a_node_that_does_not_answer_is_named_and_its_figures_are_unknown():
    facts, answers = cluster()
    seen = view_of(facts, {**answers, "n1": None}, 1000.0)
    assert ("warning", "node n1") in levels(problems_of(seen))
    page = overview_of(seen, here="n2", contact="suspended")
    assert page.problems[0].subject == "this node"
    assert page.pipelines[0].look == look_of("no answer")
    assert page.pipelines[0].lag == units.UNKNOWN
    assert pipeline_page(seen, AB, ()).counters == ()


def test_states_differ_in_word_and_sign_not_in_colour_alone():
    states = ("running", "retrying", "suspended", "paused", "stopped", "standby", "failed")
    looks = [look_of(state) for state in states]
    assert len({look.sign for look in looks}) == len(states)
    assert look_of("newly invented").word == "newly invented"


def directions(*ways):
    look = look_of("running")
    return [Direction(f"p{n}", s, t, look, "", "", "/") for n, (s, t) in enumerate(ways)]


def overlap(one, other):
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@pytest.mark.parametrize("measures", [WIDE, NARROW])
@pytest.mark.parametrize(
    "ways",
    [
        [("a", "b"), ("b", "a")],
        [("a", "b"), ("b", "c"), ("c", "a")],
        [("a", "x"), ("b", "x"), ("a", "y")],
        [("a", "b"), ("c", "d"), ("b", "a"), ("d", "c")],
        [("a", "a")],
        [],
    ],
)
def test_no_box_covers_another_and_every_arrow_touches_both_of_its_sites(measures, ways):
    picture = drawn(directions(*ways), measures)
    for i, one in enumerate(picture.boxes):
        assert one.x >= 0
        assert one.x + one.width <= picture.width
        assert one.y + one.height <= picture.height
        assert not any(overlap(one, other) for other in picture.boxes[i + 1 :])
    for arrow in picture.arrows:
        for site in (arrow.direction.source, arrow.direction.target):
            cli_subprocess = [b for b in picture.boxes if b.title == site]
            assert any(b.y <= arrow.y <= b.y + b.height for b in cli_subprocess)


def test_an_arrow_points_from_source_to_target():
    there, back = drawn(directions(("a", "b"), ("b", "a"))).arrows
    assert there.start < there.end
    assert back.start > back.end
    a, b = sorted(drawn(directions(("a", "b"), ("b", "a"))).boxes, key=lambda box: box.x)
    assert (a.title, b.title) == ("a", "b")
    assert there.start == a.x + a.width


def test_a_timeline_shows_who_led_and_the_outage_between():
    items = [
        HistoryItem(1, "n1", "first", 0.0),
        HistoryItem(2, "n2", "n1 was gone", 500.0, 100.0, redelivered=1, outage_least=6.0),
    ]
    line = timeline_of(items, 1000.0, leads=True)
    first, second = line.terms
    # A leader that had nothing to apply for long was there until its session fell silent.
    assert (first.x, first.width) == (0, 494)
    assert (second.x, second.width) == (500, 500)
    assert "so far" in second.title
    assert second.title.endswith("outage 6 s to 1 min 40 s, 1 row redelivered")
    assert [nid for nid, _ in line.nodes] == ["n1", "n2"]
    many = [HistoryItem(n, "n1", "", n * 1.0) for n in range(200)]
    assert all(
        r.x >= 0 and r.x + r.width <= WIDTH for r in timeline_of(many, 1e6, leads=True).terms
    )
    assert timeline_of([], 1.0, leads=False).terms == ()


def test_the_page_of_a_pipeline():
    figures = {
        "seconds": {"transform": 1.0, "load": 3.0},
        "tables": {"s.t": {"upserts": 5, "deletes": 1}, "s.u": {"upserts": 50, "deletes": 0}},
        "table_load": {"state": "reading", "rows": 10, "rows_expected": 40, "rows_per_second": 5},
    }
    page = pipeline_page(view(figures=figures), AB, [HistoryItem(7, "n1", "first", 900.0)])
    assert (page.source, page.target) == ("a:3306", "b:3307")
    assert [(s.name, s.share, s.width) for s in page.stages] == [
        ("transform", "25 %", 250),
        ("load", "75 %", 750),
    ]
    assert [t.table for t in page.tables] == ["s.u", "s.t"]
    assert page.load is not None
    assert (page.load.done, page.load.expected, page.load.open) == (10, 40, True)
    assert page.mapping[0].target == "same schema and table"
    assert "behind" not in {figure.name for figure in page.now}  # nobody counts it of a binlog
    of_kafka = pipeline_page(view(figures={"behind": 1200}), AB, ())
    assert {figure.name: figure.value for figure in of_kafka.now}["behind"] == "1,200"


def test_tables_are_shown_with_their_defaults():
    assert mapped_tables(DEFINITION, "ba")[0].target == "s.u"
    assert mapped_tables({"pipelines": "rubbish"}, "ab") == []


@pytest.mark.parametrize(
    ("written", "hidden"),
    [("hunter2", True), ("${PW:-hunter2}", True), ("x${PW}hunter2", True), ("${PW}", False)],
)
def test_no_secret_is_ever_shown(written, hidden):
    source = {"type": "mysql", "host": "a", "user": "retl", "password": written}
    target = {"type": "elasticsearch", "hosts": [f"http://u:{written}@es1:9200"]}
    definition = {"pipelines": [{"name": "ab", "source": source, "target": target}]}
    text = as_text(definition)
    assert "hunter2" not in text
    assert ("(hidden)" in text.replace("http://(hidden)@", "")) is hidden
    assert "host: a" in text


def test_what_is_wrong_with_several_pipelines_is_said_once():
    seen = view(nodes=("n1",))
    (problem,) = problems_of(seen)
    assert (problem.pipeline, problem.also) == (AB, (BA,))
    text = render(overview_of(seen, here="n1"))
    assert text.count("has no standby") == 1
    for ident in (AB, BA):
        assert f'href="/console/pipelines/{ident}"' in text


def test_standing_verification_is_shown_and_what_differs_is_a_warning():
    found = TableFinding("s.t", "s.u", missing=2, extra=1)
    reported = VerificationFigures(
        "comparing", number=4, coverage=0.256, table="s.t", differences=3, findings=[found]
    )
    seen = view(figures={"verification": asdict(reported)})
    part = pipeline_page(seen, AB, ()).verification
    assert part is not None
    assert (part.percent, part.under_way) == (26, True)
    assert part.sentence == "3 keys differ, pass 4 comparing, 26 % done, now s.t"
    assert [(row.table, row.missing, row.extra) for row in part.findings] == [("s.u", "2", "1")]
    assert {p.text for p in problems_of(seen) if p.pipeline == AB} == {
        "3 keys of source and target differ, says its verification"
    }
    waits = asdict(VerificationFigures("waiting", number=4, coverage=1.0, next_at=1600.0))
    part = pipeline_page(view(figures={"verification": waits}), AB, ()).verification
    assert part is not None
    assert not part.under_way
    assert part.sentence.endswith("100 % done, the next one in 10 min")
    assert pipeline_page(view(), AB, ()).verification is None


REFERRING = {
    "channel": "shop",
    "pipelines": [
        {
            "name": "ab",
            "source": {
                "type": "mysql",
                "host": "${SHOP_A_HOST:-db-a.example.com}",
                "port": "${SHOP_A_PORT}",
                "password": "${SHOP_A_PASSWORD}",
            },
            "target": {"type": "elasticsearch", "hosts": ["https://retl:${ES_PASSWORD}@es1:9200"]},
            "tables": [{"from": "s.t"}],
        }
    ],
}


def sites(environment):
    facts, answers = cluster(led=(AB,))
    facts = replace(facts, channels={"shop": Channel("shop", ChannelState.START, REFERRING)})
    view = view_of(facts, answers, 1000.0)
    page = pipeline_page(view, AB, (), environment)
    first = overview_of(view, here="n1", environment=environment)
    assert {box.title for box in first.channels[0].wide.boxes} == {page.source, page.target}
    return page.source, page.target


def test_sites_are_shown_by_the_addresses_that_the_node_uses():
    environment = {"SHOP_A_HOST": "10.0.0.1", "SHOP_A_PORT": "3307", "ES_PASSWORD": "open@sesame"}
    assert sites(environment) == ("10.0.0.1:3307", "https://es1:9200")
    assert sites({}) == ("db-a.example.com:${SHOP_A_PORT}", "https://es1:9200")
    assert sites(None)[1] == "https://es1:9200"
