"""A node as the kernel sees it: its driver, its JVM, its Python workers (`/proc`, Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Role(Enum):
    """What a process of a node does."""

    DRIVER = "driver"  # the `setl node` itself
    JVM = "jvm"  # Spark
    DAEMON = "daemon"  # parent of the workers
    WORKER = "worker"  # runs tasks
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a node."""

    pid: int
    role: Role


@dataclass(frozen=True, slots=True)
class Usage:
    """What processes hold, summed.

    Attributes:
        rss: resident memory in bytes.
        threads: threads.
        jvm_threads: of these, those of the JVM, whose pools it fills by rules of its own.
        driver_rss: of `rss`, that of the node's own process, in which setl's own code reads.
        handles: open file handles, sockets included.
        connections: of these, sockets.
    """

    rss: int = 0
    threads: int = 0
    handles: int = 0
    connections: int = 0
    jvm_threads: int = 0
    driver_rss: int = 0

    @property
    def python_threads(self) -> int:
        """Threads outside the JVM, all of which setl or its libraries have started."""
        return self.threads - self.jvm_threads

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.rss + other.rss,
            self.threads + other.threads,
            self.handles + other.handles,
            self.connections + other.connections,
            self.jvm_threads + other.jvm_threads,
            self.driver_rss + other.driver_rss,
        )


def tree(root: int) -> list[Process]:
    """A process and everything below it, parents first; empty if it is gone."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                children.setdefault(_parent(int(entry.name)), []).append(int(entry.name))
    if not (_PROC / str(root)).exists():
        return []
    found = [Process(root, Role.DRIVER)]
    roles = {root: Role.DRIVER}
    for process in found:
        for pid in children.get(process.pid, ()):
            roles[pid] = _role(pid, process.role)
            found.append(Process(pid, roles[pid]))
    return found


def _parent(pid: int) -> int:
    # The name in parentheses may hold anything; see proc(5), /proc/pid/stat.
    after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2]
    return int(after_name.split()[1])


def _role(pid: int, parent: Role) -> Role:
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return Role.OTHER
    if parent is Role.DAEMON:
        return Role.WORKER
    if b"pyspark.worker" in command:
        return Role.DAEMON
    return Role.JVM if b"org.apache.spark" in command else Role.OTHER


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Send a signal to each process, one by one: they are not of one process group."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def alive(process: Process) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = (_PROC / str(process.pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def usage(processes: Iterable[Process]) -> Usage:
    """What processes hold together; one that is gone holds nothing."""
    total = Usage()
    for process in processes:
        with contextlib.suppress(OSError, ValueError):
            total += _usage(_PROC / str(process.pid), process.role)
    return total


def _usage(folder: Path, role: Role) -> Usage:
    resident = int((folder / "statm").read_text().split()[1]) * _PAGE
    targets: list[str] = []
    for handle in (folder / "fd").iterdir():
        with contextlib.suppress(OSError):
            targets.append(str(handle.readlink()))
    threads = sum(1 for _ in (folder / "task").iterdir())
    return Usage(
        rss=resident,
        driver_rss=resident if role is Role.DRIVER else 0,
        threads=threads,
        jvm_threads=threads if role is Role.JVM else 0,
        handles=len(targets),
        connections=sum(target.startswith("socket:") for target in targets),
    )
