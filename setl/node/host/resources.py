"""How much memory the processes of a node hold, and how full the disk of its Spark is.

A node is this process, the JVM of its Spark session, and the JVM's Python workers where tasks run
on this machine. Workers on other machines are not seen.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import psutil

from setl.clock import Clock

_SPARK = "SPARK_LOCAL_DIRS"


@dataclass(frozen=True, slots=True)
class NodeDisk:
    """A disk.

    Attributes:
        folder: the folder that was looked at, "" if it could not be.
        size: bytes in all.
        free: bytes that are free.
    """

    folder: str = ""
    size: int = 0
    free: int = 0


def look_at_disk(environment: Mapping[str, str], configured: str = "") -> NodeDisk:
    """The disk of Spark's first local folder, or of the folder for temporary files.

    Args:
        environment: of this process, whose variable wins, as with Spark.
        configured: Spark's setting `spark.local.dir`, "" for none.
    """
    named = environment.get(_SPARK) or configured
    folder = named.split(",")[0].strip() or tempfile.gettempdir()
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return NodeDisk()
    return NodeDisk(folder, usage.total, usage.free)


@dataclass(frozen=True, slots=True)
class NodeSpark:
    """What a node's runs transform and load on.

    Attributes:
        master: Spark's master, "" for a node that needs no Spark.
        answered: seconds since its JVM has answered last, None before it has.
    """

    master: str = ""
    answered: float | None = None


def count_threads() -> int:
    """Threads of this process, of native libraries too; 0 if it cannot be asked."""
    try:
        return psutil.Process().num_threads()
    except psutil.Error:
        return 0


_LOOK_SECONDS = 15.0  # one look walks all processes of the machine


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Bytes, of pages that processes share the part of each (PSS).

    Python workers are forks of one process, so their resident bytes (RSS) would count most of their
    memory several times. Those are told where the kernel does not know better.

    Attributes:
        driver: of the node's own process: batches that were read and wait.
        jvm: of the Spark session's JVM.
        workers: of all Python workers together: rows that are being transformed and loaded.
        worker_most: of the largest of them.
    """

    driver: int = 0
    jvm: int = 0
    workers: int = 0
    worker_most: int = 0


class MemoryLook:
    """Looks at the processes below one process; asked often, it looks every 15 seconds."""

    def __init__(self, clock: Clock, pid: int | None = None) -> None:
        """Look at nothing yet.

        Args:
            clock: for the age of the last look.
            pid: the process at the top; None for this one.
        """
        self._clock = clock
        self._pid = os.getpid() if pid is None else pid
        self._lock = Lock()
        self._seen = NodeMemory()
        self._seen_at: float | None = None

    def seen(self) -> NodeMemory:
        """What was seen last; zeros for what is not there. From any thread."""
        with self._lock:
            now = self._clock.monotonic()
            if self._seen_at is None or now - self._seen_at >= _LOOK_SECONDS:
                self._seen, self._seen_at = self._look(), now
            return self._seen

    def _look(self) -> NodeMemory:
        # A process may end between two questions about it; then it holds nothing any more.
        gone = contextlib.suppress(psutil.Error)
        driver = jvm = 0
        workers: list[int] = []
        of_jvm: set[int] = set()  # pids
        with gone:
            node = psutil.Process(self._pid)
            driver = _held(node)
            # All at once, and parents before their children: each such question walks all
            # processes of the machine.
            for process in node.children(recursive=True):
                with gone:
                    parent = process.ppid()
                    if parent == self._pid and process.name() == "java":
                        of_jvm.add(process.pid)
                        jvm += _held(process)
                    elif parent in of_jvm:
                        of_jvm.add(process.pid)
                        workers.append(_held(process))
        return NodeMemory(driver, jvm, sum(workers), max(workers, default=0))


def _held(process: psutil.Process) -> int:
    try:
        # Some milliseconds for hundreds of MiB: the kernel looks at each page.
        return int(process.memory_full_info().pss)
    except (psutil.AccessDenied, AttributeError):
        return int(process.memory_info().rss)
