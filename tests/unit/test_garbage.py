"""Garbage collection in processes that hold many rows."""

import subprocess
import sys

# In a process of its own: what is frozen stays so.
_SCRIPT = """
import gc, weakref
from setl.garbage import keep_what_is_loaded

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
