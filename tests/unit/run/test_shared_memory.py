"""Bytes that tasks of this machine get by files: how many, who can read them, and their end."""

import os
import shutil
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.errors import TransientError
from setl.run.spark import shared_memory
from setl.run.spark.shared_memory import SharedMemory, handing_over, received
from setl.transform.worker_errors import worker_error

MIB = 1 << 20
LARGE = b"\x80" * (MIB // 4)

KILLED = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
os.statvfs = lambda _: SimpleNamespace(f_frsize=1 << 20, f_blocks=64, f_bavail=64)
from setl.run.spark.shared_memory import SharedMemory
with SharedMemory(Path(sys.argv[1]), 1 << 20).files() as hand:
    hand(bytes(1 << 18))
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """Makes the memory for files as large as it says, in blocks of half a MiB."""

    def make(blocks, free):
        there = SimpleNamespace(f_frsize=MIB // 2, f_blocks=blocks, f_bavail=free)
        monkeypatch.setattr(os, "statvfs", lambda _: there)

    make(64, 64)
    return make


def files(parent):
    return [path for path in parent.rglob("*") if path.is_file()]


def test_large_bytes_lie_in_files_for_this_user_until_the_load_ends(tmp_path):
    memory = SharedMemory(tmp_path, MIB)
    with memory.files() as hand:
        handed = [hand(content) for content in (LARGE, b"small", LARGE + b"!")]
        assert [len(each) < 200 for each in handed] == [True] * 3
        assert [received(each) for each in handed] == [LARGE, b"small", LARGE + b"!"]
        assert received(handed[0]) == LARGE  # a task may run again
        (folder,) = tmp_path.iterdir()
        assert [path.stat().st_mode & 0o777 for path in (folder, *files(folder))] == [
            0o700,
            0o600,
            0o600,
        ]
    assert not files(tmp_path)
    with suppress(ZeroDivisionError), memory.files() as hand:
        hand(LARGE)
        raise ZeroDivisionError
    assert not files(tmp_path)


def test_what_is_beyond_the_limit_goes_the_other_way(tmp_path):
    memory = SharedMemory(tmp_path, 3 * len(LARGE))
    with memory.files() as hand:
        assert [hand(LARGE) == LARGE for _ in range(4)] == [False] * 3 + [True]
        with memory.files() as other:
            assert other(LARGE) == LARGE
    with memory.files() as hand:
        assert hand(LARGE) != LARGE


@pytest.mark.parametrize(("free", "shared"), [(33, True), (32, False), (0, False)])
def test_half_of_the_memory_for_files_is_left_to_others(tmp_path, room, free, shared):
    room(64, free)
    with SharedMemory(tmp_path, MIB).files() as hand:
        assert (hand(LARGE) != LARGE) is shared


def test_without_such_memory_or_when_it_is_full_bytes_go_the_other_way(tmp_path, monkeypatch):
    with SharedMemory(tmp_path / "missing", MIB).files() as hand:
        assert hand(LARGE) == LARGE

    def full(*_):
        raise OSError(28, "No space left on device")

    with SharedMemory(tmp_path, MIB).files() as hand:
        monkeypatch.setattr(shared_memory, "_for_us_alone", full)
        assert hand(LARGE) == LARGE


def test_what_a_killed_process_left_goes_when_the_next_one_starts(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        left = files(tmp_path)
        assert len(left) == 1
        SharedMemory(tmp_path, MIB).folder()
        assert files(tmp_path) == left  # it lives
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        SharedMemory(tmp_path, MIB).folder()
        assert not files(tmp_path)
    finally:
        process.kill()
        process.communicate()


def test_a_load_whose_files_somebody_removed_is_done_again_without_them(tmp_path):
    with SharedMemory(tmp_path, MIB).files() as hand:
        handed = hand(LARGE)
        shutil.rmtree(next(tmp_path.iterdir()))
        with pytest.raises(OSError, match="cannot be read") as raised:
            received(handed)
        text = "".join(traceback.format_exception(raised.value))
        assert isinstance(worker_error(text), TransientError)
        assert hand(LARGE) == LARGE


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_tasks_of_clusters_get_the_bytes(monkeypatch, tmp_path, master):
    monkeypatch.setattr(shared_memory, "shared_memory", SharedMemory(tmp_path, MIB))
    for context, shared in ((SimpleNamespace(master=master), False),
                            (SimpleNamespace(master="local[2]"), True)):  # fmt: skip
        with handing_over(cast("Any", context)) as hand:
            assert (hand(LARGE) != LARGE) is shared
