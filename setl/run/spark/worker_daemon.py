"""What Spark forks a node's Python workers from, with all that loads import in it already.

Spark's own daemon is empty, so each of its workers imports setl, pyarrow and pandas by itself: a
second and a half of processor time, and the same memory once for each of them. Here it is done
once, and workers share it. For sessions on this machine; elsewhere setl comes with the session,
and a daemon there cannot know it yet.

Spark starts it as ``python -m setl.run.spark.worker_daemon pyspark.worker``.
"""

from __future__ import annotations

import importlib
import os
import ssl
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from setl import garbage_collection

TASK_MODULES: Final = (
    "setl.run.runners.tasks",
    "setl.load.worker",
    "setl.transform.expression_tasks",
    "setl.codec.binlog.rows.decoding",
)
"""What a load task imports."""

_OF_JOBS: Final = ("setl.run.runners.warming",)
"""Whose functions other jobs are, which nodes run in each worker."""

_OF_CONNECTIONS: Final = ("encodings.idna",)
"""What Python imports with the first connection of a process."""

_OF_QUERIES: Final = ("pandas", "pyspark.sql.pandas.serializers")

_OF_COLUMNS: Final = ("pyarrow.compute",)
"""What Arrow imports when something is first taken from an array."""

_OF_SPARK: Final = ("pyspark.worker",)
"""What a worker imports before its first task."""

OF_SYSTEMS: Final = (
    "setl.systems.mysql.source_system",
    "setl.systems.mysql.target_system",
    "setl.systems.kafka.source_system",
)
"""Ends of most pipelines, which a node has each worker import. The rest cost more here than there:
a client of Elasticsearch takes as long as all of these together."""

MODULES: Final = (
    *TASK_MODULES,
    *_OF_JOBS,
    *_OF_QUERIES,
    *_OF_COLUMNS,
    *_OF_SPARK,
    *OF_SYSTEMS,
    *_OF_CONNECTIONS,
)
"""All that is imported before workers are forked."""

_ARCHIVES: Final = ("pyspark", "py4j")
"""What Spark puts in front of the path, as zip files beside an installed PySpark."""

_CORE: Final = "spark-core_"
"""How the archive of Spark's own Java classes is called, which Spark puts there, too."""


def main() -> None:
    """Import, and fork workers until Spark closes standard input."""
    _leave_out_archives()
    # Forks are only safe in a process of one thread. A lock that another one holds is held in the
    # child for ever, and its task with it (https://issues.apache.org/jira/browse/SPARK-54456).
    # Arrow's allocator would start one when it is imported.
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    with garbage_collection.paused():
        for module in MODULES:
            importlib.import_module(module)
        _make_tables()
    # Making OpenSSL ready takes 5 ms, in each worker's first load otherwise. Nothing else is kept.
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Otherwise each worker's first load would do it, in a tenth of a second.
    garbage_collection.freeze_loaded_objects(collect_rarely=True)
    from pyspark import daemon  # noqa: PLC0415 - from the path as it is now

    try:
        daemon.manager()
    except OSError:
        # Its JVM has ended meanwhile, and is missed elsewhere. Nothing is left to be said or done.
        os._exit(1)


def _make_tables() -> None:
    """Make what each worker would make of its own when it first writes rows by column."""
    from setl.codec.columns.digits import make_tables  # noqa: PLC0415 - as they do

    make_tables()


def _leave_out_archives() -> None:
    before = list(sys.path)
    sys.path[:] = without_archives(before)
    # Each worker forgets what it knows of its path, and would read all archives here once more.
    for entry in set(before) - set(sys.path):
        for known in list(sys.path_importer_cache):
            if known == entry or known.startswith(entry + os.sep):
                del sys.path_importer_cache[known]


def without_archives(path: list[str]) -> list[str]:
    """The path, without archives of an installed PySpark if it leads to its modules anyway.

    Modules in a zip file are compiled at each start, and each new worker reads the directories of
    all archives, of which the largest has no Python module: half of a second of processor time,
    and a fifth of one for each worker.

    Args:
        path: as `sys.path`.
    """
    rest = [entry for entry in path if not _is_archive(Path(entry))]
    found = all(PathFinder.find_spec(name, rest) is not None for name in _ARCHIVES)
    return rest if found else path


def _is_archive(entry: Path) -> bool:
    if entry.suffix == ".jar":
        return entry.name.startswith(_CORE) and _is_package(entry.parent.parent)
    name = entry.name.partition("-")[0].removesuffix(".zip")
    return entry.suffix == ".zip" and name in _ARCHIVES and _is_package(entry.parent.parent.parent)


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


if __name__ == "__main__":
    main()
