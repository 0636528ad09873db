"""Waiting for something with a limit, and what processes use: CPU time and memory, by role.

What a process and all that it started use is read from ``/proc``. What a Python process starts is
told apart by its command line: a JVM, and PySpark's workers, which one daemon forks. Everything
else counts as the process itself, the driver.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.5

DRIVER = "driver"
JVM = "jvm"
WORKERS = "workers"
OWN = (DRIVER, JVM, WORKERS)
"""The roles into which a competitor's own processes are divided."""


def wait_for(
    condition: Callable[[], Any], limit: float, otherwise: str, *, every: float = 0.05
) -> None:
    """Wait until something is so.

    Args:
        condition: asked until it returns something true.
        limit: seconds.
        otherwise: what is the matter if the limit passes.
        every: seconds between two questions.

    Raises:
        RuntimeError: the limit has passed.
    """
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{otherwise} after {limit:.0f} s")
        time.sleep(every)


class _Process(NamedTuple):
    parent: int
    cpu: float  # seconds, with children that were waited for
    resident: int  # bytes


def cpu_by_role(roots: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds so far of processes and of their descendants that live, or were waited for.

    Args:
        roots: process ids by role; that of the role `DRIVER` is divided.
    """
    return _totals(roots)[0]


class PeakMemory:
    """Samples resident bytes by role while it is entered, and once more at the end.

    Pages that forked workers share count for each of them.

    Attributes:
        peak: the highest sum seen of each role.
    """

    def __init__(self, roots: Mapping[str, int]) -> None:
        """Sample nothing yet; `roots` as for `cpu_by_role`."""
        self.peak: Counter[str] = Counter()
        self._roots = roots
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End."""
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stopping.wait(_SAMPLE_SECONDS)
            self.peak |= _totals(self._roots)[1]  # the larger of each


def _totals(roots: Mapping[str, int]) -> tuple[dict[str, float], Counter[str]]:
    processes = _processes()
    cpu: dict[str, float] = defaultdict(float)
    resident: Counter[str] = Counter()
    for pid, role in _roles(roots, processes).items():
        cpu[role] += processes[pid].cpu
        resident[role] += processes[pid].resident
    return cpu, resident


def _roles(roots: Mapping[str, int], processes: Mapping[int, _Process]) -> dict[int, str]:
    role_of_root = {pid: role for role, pid in roots.items()}
    found: dict[int, str] = {}
    for pid in processes:
        root = _ancestor(pid, role_of_root, processes)
        if root:
            role = role_of_root[root]
            found[pid] = _role(pid, root, processes) if role == DRIVER and pid != root else role
    return found


def _processes() -> dict[int, _Process]:
    found: dict[int, _Process] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # proc(5): the command, in brackets, may hold anything; the fields after it are plain.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        spent = sum(map(int, fields[11:15])) / _TICK
        found[int(folder.name)] = _Process(int(fields[1]), spent, int(fields[21]) * _PAGE)
    return found


def _ancestor(pid: int, wanted: Mapping[int, str], processes: Mapping[int, _Process]) -> int:
    """The first of the wanted processes on the way up, itself included; 0 for none."""
    while pid and pid not in wanted:
        pid = processes[pid].parent if pid in processes else 0
    return pid


def _role(pid: int, root: int, processes: Mapping[int, _Process]) -> str:
    """What a descendant of a driver is: a worker below the daemon, a JVM, or the driver's own."""
    while pid != root and pid in processes:
        program, *arguments = _command(pid)
        if program.endswith(b"java"):
            return JVM
        if any(a.startswith(b"pyspark.") for a in arguments):
            return WORKERS  # of a JVM, but no part of it
        pid = processes[pid].parent
    return DRIVER


def _command(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]
