import os
import time

import pytest

from tests.waiting import eventually


def test_returns_the_first_true_value():
    values = iter([0, None, "there"])
    assert eventually(lambda: next(values), interval=0) == "there"


def test_says_what_did_not_happen():
    def never_there():
        return False

    with pytest.raises(AssertionError, match=r"not so after 0 s: never_there"):
        eventually(never_there, 0)


def test_an_assertion_inside_counts_as_not_yet_and_is_shown_at_the_end():
    def still_wrong():
        assert 1 == 2

    with pytest.raises(AssertionError) as error:
        eventually(still_wrong, 0)
    assert "1 == 2" in str(error.value.__cause__)


def test_other_errors_are_not_waited_for():
    with pytest.raises(KeyError):
        eventually(lambda: {}["missing"], 60)


def test_a_busy_machine_has_more_time(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (6.0, 0.0, 0.0))
    began = time.monotonic()
    with pytest.raises(AssertionError):
        eventually(lambda: False, 0.1)
    assert time.monotonic() - began >= 0.3
