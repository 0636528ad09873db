"""What `setl alarm list` says."""

import json
import time

import pytest

from arbiter.values import AlarmSender
from setl.alarms.alarm_state import Alarm, AlarmState
from setl.alarms.judgement import AlarmKey


@pytest.fixture
def raised(shop):
    now = time.time()
    state = AlarmState(
        (
            Alarm(AlarmKey("lag", "shop", "ab"), now - 400, now - 300, hint="Look at the target"),
            Alarm(AlarmKey("lag", "shop", "ba"), now - 400, now - 300, hint="Look at the target"),
            Alarm(AlarmKey("disk", subject="node n2"), now - 400, now - 300),
        )
    )
    shop.arbiter.alarms.store(state.to_json(), None)
    return shop


def listed(shop, capsys, *options):
    assert shop.run("alarm", "list", *options) == 0
    return capsys.readouterr().out


def test_it_says_what_to_do_and_where_the_docs_say_more_once_for_each_rule(raised, capsys):
    raised.node("n1")
    sends = raised.node("n2")
    sends.arbiter.alarms.take(AlarmSender("n2", (), sends.arbiter.session.session_id()))
    address = raised.arbiter.facts().nodes["n2"].http
    text = listed(raised, capsys)
    pages = f"{address}/console/docs/troubleshooting.md"
    assert text.count(f"lag: Look at the target; see {pages}#lag-grows\n") == 1
    assert f"disk: see {pages}#alarms\n" in text
    rows = json.loads(listed(raised, capsys, "-o", "json"))
    assert {row["rule"]: row["docs"] for row in rows} == {
        "lag": "troubleshooting.md#lag-grows", "disk": "troubleshooting.md#alarms",
    }  # fmt: skip


def test_without_a_node_that_answers_it_names_the_section(raised, capsys):
    assert "disk: see troubleshooting.md#alarms in the docs\n" in listed(raised, capsys)
