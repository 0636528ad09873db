"""Memory of a node's processes."""

import subprocess
import sys

import pytest

from setl.node.host.resources import MemoryLook, NodeMemory
from tests.unit.select.fakes import ManualClock
from tests.waiting import eventually

MIB = 1 << 20
# Starts one child for each further argument list, then holds some memory for as long as stdin
# is open.
PROCESS = """
import subprocess, sys
held = bytearray(b"x" * int(sys.argv[1]))
children = [
    subprocess.Popen([*command.split("|")], stdin=subprocess.PIPE) for command in sys.argv[2:]
]
sys.stdin.read()
"""


@pytest.fixture
def node(tmp_path):
    """The pid of a process with a child that is called java, which has two children."""
    script = tmp_path / "process.py"
    script.write_text(PROCESS)
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    worker = f"{sys.executable}|{script}|"
    jvm = [str(java), "-S", str(script), str(24 * MIB), f"{worker}{40 * MIB}", f"{worker}1"]
    command = [sys.executable, str(script), str(64 * MIB)]
    # What is within a command cannot be divided by the same sign.
    nested = f"{sys.executable}|{tmp_path / 'jvm.py'}"
    (tmp_path / "jvm.py").write_text(f"import os, sys\nos.execv({str(java)!r}, {jvm!r})\n")
    process = subprocess.Popen([*command, nested], stdin=subprocess.PIPE)
    try:
        yield process.pid
    finally:
        process.communicate(timeout=280)


def test_each_kind_of_process_is_counted_by_itself(node):
    clock = ManualClock()
    look = MemoryLook(clock, node)

    def told_apart():
        clock.time += 20
        seen = look.seen()
        # All at once: a process that is just being started still has its parent's memory.
        assert 64 * MIB < seen.driver < 100 * MIB
        assert 24 * MIB < seen.jvm < 60 * MIB
        assert 40 * MIB < seen.worker_most < seen.workers < 100 * MIB
        return True

    eventually(told_apart, 60)


def test_it_does_not_look_each_time_it_is_asked(node):
    clock = ManualClock()
    look = MemoryLook(clock, node)
    first = look.seen()
    clock.time += 14.5
    assert look.seen() is first
    clock.time += 1
    assert look.seen() is not first


def test_a_process_that_is_gone_holds_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    assert MemoryLook(ManualClock(), process.pid).seen() == NodeMemory()


def test_pages_that_processes_share_are_counted_once(tmp_path):
    """Workers are forks of a process whose memory they share."""
    script = tmp_path / "forks.py"
    script.write_text(
        "import os, sys\n"
        f"held = bytearray(b'x' * {64 * MIB})\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    jvm = f"import os, subprocess\nsubprocess.run([{sys.executable!r}, {str(script)!r}])"
    start = f"import subprocess\nsubprocess.run([{str(java)!r}, '-S', '-c', {jvm!r}])"
    process = subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        seen = MemoryLook(ManualClock(), process.pid).seen()
        assert 64 * MIB < seen.workers < 120 * MIB
        assert seen.worker_most < 64 * MIB
    finally:
        process.communicate(timeout=280)
