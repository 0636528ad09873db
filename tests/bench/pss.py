"""Memory of processes by role while something runs, page by page, and how it grew."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.bench.cpu import role_of_each
from tests.bench.watching import Sampler

_SAMPLE_SECONDS = 0.5


class SharedMemory(Sampler):
    """Samples the proportional set size by role while it is entered.

    A page that several processes share counts for each of them in part (PSS), so what forked
    workers have in common is not counted twice.

    Attributes:
        samples: bytes by role, in order.
    """

    def __init__(self, roots: Mapping[str, int]) -> None:
        """Sample nothing yet; `roots` as for `tests.bench.cpu.cpu_by_role`."""
        super().__init__("shared-memory", self._sample, _SAMPLE_SECONDS)
        self.samples: dict[str, list[int]] = defaultdict(list)
        self._roots = roots

    def _sample(self) -> None:
        found: Counter[str] = Counter()
        for pid, role in role_of_each(self._roots).items():
            found[role] += pss(pid)
        for role, size in found.items():
            self.samples[role].append(size)

    def halves(self) -> dict[str, tuple[int, int]]:
        """The highest of the first half and of the second, by role."""
        return {
            role: (max(sizes[: len(sizes) // 2]), max(sizes[len(sizes) // 2 :]))
            for role, sizes in self.samples.items()
            if len(sizes) > 1
        }


def pss(pid: int) -> int:
    """Bytes of a process, shared pages divided; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
