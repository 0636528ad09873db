"""What Spark forks a node's Python workers from, with all that loads import in it already.

Spark's own daemon is empty, so each of its workers imports setl, pyarrow and pandas by itself: a
second and a half of processor time, and the same memory once for each of them. Here it is done
once, and workers share it. For sessions on this machine; elsewhere setl comes with the session,
and a daemon there cannot know it yet.

Spark starts it as ``python -m setl.run.worker_daemon pyspark.worker``.
"""

from __future__ import annotations

import importlib
import os
from typing import Final

from pyspark import daemon

from setl.garbage_collection import keep_what_is_loaded

TASK_MODULES: Final = (
    "setl.run.tasks",
    "setl.load.worker",
    "setl.transform.expressions",
    "setl.codec.binlog.rows",
)
"""What a load task imports."""

_OF_QUERIES: Final = ("pandas", "pyspark.sql.pandas.serializers")


def main() -> None:
    """Import, and fork workers until Spark closes standard input."""
    for module in TASK_MODULES + _OF_QUERIES:
        importlib.import_module(module)
    # Otherwise each worker's first load would do it, in a tenth of a second.
    keep_what_is_loaded(collect_rarely=True)
    try:
        daemon.manager()
    except OSError:
        # Its JVM has ended meanwhile, and is missed elsewhere. Nothing is left to be said or done.
        os._exit(1)


if __name__ == "__main__":
    main()
