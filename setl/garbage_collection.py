"""Garbage collection in processes that hold many rows, where it would cost more than the rows do.

Python looks at every object again and again: at those of all imported modules, which stay anyway,
and at every row that waits. In a node that has a backlog this took 0.2 s each time, several times
a second at worst, and all threads stood still meanwhile. Spark's daemon calls `gc.collect` after
every task of a worker that it keeps, which took 45 ms of CPU with Spark, pyarrow and setl loaded.

What was read ahead can hang together by an error that ended it, with all its bytes; so whoever
gives that up says so (`collect`).

Objects that live as long as the process can be left out. Rows are many small tuples without
cycles, which go as soon as nobody refers to them; so there is little to find among the others, and
it can be looked for less often.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

# Objects made, less those that have gone, before the youngest are looked at; how many times that
# is done before the next older ones are.
_YOUNG, _MIDDLE, _OLD = 50_000, 20, 50

_stored: list[int] = []


def freeze_loaded_objects(*, collect_rarely: bool = False) -> None:
    """Leave what this process holds now out of all garbage collection to come.

    To be called when modules are imported and sessions stand: by a node that is warm, and by each
    task of a worker. The first call of a process does it, and one after further modules were
    imported; so what is made later is still collected. A worker is forked with the modules of most
    systems alone: a client of Elasticsearch, which its first task imports, took 8 ms of CPU at the
    end of each task after that.

    Args:
        collect_rarely: also look less often for garbage among what is made later. Not for a node:
            what it holds of its JVM's objects, with all their bytes, hangs together in Python.
    """
    modules = len(sys.modules)
    if _stored == [modules]:
        return
    _stored[:] = [modules]
    gc.collect()  # a cycle that is garbage already would never be freed
    gc.freeze()
    if collect_rarely:
        gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


@contextmanager
def paused() -> Generator[None]:
    """Look for no garbage in the block, which imports modules.

    They stay, and Python would look through all of them again and again while they come: for a
    fifth of the time that a node's imports take, and a seventh of what those of a command take.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collect() -> None:
    """Free what was given up and may hang together: it would be looked for too late otherwise.

    How often garbage is looked for depends on the number of objects, whatever bytes they hold.
    """
    gc.collect()
