"""What lanes write down is added up as pytest would; what is missing is not good."""

import json

from tests.lanes import plan
from tests.lanes.summary import Results, closing_line, counted, skip_lines, slowest, together


def results(*said):
    made = Results()
    for what in said:
        made.add(json.dumps(what) + "\n")
    return made


def result(test, what, **more):
    return {"kind": "result", "test": test, "what": what, **more}


def test_counts_are_those_of_pytest():
    one = results(
        result("a", "", seconds=1.0),
        result("a", "passed", seconds=2.0),
        result("a", "", seconds=0.5),
    )
    two = results(result("b", "failed", seconds=9.0), result("b", "error"), result("c", "passed"))
    total = together([one, two])
    assert counted(total) == "1 failed, 2 passed, 1 error"
    assert closing_line(total, 3725.0).strip("= ") == (
        "1 failed, 2 passed, 1 error in 3725.00s (1:02:05)"
    )
    assert slowest(total) == ["    9.0 s  b"]
    assert total.failures == ["b"]
    assert one.good
    assert not two.good
    assert not total.good


def test_a_skip_that_nobody_expects_is_not_good(monkeypatch):
    found = results(result("t::a", "skipped", reason="Skipped: no such thing"))
    assert not found.good
    assert skip_lines(found) == ["SKIPPED, which is not expected: t::a: no such thing"]
    monkeypatch.setattr(plan, "EXPECTED_SKIPS", (("t::", "because"),))
    assert found.good
    assert skip_lines(found) == ["skipped: t::a: no such thing"]


def test_what_a_lane_was_in_the_middle_of_when_it_ended_is_not_good():
    lines = [{"kind": "begun", "test": "a"}, result("a", "passed"), {"kind": "begun", "test": "b"}]
    found = results(*lines, {"kind": "ended", "test": "a"})
    assert found.under_way == ["b"]
    assert not found.good
    found.add('{"kind": "ended", "te')  # half a line of a lane that was killed
    assert found.under_way == ["b"]
