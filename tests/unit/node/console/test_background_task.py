"""Commands beside a node, and long work: they end by themselves, in time, or with the node."""

import json
import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from setl.errors import SetlError
from setl.node.console.actions.cli_subprocess import _PROGRAM, CliSubprocess, environment_of
from setl.node.console.actions.jobs import Jobs
from tests.arbiter_in_memory import ManualClock
from tests.waiting import eventually

SAYS = "import sys; print(sys.argv[1]); print('why', file=sys.stderr); sys.exit(int(sys.argv[2]))"
WAITS = "import time; time.sleep(600)"


def cli_subprocess(program):
    return CliSubprocess(dict(os.environ), (sys.executable, "-c", program))


def test_what_a_command_prints_and_how_it_ends():
    done = cli_subprocess(SAYS).output(["ü", "3"])
    assert done == (3, "ü\n", "why\n")


def test_what_takes_too_long_is_ended():
    with pytest.raises(SetlError, match=r"took longer than 0\.5 s"):
        cli_subprocess(WAITS).output(["check"], 0.5)


def test_what_runs_ends_when_the_node_leaves_and_nothing_begins_any_more():
    runs, codes = cli_subprocess(WAITS), []
    thread = threading.Thread(target=lambda: codes.append(runs.output(["verify"]).code))
    thread.start()
    eventually(lambda: runs._processes)
    runs.stop()
    thread.join(20)
    assert codes == [-signal.SIGTERM]
    with pytest.raises(SetlError, match="the node is leaving"):
        runs.output(["verify"])


def test_what_a_command_has_begun_is_put_back_when_the_node_leaves(tmp_path):
    ready = tmp_path / "ready"
    waits = f"""
import time
try:
    open({str(ready)!r}, "x").close()
    time.sleep(600)
except KeyboardInterrupt:
    # The node has gone meanwhile, which is told by the same signal.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
    print("put back")
"""
    runs, done = cli_subprocess(_PROGRAM.partition("from setl")[0] + waits), []
    thread = threading.Thread(target=lambda: done.append(runs.output(["cutover"])))
    thread.start()
    eventually(ready.exists, 30)
    runs.stop()
    thread.join(20)
    assert [each.out for each in done] == ["put back\n"]


def test_what_runs_ends_with_a_node_that_is_killed():
    # The true program, which waits for the node's end before it does anything else.
    node = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import os, sys\n"
                "from setl.node.console.actions.cli_subprocess import _PROGRAM, CliSubprocess\n"
                "slow = _PROGRAM.replace('from setl', 'import time; time.sleep(600)\\nfrom setl')\n"
                "CliSubprocess(dict(os.environ), (sys.executable, '-c', slow)).output(['verify'])"
            ),
        ]
    )
    try:
        (child,) = eventually(lambda: psutil.Process(node.pid).children(), 30)
        # It reads its standard input by then, or will at once.
        node.send_signal(signal.SIGKILL)
        node.wait(20)
        eventually(lambda: has_ended(child), 30)
    finally:
        node.kill()


def has_ended(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # whoever has adopted it may take it away at any moment
        return True


def test_what_python_drops_while_it_collects_an_object_is_reported_again(tmp_path):
    ready = tmp_path / "ready"
    collects = f"""
import time
class Collected:
    def __del__(self):
        open({str(ready)!r}, "x").close()
        time.sleep(600)
Collected()
time.sleep(600)
"""
    runs, done = cli_subprocess(_PROGRAM.partition("from setl")[0] + collects), []
    thread = threading.Thread(target=lambda: done.append(runs.output(["verify"], 60)))
    thread.start()
    eventually(ready.exists, 30)
    runs.stop()
    thread.join(20)
    assert "Collected.__del__" in done[0].err
    assert done[0].code == -signal.SIGINT


def test_a_command_works_on_the_cluster_of_its_node():
    environment = environment_of({"PW": "x", "SETL_ZOOKEEPER": "old"}, "zk:2181", "/there")
    assert environment["SETL_ZOOKEEPER"] == "zk:2181"
    assert environment["SETL_ROOT"] == "/there"
    assert environment["PW"] == "x"
    assert environment["PATH"] == os.environ["PATH"]


VERIFIES = 'import sys; print(\'[{"target": "s.t", "differences": \' + sys.argv[1] + \'}]\')'


def test_long_work_is_done_one_after_another_and_reports_how_it_ended():
    clock, ended = ManualClock(), []
    jobs = Jobs(clock, cli_subprocess(VERIFIES))
    for number in ("0", "3"):
        jobs.begin("shop/ab", "Verify", [number], ended.append)
    eventually(lambda: len(ended) == 2, 30)
    assert [job.words.partition(",")[0] for job in ended] == ["all equal", "3 rows differ"]
    newest, oldest = jobs.of("shop/ab")
    assert (newest.state, newest.rows[0]["differences"]) == ("done", 3)
    assert oldest.state == "done"
    assert jobs.of("shop/ba") == []
    assert jobs.waiting == 0


def test_work_under_way_says_how_far_it_is_and_then_which_rows_differ(tmp_path):
    goes_on, ended = tmp_path / "goes on", []
    row = {
        "target": "s.t", "differences": 3, "undecided": 1, "undecided_keys": ["7"],
        "sample_keys": [
            {"key": "4\u202e", "what": "missing", "columns": []},
            {"key": "5", "what": "different",
             "columns": [{"name": "note", "source": "a'b", "target": None}]},
        ],
    }  # fmt: skip
    program = f"""
import os, sys, time
for line in ("… starting Spark", "shop/ab: s.s: equal, 2 rows at the source", "… s.t, 500 rows"):
    print(line, file=sys.stderr, flush=True)
while not os.path.exists({str(goes_on)!r}):
    time.sleep(0.01)
print({json.dumps([row])!r})
"""
    jobs = Jobs(ManualClock(), cli_subprocess(program))
    jobs.begin("shop/ab", "Verify", [], ended.append)
    eventually(lambda: jobs.of("shop/ab")[0].words == "for 0 s: s.t, 500 rows", 30)
    assert jobs.of("shop/ab")[0].lines == ("shop/ab: s.s: equal, 2 rows at the source",)
    goes_on.touch()
    eventually(lambda: ended, 30)
    assert ended[0].words == "3 rows differ, 1 undecided, in 0 s"
    assert list(ended[0].lines) == [
        "s.t: 4\\u202e: missing",
        """s.t: 5: different (note: source "a'b", target NULL)""",
        "s.t: 7: undecided, it changed at every look",
        "s.t: and 1 more",
    ]


def test_an_error_is_not_reported_with_how_far_it_was():
    ended = []
    program = "import sys; sys.stderr.write('… s.t, 5 rows\\n'); sys.exit('no such table')"
    Jobs(ManualClock(), cli_subprocess(program)).begin("shop/ab", "Verify", [], ended.append)
    eventually(lambda: ended, 30)
    assert ended[0].error == "no such table"


def test_work_that_fails_says_why_and_what_is_stored_is_bounded():
    ended = []
    jobs = Jobs(ManualClock(), cli_subprocess("import sys; sys.exit('no such channel')"))
    for n in range(25):
        jobs.begin("shop/ab", f"Verify {n}", [], ended.append)
        eventually(lambda n=n: len(ended) == n + 1, 30)
    assert all((job.state, job.error) == ("failed", "no such channel") for job in ended)
    assert len(jobs._jobs) <= 21
    killed = cli_subprocess(
        "import os, sys; print('drain', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    )
    Jobs(ManualClock(), killed).begin("shop/ab", "Cut over", [], ended.append)
    eventually(lambda: len(ended) == 26, 30)
    assert (
        ended[-1].error == "drain\nIt was killed by signal 9. What it had changed stays as it is."
    )


PLAN = {
    "steps": [{"step": "check", "what": "looks"}, {"step": "verify", "what": "compares"}],
    "objections": ["no standby"],
}
DONE = {"outcome": "done", "left": ["keep the source read-only"]}


@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        (PLAN, ["1. check: looks", "2. verify: compares", "against it: no standby"]),
        (
            {**PLAN, "objections": []},
            ["1. check: looks", "2. verify: compares", "nothing is against it now"],
        ),
        (DONE, ["the application may write to the target now", "keep the source read-only"]),
        ({"other": 1}, []),
    ],
)
def test_what_a_cut_over_says_is_reported_in_sentences(printed, lines):
    ended = []
    program = f"print({json.dumps(printed)!r})"
    Jobs(ManualClock(), cli_subprocess(program)).begin("shop/ab", "Cut over", [], ended.append)
    eventually(lambda: ended, 30)
    assert (ended[0].state, list(ended[0].lines)) == ("done", lines)
