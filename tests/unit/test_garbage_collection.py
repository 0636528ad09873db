"""Garbage collection in processes that hold many rows."""

import gc
import subprocess
import sys
from importlib import import_module

import pytest

from setl import garbage_collection

# In a process of its own: what is frozen stays so.
_SCRIPT = """
import gc, weakref
from setl.garbage_collection import freeze_loaded_objects

class Node:
    def __init__(self): self.itself = self

gc.disable()
garbage = weakref.ref(Node())
kept = [Node() for _ in range(1000)]
freeze_loaded_objects()
assert garbage() is None, "garbage was kept"
frozen = gc.get_freeze_count()
assert frozen > 1000, frozen
later = weakref.ref(Node())
freeze_loaded_objects()
assert gc.get_freeze_count() <= frozen, "a later task's objects are kept as well"
gc.collect()
assert later() is None, "later garbage is not collected"
"""


def test_what_is_loaded_is_left_out_once_and_garbage_never():
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=280)


# A worker is forked with what most pipelines need, and its first task imports the rest.
_IMPORTED_LATER = """
import gc, time
from setl.garbage_collection import freeze_loaded_objects

freeze_loaded_objects(collect_rarely=True)
frozen = gc.get_freeze_count()
import setl.systems.search_index.load.sink
collected_by_each_task = len(gc.get_objects())
assert collected_by_each_task > 10_000, collected_by_each_task
freeze_loaded_objects(collect_rarely=True)
assert gc.get_freeze_count() > frozen + 10_000, "looked through after every task"
assert len(gc.get_objects()) < 1000
"""


def test_what_a_task_has_imported_is_left_out_by_the_next_one():
    subprocess.run([sys.executable, "-c", _IMPORTED_LATER], check=True, timeout=280)


# A task that runs in a test, or anywhere but in Spark, is a guest in its process.
_GUEST = """
import gc
from setl import garbage_collection
from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.run.runners.tasks import load

load(None, LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0), 0, [])
assert garbage_collection._stored == []
usual = gc.get_threshold()
garbage_collection.freeze_loaded_objects()
assert gc.get_threshold() == usual, "a node's garbage is looked for less often"
"""


def test_a_process_that_runs_no_tasks_is_left_alone_and_a_node_collects_as_often():
    subprocess.run([sys.executable, "-c", _GUEST], check=True, timeout=280)


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_paused_for_a_block_whatever_ends_that(enabled, monkeypatch):
    monkeypatch.setattr(gc, "isenabled", lambda: enabled)
    calls = []
    monkeypatch.setattr(gc, "disable", lambda: calls.append("off"))
    monkeypatch.setattr(gc, "enable", lambda: calls.append("on"))
    missing = "setl.no_such_module"
    with pytest.raises(ImportError), garbage_collection.paused():
        import_module(missing)
    assert calls == (["off", "on"] if enabled else ["off"])
