import sys

import pytest

from setl.cli.terminal import progress
from tests.waiting import eventually


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.01)


def test_at_a_terminal_it_is_said_what_takes_long(soon, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    said = []

    def heard():
        said.append(capsys.readouterr().err)
        return any(said)

    for words in ("asking ZooKeeper", lambda: "asking ZooKeeper"):
        said.clear()
        with progress.busy(words):
            eventually(heard, 10)
        assert "".join(said) == "asking ZooKeeper …\n"


def test_what_is_quick_or_has_no_terminal_says_nothing(monkeypatch, capsys):
    timers = []

    class Timer:
        def __init__(self, *arguments):
            timers.append(self)

        def start(self):
            self.on = True

        def cancel(self):
            self.on = False

    monkeypatch.setattr(progress.threading, "Timer", Timer)
    with progress.busy("asking ZooKeeper"):
        pass
    assert not timers
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(ValueError, match="went wrong"), progress.busy("asking ZooKeeper"):
        raise ValueError("went wrong")
    assert [timer.on for timer in timers] == [False]
    assert capsys.readouterr().err == ""
