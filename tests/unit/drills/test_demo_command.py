"""`setl demo`: what ends it has it stop and remove everything, whoever sends the signal."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from setl.cli.main import run
from setl_drills.demo import scenario
from setl_drills.drill import DrillResult

DEMO = """
import signal, sys, time
from pathlib import Path
from setl_drills.demo import scenario

# Whoever runs the tests may ignore it, as nohup does, and the demo would as well.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
folder = Path(sys.argv.pop())

class Demonstration:
    def __init__(self, console, options):
        self.folder, self.console = folder, console
    def run(self):
        self.folder.mkdir()
        self.console.print("running")
        try:
            time.sleep(60)
        finally:
            self.console.print("servers are stopped")  # as the demo says, to a terminal or to none

scenario.Demonstration = Demonstration
from setl_drills.demo.command import demo
demo()
"""


def test_what_is_not_equal_ends_with_status_1_as_the_help_says(monkeypatch, tmp_path):
    class Unequal:
        folder = tmp_path

        def __init__(self, *_):
            pass

        def run(self):
            result = DrillResult("demo", 1)
            result.problems.append("a row is missing")
            return result

    monkeypatch.setattr(scenario, "Demonstration", Unequal)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert run(["demo"]) == 1
    assert tmp_path.exists()  # it has the logs


def test_a_closed_terminal_stops_and_removes_everything(tmp_path: Path):
    ours, theirs = pty.openpty()
    folder = tmp_path / "demo"
    process = subprocess.Popen(
        # setsid: the terminal is the process's own, so the kernel sends it SIGHUP at its end.
        ["setsid", "--ctty", sys.executable, "-c", DEMO, str(folder)],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while b"running" not in said:
            said += os.read(ours, 1024)
        os.close(ours)
        assert process.wait(20) == 130
    finally:
        process.kill()
    assert not folder.exists()
