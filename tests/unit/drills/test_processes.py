"""The processes of a node are found, distinguished, frozen and measured through /proc."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from setl_drills import soak
from setl_drills.checkers import check_flat
from setl_drills.processes import Process, Role, Usage, alive, send, tree, usage
from tests.waiting import eventually

# A chain of processes; each is called by its first argument, and starts the next one.
PROGRAM = """
import os, subprocess, sys, time
name, *rest = os.environ["NAMES"].split()
if rest:
    environment = {**os.environ, "NAMES": " ".join(rest)}
    subprocess.Popen([sys.executable, "-c", os.environ["PROGRAM"], rest[0]], env=environment)
time.sleep(60)
"""
NAMES = ["setl-node", "org.apache.spark.deploy.SparkSubmit", "pyspark.worker", "pyspark.worker"]
ROLES = [Role.DRIVER, Role.JVM, Role.DAEMON, Role.WORKER]


@pytest.fixture
def node():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, NAMES[0]],
        env={"PROGRAM": PROGRAM, "NAMES": " ".join(NAMES)},
    )
    eventually(lambda: [p.role for p in tree(process.pid)] == ROLES, 20)
    yield process
    for found in reversed(tree(process.pid)):
        send([found], signal.SIGKILL)
    process.wait(10)


def test_roles(node):
    found = tree(node.pid)
    assert found[0].pid == node.pid
    assert [p.role for p in found] == ROLES


def test_freeze_and_thaw(node):
    def state():
        return Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()[0]

    send(tree(node.pid), signal.SIGSTOP)
    eventually(lambda: state() == "T", 20)
    assert alive(tree(node.pid)[0])
    send(tree(node.pid), signal.SIGCONT)
    eventually(lambda: state() != "T", 20)


def test_a_killed_process_is_not_alive_although_nobody_has_waited_for_it(node):
    (driver, *_) = before = tree(node.pid)
    send(before, signal.SIGKILL)
    eventually(lambda: not alive(driver), 20)


def test_what_is_gone_has_no_tree():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait(20)
    assert tree(process.pid) == []


def test_usage_counts_handles_and_connections():
    program = (
        "import socket, time\n"
        "kept = [socket.socket() for _ in range(5)] + [open('/dev/null') for _ in range(3)]\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        found = usage(tree(process.pid))
        assert found.connections == 5
        assert found.handles >= 5 + 3
        assert found.threads == 1
        assert found.rss > 1e6
    finally:
        process.kill()
        process.wait(10)
    assert usage(tree(process.pid)).rss == 0


def test_usage_adds_up():
    one = Usage(rss=1, threads=2, handles=3, connections=4)
    assert one + one == Usage(rss=2, threads=4, handles=6, connections=8)


def test_the_memory_of_the_driver_is_counted_apart():
    process = subprocess.Popen(["sleep", "60"])
    try:
        both = usage([Process(process.pid, Role.DRIVER), Process(process.pid, Role.JVM)])
        assert 0 < both.driver_rss < both.rss
    finally:
        process.kill()
        process.wait(10)


def test_a_driver_that_grows_as_it_once_did_is_not_flat():
    factor, allowance = soak._FLAT["driver_rss"]
    steps = range(20)
    grown = [(190 + 100 * step / 19) * 2**20 for step in steps]
    assert not check_flat(grown, factor=factor, allowance=allowance)[0]
    level = [(200 + 8 * (step % 3)) * 2**20 for step in steps]
    assert check_flat(level, factor=factor, allowance=allowance)[0]


def test_threads_of_the_jvm_are_counted_apart():
    process = subprocess.Popen(["sleep", "60"])
    try:
        as_jvm = usage([Process(process.pid, Role.JVM), Process(process.pid, Role.WORKER)])
        assert (as_jvm.threads, as_jvm.jvm_threads, as_jvm.python_threads) == (2, 1, 1)
    finally:
        process.kill()
        process.wait(10)
