"""One workload into one kind of target, by all peers in turns, whose targets are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from rich.console import Console

from setl_embedded import DatabaseServer
from tests.bench.contents import differences
from tests.bench.metering import Taken
from tests.bench.servers import Target, fresh_target, source_server
from tests.bench.topic import Topic, topic_of
from tests.bench.workloads import Workload, Written, write


@dataclass
class StartPoint:
    """Where a workload lies: in the binlog of a server, and on Kafka if anyone asks for that."""

    folder: Path  # for logs and data
    source: DatabaseServer
    written: Written
    stack: ExitStack = field(default_factory=ExitStack)  # ends what is begun for it
    _topic: Topic | None = None

    @property
    def workload(self) -> Workload:
        return self.written.workload

    @property
    def limit(self) -> float:
        """Seconds after which a peer counts as hanging."""
        return 180 + self.workload.size / 200

    @property
    def topic(self) -> Topic:
        if self._topic is None:
            self._topic = self.stack.enter_context(topic_of(self.folder, self.source, self.written))
        return self._topic


class Peer(ABC):
    """Applies a workload to a target."""

    name: str
    target_options: Sequence[str] = ()  # with which a target that is a database is started

    def why_not(self, target: str, workload: Workload) -> str:
        """Why it cannot take part, "" if it can; None of its reasons is a fault of its own."""
        return ""

    @abstractmethod
    def measure(self, start: StartPoint, target: Target) -> Taken:
        """Apply everything, ready and connected before the time begins.

        Raises:
            RuntimeError: it failed, or hangs.
        """


@dataclass
class Result:
    """What one peer did with one workload."""

    workload: str
    target: str
    peer: str
    changes: int  # or rows that were loaded
    missing: str = ""  # why it did not take part
    runs: list[Taken] = field(default_factory=list[Taken])  # those that came to their end
    wrong: list[str] = field(default_factory=list[str])  # in the target's contents
    failed: list[str] = field(default_factory=list[str])  # why runs did not come to their end

    @property
    def title(self) -> str:
        return f"{self.workload} to {self.target}"

    @property
    def best(self) -> Taken | None:
        """The fastest run: what the machine does beside it can only slow a run down."""
        return min(self.runs, default=None)

    @property
    def rate(self) -> float | None:
        """Row changes a second in the best run."""
        return self.changes / self.best.seconds if self.best else None

    @property
    def problems(self) -> list[str]:
        return [*self.failed, *self.wrong]

    def cpu(self, *roles: str) -> float | None:
        """CPU seconds of some roles for a million row changes, median of its runs."""
        used = [sum(run.cpu.get(role, 0.0) for role in roles) for run in self.runs]
        if not used or not any(role in run.cpu for run in self.runs for role in roles):
            return None
        return median(used) / self.changes * 1e6


def run(
    workload: Workload,
    kind: str,
    peers: Sequence[Peer],
    folder: Path,
    console: Console,
    rounds: int = 1,
    family: str = "mariadb",
) -> list[Result]:
    """One result for each peer that takes part, or only would have to be installed."""
    results: list[Result] = []
    able: list[tuple[Peer, Result]] = []
    for peer in peers:
        why = peer.why_not(kind, workload)
        result = Result(workload.name, kind, peer.name, workload.size, why)
        if why in ("", "not installed"):
            results.append(result)
        if not why:
            able.append((peer, result))
    if not able:
        return results
    with ExitStack() as stack:
        source = stack.enter_context(source_server(folder, family))
        console.print(f"{workload.name} to {kind}: writing {workload.size:,} rows")
        with source.connect() as connection:
            start = StartPoint(folder, source, write(connection, workload), stack)
        for peer, result in able * rounds:
            _take_turn(start, peer, result, family, console)
    return results


def _take_turn(
    start: StartPoint, peer: Peer, result: Result, family: str, console: Console
) -> None:
    """Into a target of its own, whose contents are compared afterwards."""
    empty = replace(start.workload, base=0) if start.workload.is_loaded else start.workload
    with fresh_target(start.folder, result.target, empty, peer.target_options, family) as target:
        try:
            taken = peer.measure(start, target)
        except RuntimeError as error:
            result.failed.append(str(error))
            console.print(f"  {peer.name}: {error}", markup=False)
            return
        result.runs.append(taken)
        wrong = differences(start.source, target, start.workload)
        result.wrong += wrong
    console.print(
        f"  {peer.name}: {taken.seconds:.1f} s, {result.changes / taken.seconds:,.0f} a second"
        f"{', wrong contents' if wrong else ''}"
    )
