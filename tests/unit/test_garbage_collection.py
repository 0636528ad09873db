"""Garbage collection in processes that hold many rows."""

import subprocess
import sys

# In a process of its own: what is frozen stays so.
_SCRIPT = """
import gc, weakref
from setl.garbage_collection import keep_what_is_loaded

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
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=280)


# A task that runs in a test, or anywhere but in Spark, is a guest in its process.
_GUEST = """
import gc
from setl import garbage_collection
from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.run.tasks import load

load(None, LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0), 0, [])
assert garbage_collection._kept == []
usual = gc.get_threshold()
garbage_collection.keep_what_is_loaded()
assert gc.get_threshold() == usual, "a node's garbage is looked for less often"
"""


def test_a_process_that_runs_no_tasks_is_left_alone_and_a_node_collects_as_often():
    subprocess.run([sys.executable, "-c", _GUEST], check=True, timeout=280)
