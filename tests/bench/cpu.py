"""CPU time of a process and everything it started, from ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """CPU seconds spent so far by a process and its descendants that live, or were waited for."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # proc(5): the command, in brackets, may hold anything; the fields after it are plain.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        spent[pid] = sum(map(int, fields[11:15])) / _TICK
    return sum(seconds for pid, seconds in spent.items() if _descends(pid, root, parents))


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid and pid != root:
        pid = parents.get(pid, 0)
    return pid == root
