"""The search itself, on protocols that are small enough to see through."""

import pytest

from tests.unit.protocol.explore import Step, explore


def counting(state):
    """Add one or two, up to ten."""
    for by in (1, 2):
        if state + by <= 10:
            violation = "seven is bad" if state + by == 7 else ""
            yield Step(f"add {by}", state + by, violation=violation)


def test_a_violation_comes_with_a_shortest_trace():
    found = explore(0, counting)
    assert found.violation == "seven is bad"
    assert [state for _, state in found.trace] in ([1, 3, 5, 7], [2, 4, 6, 7], [2, 4, 5, 7])
    assert "add 2" in str(found)


def test_without_a_violation_every_state_is_reached_once():
    def around(state):
        yield Step("on", (state + 1) % 1000)
        yield Step("back", (state - 1) % 1000)

    found = explore(0, around)
    assert (found.states, found.steps, found.violation, found.trace) == (1000, 2000, "", ())


def test_states_with_the_same_key_count_as_one():
    found = explore(0, lambda n: [Step("on", n + 1)], key=lambda n: n % 5)
    assert found.states == 5


def test_a_state_from_which_only_unreliable_steps_lead_on_is_stuck():
    def steps(state):
        if state == "works":
            yield Step("work", "works", reliable=True, progress=True)
            yield Step("break", "broken")
        elif state == "broken":
            yield Step("hang", "hanging")
            yield Step("hint", "works", reliable=True)
        else:
            yield Step("luck", "works")

    found = explore("works", steps, stuck="it hangs")
    assert found.violation == "it hangs"
    assert found.trace == (("break", "broken"), ("hang", "hanging"))
    assert not explore("works", steps).violation


def test_a_search_without_end_is_given_up():
    with pytest.raises(OverflowError, match="more than 100 states"):
        explore(0, lambda n: [Step("on", n + 1)], limit=100)
