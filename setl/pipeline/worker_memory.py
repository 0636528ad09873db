"""Garbage collection in Spark's Python workers, which would cost more than most tasks.

Spark's daemon calls `gc.collect` after every task of a worker that it keeps, and that looks at
every object of every imported module: 45 ms of CPU a task, with Spark, pyarrow and setl loaded.
Objects that live as long as the process can be left out of it.
"""

from __future__ import annotations

import gc

# Objects made before the youngest are looked at. Rows are many small tuples without cycles, and
# whatever cycles a task makes are collected after it.
_YOUNG = 50_000

_kept: list[bool] = []


def keep_what_is_loaded() -> None:
    """Leave what this process holds now out of all garbage collection to come.

    To be called by each task, when its modules are imported; only the first call of a process
    does anything, so that what is made later is still collected.
    """
    if _kept:
        return
    _kept.append(True)
    gc.collect()  # a cycle that is garbage already would never be freed
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 50)
