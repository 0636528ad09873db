"""Writes with versions explored exhaustively: whatever arrives late, the newest change stays."""

import pytest

from tests.unit.protocol.explore import explore
from tests.unit.protocol.versions import CHANGES, V1, V2, State, Versions


def search(versions, seen=None):
    def steps(state):
        if seen is not None:
            seen.append(state)
        return versions.steps(state)

    found = explore(State(), steps, key=versions.key)
    print(f"\n{versions}:\n{found}")  # noqa: T201 - shown with -s
    return found


def test_a_late_write_of_an_old_epoch_never_wins():
    seen = []
    found = search(Versions(), seen)
    assert not found.violation, str(found)
    finished = [s for s in seen if len(CHANGES) in s.runs]
    assert finished
    # Some of them with an older run that still has everything to send.
    assert any(min(s.runs) == 0 and len(s.runs) == 3 for s in finished)
    for state in finished:
        assert state.document.change == len(CHANGES) - 1
        # And it stays so, whatever of `sent` arrives afterwards.
        assert all(s.state.document == state.document for s in Versions().steps(state))


@pytest.mark.parametrize(
    ("missing", "violation"), [("compares", V1), ("remembers", V1), ("generations", V2)]
)
def test_every_protection_is_needed(missing, violation):
    found = search(Versions(**{missing: False}))
    assert found.violation == violation, str(found)
