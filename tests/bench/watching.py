"""Waiting for something with a limit, and what processes use: CPU time and memory, by role."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from setl_drills.processes import Role, tree

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.5

DRIVER = "driver"
JVM = "jvm"
WORKERS = "workers"
OWN = (DRIVER, JVM, WORKERS)
"""The roles into which a competitor's own processes are divided."""

_ROLES = {
    Role.DRIVER: DRIVER,
    Role.OTHER: DRIVER,
    Role.JVM: JVM,
    Role.DAEMON: WORKERS,
    Role.WORKER: WORKERS,
}


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


def cpu_by_role(roots: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds so far of processes and of their descendants that live, or were waited for.

    Args:
        roots: process ids by role; that of the role `DRIVER` is divided.
    """
    return _used(roots)[0]


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
            self.peak |= _used(self._roots)[1]  # the larger of each


def _used(roots: Mapping[str, int]) -> tuple[dict[str, float], Counter[str]]:
    cpu: dict[str, float] = defaultdict(float)
    resident: Counter[str] = Counter()
    for root, pid in roots.items():
        for process in tree(pid):
            try:
                # proc(5): the command, in brackets, may hold anything; what follows is plain.
                stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            role = _ROLES[process.role] if root == DRIVER else root
            cpu[role] += sum(map(int, stat[11:15])) / _TICK  # with children that were waited for
            resident[role] += int(stat[21]) * _PAGE
    return cpu, resident
