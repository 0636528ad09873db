"""Arenas of the C library, each case in a process of its own: they are for a process's life."""

import os
import subprocess
import sys

import pytest

from setl.node.host import tuning

# Threads that each hold and free small pieces; malloc_info tells the arenas.
PROGRAM = """
import ctypes, sys, threading
from setl.node.host.tuning import share_arenas
shared = share_arenas() if sys.argv[1] == "shared" else False
barrier = threading.Barrier(8)
def hold():
    held = [bytes(n % 400 + 600) for n in range(2_000)]
    barrier.wait()  # side by side, or one arena would serve them all
threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(c.fopen(sys.argv[2].encode(), b"w"))
c.malloc_info(0, stream)
c.fclose(stream)
print(shared)
"""


def arenas(tmp_path, how, **environment):
    reported = tmp_path / "arenas"
    known = {k: v for k, v in os.environ.items() if k != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, str(reported)],
        env={**known, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip() == "True", reported.read_text().count("<heap ")


@pytest.mark.skipif(not tuning._is_glibc(), reason="other C libraries have no such arenas")
def test_threads_partition_arenas(tmp_path):
    # That many threads have as many arenas otherwise, if there are cores enough.
    _, own = arenas(tmp_path, "own")
    shared, number = arenas(tmp_path, "shared")
    assert shared
    assert number <= 2 < own


@pytest.mark.skipif(not tuning._is_glibc(), reason="other C libraries have no such arenas")
def test_a_number_that_the_environment_names_is_left(tmp_path):
    shared, number = arenas(tmp_path, "shared", MALLOC_ARENA_MAX="5")
    assert not shared
    assert 2 < number <= 5


def test_other_c_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(tuning.os, "confstr", lambda _: None)
    monkeypatch.setattr(tuning.ctypes, "CDLL", None)
    assert not tuning.share_arenas()
