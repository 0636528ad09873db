"""Garbage collection in a worker process."""

import subprocess
import sys

from setl.pipeline import worker_memory

# In a process of its own: what is frozen stays so.
_SCRIPT = """
import gc, weakref
from setl.pipeline.worker_memory import keep_what_is_loaded

class Node:
    def __init__(self): self.itself = self

gc.disable()
garbage = weakref.ref(Node())
kept = [Node() for _ in range(1000)]
keep_what_is_loaded()
assert garbage() is None, "garbage was kept"
frozen = gc.get_freeze_count()
assert frozen > 1000, frozen
later = weakref.ref(Node())
keep_what_is_loaded()
assert gc.get_freeze_count() <= frozen, "a later task's objects are kept as well"
gc.collect()
assert later() is None, "later garbage is not collected"
"""


def test_what_is_loaded_is_left_out_once_and_garbage_never():
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=120)


def test_a_process_that_runs_no_tasks_is_left_alone():
    assert worker_memory._kept == []
