"""Long work of other nodes on a page: under way there, or broken off with its node."""

import threading
from dataclasses import replace

from arbiter.values import OperatorAction
from setl.node.console.actions.cli_subprocess import CliSubprocess, Output
from setl.node.console.actions.jobs import Job
from setl.node.console.under_way import work_elsewhere
from tests.arbiter_in_memory import MemoryArbiter
from tests.unit.node.http_node import THERE
from tests.waiting import eventually

ON = str(THERE)
REPAIR = OperatorAction("bert, console of n2", "repair", ON, 1_000.0, session=5)
NOW = 1_100.0


def shown(*actions, own=(), session=9, now=NOW):
    return [(job.title, job.state) for job in work_elsewhere(actions, ON, own, session, now)]


def test_what_was_broken_off_is_reported_until_it_is_done_again_or_a_day_is_over():
    broken = replace(REPAIR, abandoned=True)
    assert shown(REPAIR) == [("Verify and repair", "under way")]
    assert shown(broken) == [("Verify and repair", "broken off")]
    assert shown(replace(REPAIR, ended=1_050.0)) == []
    again = replace(REPAIR, at=1_060.0)
    assert shown(broken, again) == [("Verify and repair", "under way")]
    assert shown(broken, replace(again, ended=1_090.0)) == []
    assert shown(broken, now=NOW + 86_400) == []


def test_only_long_work_on_this_pipeline_is_reported_the_newest_first():
    verify = replace(REPAIR, what="verify", at=1_010.0)
    others = [replace(REPAIR, on="shop/back"), replace(REPAIR, what="load", at=1_020.0)]
    assert [title for title, _ in shown(REPAIR, verify, *others)] == ["Verify", "Verify and repair"]


def test_work_of_this_node_is_not_reported_twice():
    job = Job(1, ON, "Verify and repair", "under way", 1_000.0)
    assert shown(REPAIR, own=[job]) == []
    ended = replace(job, state="done")
    assert shown(REPAIR, own=[ended]) != []
    # The log tells of its end a moment later than the node knows it.
    assert shown(REPAIR, own=[ended], session=REPAIR.session) == []


def test_the_page_of_another_node_reports_of_it_to_who_is_logged_in(node, anna, browser):
    leaving = MemoryArbiter(node.cluster)
    leaving.actions.add(replace(REPAIR, at=node.cluster.clock.now()))
    page = f"/console/pipelines/{ON}"
    text = anna.get(page).body.decode()
    assert "<strong>Verify and repair</strong> under way" in text
    assert "by bert, console of n2" in text
    leaving.close()
    node.cluster.clock.advance(10)
    text = anna.get(page).body.decode()
    assert "<strong>Verify and repair</strong> broken off" in text
    assert "What it had asked leaders for is done all the same" in text
    assert "console of n2" not in browser.get(page).body.decode()
    log = anna.get("/console/actions").body.decode()
    assert "not known: whoever did it ended, or lost ZooKeeper" in log


def test_a_command_of_this_node_is_not_taken_for_work_of_another(node, anna, monkeypatch):
    """It keeps an action of its own, whose end is known as soon as that of the work is."""
    begun, may_end = threading.Event(), threading.Event()

    def output(*_, **__):
        own = MemoryArbiter(node.cluster)
        action = own.actions.add(replace(REPAIR, at=node.cluster.clock.now()))
        begun.set()
        assert may_end.wait(30)
        own.actions.end(action, "asked for: 3 keys", node.cluster.clock.now())
        own.close()
        return Output(0, "", "")

    monkeypatch.setattr(CliSubprocess, "output", output)
    page = f"/console/pipelines/{ON}"
    anna.do("repair", ON, sure="yes")
    assert begun.wait(30)
    title = "<strong>Verify and repair</strong>"
    assert anna.get(page).body.decode().count(f"{title} under way") == 1
    may_end.set()
    found = []

    def is_done():
        found.append(anna.get(page).body.decode())
        return f"{title} done" in found[-1]

    eventually(is_done, 30)
    assert found[-1].count(title) == 1
