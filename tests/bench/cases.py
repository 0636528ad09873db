"""Which workload in which size goes where, and one workload through all competitors in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from setl_embedded import Kafka, MariaDb
from tests.bench.competitor import Competitor, Place, differences
from tests.bench.fetching import limited
from tests.bench.relay import relayed
from tests.bench.report import Result, Taken
from tests.bench.servers import fresh_target, source_server
from tests.bench.workloads import Workload, big, inserts, many, mixed, updates, wide, write

WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "w1": inserts, "w2": updates, "w3": mixed, "wide": wide, "many": many, "big": big,
}  # fmt: skip
_CHANGES = {"w1": 200_000, "w2": 200_000, "w3": 200_000, "wide": 50_000, "many": 100_000,
            "big": 1_000_000}  # fmt: skip

# The embedded Elasticsearch overwrites a thousand documents a second, and stalls when it holds
# a million: by its own fault, and no subject of this measurement.
_CHANGES_SEARCH = {**_CHANGES, "w3": 20_000, "many": 20_000, "big": 200_000}
# It writes every last image of each ten thousand changes, setl fewer of them.
_CHANGES_PLAIN_SEARCH = {"w2": 20_000}


def sized(name: str, target: str, competitor: str, changes: int | None = None) -> Workload:
    """A workload in the size in which a competitor can do it in a few minutes.

    Args:
        name: of `WORKLOADS`.
        target: mysql or elasticsearch.
        competitor: its name.
        changes: at most so many row changes; None for the size that the workload usually has.
    """
    usual = (_CHANGES_SEARCH if target == "elasticsearch" else _CHANGES)[name]
    count = usual if changes is None else changes
    if target == "elasticsearch" and competitor in {"plain", "debezium"}:
        count = min(count, _CHANGES_PLAIN_SEARCH.get(name, count))
    return WORKLOADS[name](count)


@dataclass(frozen=True)
class Case:
    """One workload into one target, by competitors who may do it in different sizes.

    Attributes:
        family: of the source, and of a target that is a database.
    """

    name: str
    target: str
    competitors: Sequence[Competitor]
    changes: int | None = None
    rounds: int = 1
    family: str = "mariadb"

    def groups(self) -> dict[Workload, list[Competitor]]:
        """Who does the workload in which size."""
        groups: dict[Workload, list[Competitor]] = {}
        for competitor in self.competitors:
            workload = sized(self.name, self.target, competitor.name, self.changes)
            groups.setdefault(workload, []).append(competitor)
        return groups


def run(case: Case, folder: Path, console: Console) -> Iterator[Result]:
    """One result for each competitor, also for one that cannot take part."""
    for number, (workload, competitors) in enumerate(case.groups().items()):
        able: list[_Entrant] = []
        for competitor in competitors:
            entrant = _Entrant(case.target, workload, competitor, case.family)
            if why := competitor.why_not(case.target, workload):
                if why == "not installed":
                    yield entrant.result(missing=why)
            else:
                able.append(entrant)
        if able:
            with ExitStack() as stack:
                server = stack.enter_context(source_server(folder / f"{number}", case.family))
                place = _written(workload, folder / f"{number}", able, server, stack, console)
                for entrant in able * case.rounds:
                    entrant.take_turn(place, console)
            yield from (entrant.result() for entrant in able)


def _written(
    workload: Workload, folder: Path, able: list[_Entrant], source: MariaDb, stack: ExitStack,
    console: Console,
) -> Place:  # fmt: skip
    console.print(f"{workload.name}: writing {workload.changes:,} changes")
    with source.connect() as connection:
        written = write(connection, workload)
    if all(entrant.competitor.source != "kafka" for entrant in able):
        return Place(folder, source, written)
    kafka = stack.enter_context(Kafka(folder / "kafka"))
    topic = relayed(source, written, kafka)
    brokers = stack.enter_context(limited(kafka, topic))
    return Place(folder, source, written, kafka, topic, brokers)


@dataclass
class _Entrant:
    """A competitor in one workload, and what it has done so far."""

    target: str
    workload: Workload
    competitor: Competitor
    family: str
    runs: list[Taken] = field(default_factory=list[Taken])
    wrong: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])

    def take_turn(self, place: Place, console: Console) -> None:
        """Into a target of its own, whose contents are looked at afterwards."""
        options = self.competitor.target_options
        with fresh_target(place.folder, self.target, self.workload, options, self.family) as target:
            try:
                taken = self.competitor.measure(place, target)
            except RuntimeError as error:
                self.failed.append(str(error))
                console.print(f"  {self.competitor.name}: {error}", markup=False)
                return
            self.runs.append(taken)
            wrong = differences(place.source, target, self.workload)
            self.wrong += wrong
        rate = self.workload.changes / taken.seconds
        console.print(
            f"  {self.competitor.name}: {taken.seconds:.1f} s, {rate:,.0f} a second"
            f"{', wrong contents' if wrong else ''}"
        )

    def result(self, missing: str = "") -> Result:
        """All of it."""
        return Result(
            self.workload.name, self.target, self.competitor.name, self.workload.changes,
            tuple(self.runs), tuple(self.wrong), tuple(self.failed), missing,
        )  # fmt: skip
