"""What the bench asks of a competitor, and of where it works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from setl_embedded import Kafka, MariaDb
from tests.bench.cpu import DRIVER, PeakMemory, cpu_by_role
from tests.bench.report import SOURCE, TARGET, Taken
from tests.bench.servers import Target
from tests.bench.workloads import Workload, Written


@dataclass(frozen=True)
class Place:
    """Where a workload lies.

    Attributes:
        folder: for logs and data.
        source: the server in whose binlog it is.
        written: where in it.
        kafka: a broker that has it as DTS records too, if any competitor wants them.
        topic: its topic there, with one partition and nothing else.
    """

    folder: Path
    source: MariaDb
    written: Written
    kafka: Kafka | None = None
    topic: str = ""

    @property
    def limit(self) -> float:
        """Seconds after which a competitor counts as hanging."""
        return 180 + self.written.workload.changes / 200


class Competitor(Protocol):
    """Applies a workload to a target.

    Attributes:
        name: for tables.
        source: binlog or kafka.
        target_options: how the target has to be started, if that is MariaDB.
    """

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def target_options(self) -> Sequence[str]: ...

    def why_not(self, target: str, workload: Workload) -> str:
        """Why it cannot take part, "" if it can; None of its reasons is a fault of its own."""
        ...

    def measure(self, place: Place, target: Target) -> Taken:
        """Apply everything, ready and connected before the time begins.

        Raises:
            RuntimeError: it failed, or hangs.
        """
        ...


class Meter:
    """Notes what a competitor's processes and the servers use from now on.

    Attributes:
        memory: enter it for as long as memory is to be sampled.
    """

    def __init__(self, pid: int | None, target: Target, source: int) -> None:
        """Begin.

        Args:
            pid: the competitor's process; None if it has none of its own.
            target: what it writes to.
            source: pid of the server from which it reads.
        """
        own = {} if pid is None else {DRIVER: pid}
        self._roots = {**own, TARGET: target.pid, SOURCE: source}
        self._before = cpu_by_role(self._roots)
        self.memory = PeakMemory(self._roots)

    def taken(self, seconds: float, start_seconds: float | None = None) -> Taken:
        """What was used until now."""
        after = cpu_by_role(self._roots)
        used = {role: spent - self._before.get(role, 0.0) for role, spent in after.items()}
        return Taken(seconds, start_seconds, used, dict(self.memory.peak))
