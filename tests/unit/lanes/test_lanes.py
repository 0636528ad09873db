"""Lanes as they run: the worst of them decides, and none of them outlives the run."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually

ROOT = Path(__file__).parents[3]
# What is installed for other tests takes a second of processor time in each lane that starts.
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
GOOD = "def test_good():\n    pass\n"
BAD = "def test_bad():\n    assert False, 'the reason'\n"
SKIPPED = "import pytest\ndef test_skipped():\n    pytest.skip('no wish to')\n"
HANGS = """
import os, time
from pathlib import Path
from setl_embedded.process import spawn
def test_hangs(tmp_path):
    child = spawn("child", ["/bin/sleep", "600"], log=tmp_path / "log", cwd=tmp_path)
    Path(os.environ["TOLD"]).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)
"""
PROGRAM = """
import sys
from pathlib import Path
from tests.lanes import __main__ as lanes, plan
folder = Path(sys.argv[1])
names = sys.argv[2].split(",")
lanes.CHECKS = lanes.SLOW_CHECKS = ()
lanes.class_archive.environment = dict  # to make it takes a minute, and no test here needs it
lanes.QUICK = ("one",)
lanes.LANES = [plan.Lane(name, 1, (str(folder / f"test_{name}.py"),)) for name in names]
quick = sys.argv[3:4] == ["quick"]
rest = ["-p", "tests.unit.lanes.any_lane", *sys.argv[3 + quick :]]
sys.exit(lanes.main([*["quick"] * quick, *rest]))
"""


def command(folder, tests, *arguments):
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(text)
    return [sys.executable, "-c", PROGRAM, str(folder), ",".join(tests), *arguments]


def run(folder, tests, *arguments, **environment):
    environment = {**os.environ, **FEW_PLUGINS, "TMPDIR": str(folder), **environment}
    return subprocess.run(
        command(folder, tests, *arguments),
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


def last_line(done):
    return done.stdout.splitlines()[-1]


def test_an_option_for_all_lanes(tmp_path):
    done = run(tmp_path, {"one": GOOD, "two": GOOD, "none": BAD}, "-k", "good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"=+ 2 passed in [\d.]+s \(\d:\d\d:\d\d\) =+", last_line(done))
    assert not list(tmp_path.glob("setl-test-*"))


def test_quick_runs_some_lanes_only(tmp_path):
    done = run(tmp_path, {"one": GOOD, "two": BAD}, "quick", "-k", "test_good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in last_line(done)
    assert "two" not in done.stdout
    assert "classes of Spark" not in done.stdout


def test_nothing_to_run_is_no_success(tmp_path):
    done = run(tmp_path, {"one": GOOD}, "-k", "none")
    assert done.returncode == 5
    assert "no tests ran" in last_line(done)


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory):
    tests = {
        "good": GOOD,
        "bad": BAD,
        "skipped": SKIPPED,
        "broken": "import nothing_of_this_name\n",
        "killed": "import os, signal\ndef test_dies():\n    os.kill(os.getpid(), signal.SIGKILL)\n",
    }
    return run(tmp_path_factory.mktemp("lanes"), tests)


def test_one_bad_lane_fails_the_run_and_all_are_counted(all_kinds):
    assert all_kinds.returncode == 1
    assert "1 failed, 1 passed, 1 skipped, 3 error in" in last_line(all_kinds)
    (bad,) = re.findall(r"test: not good: (.*); logs and data are in", all_kinds.stdout)
    assert sorted(bad.split(", ")) == ["bad", "broken", "killed", "skipped"]


def test_what_a_bad_lane_printed_is_shown(all_kinds):
    assert "the reason" in all_kinds.stdout
    assert "nothing_of_this_name" in all_kinds.stdout


def test_a_skip_is_listed_with_its_reason(all_kinds):
    text = all_kinds.stdout
    assert re.search(r"SKIPPED, which is not expected: \S+::test_skipped: no wish to", text)


def test_a_lane_that_dies_says_in_the_middle_of_what(all_kinds):
    assert "pytest ended with status -9" in all_kinds.stdout
    assert re.search(r"in the middle of: \S+::test_dies", all_kinds.stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_the_run_ends_its_lanes_and_their_servers(tmp_path, number):
    reported = tmp_path / "told"
    environment = {**os.environ, **FEW_PLUGINS, "TMPDIR": str(tmp_path), "TOLD": str(reported)}
    with subprocess.Popen(
        command(tmp_path, {"two": HANGS}),
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        eventually(lambda: reported.exists() and len(reported.read_text().split()) == 2, 200)
        running.send_signal(number)
        out, _ = running.communicate(timeout=200)
    assert running.returncode == (-9 if number == signal.SIGKILL else 130)
    if number != signal.SIGKILL:
        assert "test: two was in the middle of: " in out
    for pid in reported.read_text().split():
        eventually(lambda pid=pid: gone(int(pid)), 30)


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
