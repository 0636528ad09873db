"""What a peer's processes and the servers use: CPU time and memory, by role."""

from __future__ import annotations

import os
import threading
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from setl_drills.processes import Role, tree

_TICK = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 1.0  # adding up the pages of a JVM takes some milliseconds

DRIVER, JVM, WORKERS, TARGET, SOURCE = ROLES = ("driver", "jvm", "workers", "target", "source")
OWN = (DRIVER, JVM, WORKERS)
"""The roles into which a peer's own processes are divided."""

_OWN = {Role.JVM: JVM, Role.DAEMON: WORKERS, Role.WORKER: WORKERS}


@dataclass(frozen=True, order=True)
class Taken:
    """What one run of one peer took; the fastest run is the smallest."""

    seconds: float
    # Of these, until the first rows were applied; None if that is not known.
    start_seconds: float | None = field(default=None, compare=False)
    # Seconds of processor time by role.
    cpu: dict[str, float] = field(default_factory=dict[str, float], compare=False)
    # Highest sampled bytes of its own processes by role; shared pages are divided among them.
    memory: dict[str, int] = field(default_factory=dict[str, int], compare=False)


class Meter:
    """Measures a peer's process, and servers, from now on; samples memory while it is entered."""

    def __init__(self, own: int | None = None, **servers: int) -> None:
        self._own = own
        self._servers = servers
        self._before = self._cpu()
        self._peak: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def taken(self, seconds: float, start_seconds: float | None = None) -> Taken:
        """What was used until now, also by processes that have ended and were waited for."""
        cpu = {role: used - self._before[role] for role, used in self._cpu().items()}
        return Taken(seconds, start_seconds, cpu, dict(self._peak))

    def _processes(self) -> list[tuple[str, Path]]:
        own = tree(self._own) if self._own else []
        return [(_OWN.get(each.role, DRIVER), Path(f"/proc/{each.pid}")) for each in own]

    def _cpu(self) -> dict[str, float]:
        used: dict[str, float] = defaultdict(float)
        servers = [(role, Path(f"/proc/{pid}")) for role, pid in self._servers.items()]
        for role, process in [*self._processes(), *servers]:
            with suppress(OSError):  # it ended meanwhile
                # proc(5): the command, in brackets, may hold anything; what follows is plain.
                stat = (process / "stat").read_text().rpartition(")")[2].split()
                used[role] += sum(map(int, stat[11:15])) / _TICK
        return used

    def _watch(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stopping.wait(_SAMPLE_SECONDS)
            held: Counter[str] = Counter()
            for role, process in self._processes():
                with suppress(OSError, StopIteration):
                    lines = (process / "smaps_rollup").read_text().splitlines()
                    line = next(line for line in lines if line.startswith("Pss:"))
                    held[role] += int(line.split()[1]) * 1024
            self._peak |= held  # the larger of each
