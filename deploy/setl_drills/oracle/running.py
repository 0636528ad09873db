"""Rounds for a while, on servers of their own: through a node, or through adapters alone."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from setl_drills.oracle.node_rounds import NodeRounds, Outcome
from setl_drills.oracle.node_world import NodeWorld
from setl_drills.oracle.rounds import Round, Servers, play
from setl_drills.oracle.sessions import Step
from setl_embedded import DatabaseServer, MariaDb, MySql

_SHOWN = 40
_LONGEST = 600


@contextmanager
def own_servers(sites: str, seed: int, folder: Path | None = None) -> Iterator[Servers]:
    """Start what a run needs; of `mixed`, an even seed has MySQL as the source, an odd MariaDB.

    Args:
        sites: a key of `setl_drills.world.SITES`.
        seed: the run's.
        folder: where data and logs go; None for a temporary folder.
    """
    root = folder_of(folder)
    source_kind, target_kind = _families(sites, seed)
    with ExitStack() as stack:

        def started(name: str, number: int, kind: type[MariaDb | MySql]) -> DatabaseServer:
            return stack.enter_context(kind(root / name, name, number))

        source = started("source", 731, source_kind)
        replica = started("replica", 732, source_kind)
        target = started("target", 733, target_kind) if sites == "mixed" else replica
        servers = Servers(source, replica, target)
        servers.prepare()
        yield servers


def play_for(
    servers: Servers, seed: int, seconds: float, say: Callable[[str], None], first: int = 1
) -> list[Round]:
    """Play rounds until the time is over, at least one; says each that has failed."""
    ends = time.monotonic() + seconds
    rounds: list[Round] = []
    while not rounds or time.monotonic() < ends:
        one = play(servers, f"{seed}.{first + len(rounds)}")
        rounds.append(one)
        for fault in one.faults:
            say(f"round {one.number}: {fault}\n  {one.table}")
    return rounds


def summary(rounds: list[Round]) -> str:
    """What came of a run, in a line."""
    stopped = sum(bool(one.setl) for one in rounds)
    both = sum(bool(one.setl and one.replica) for one in rounds)
    return (
        f"{len(rounds)} rounds, {sum(one.statements for one in rounds)} statements:"
        f" {len(rounds) - stopped} ended equal, {stopped} stopped with an error ({both} with the"
        f" replica), {sum(bool(one.faults) for one in rounds)} failed"
    )


def folder_of(given: Path | None) -> Path:
    """Where servers, logs and histories go: the folder given, or a temporary one."""
    return given or Path(tempfile.mkdtemp(prefix="setl-oracle-"))


def own_world(
    sites: str, seed: int, folder: Path, through: str = "", without: Collection[str] = ()
) -> NodeWorld:
    """Describe what a run through a node needs.

    Records do not have the session of a statement, so that some that create a table stop a
    pipeline. Without schema changes setl creates the tables as it finds them at the source.

    Args:
        sites: see `own_servers`.
        seed: see `own_servers`.
        folder: for data and logs.
        through: see `NodeWorld`.
        without: features that histories will not have.
    """
    ddl = "ignore" if through and "ddl" in without else "pass"
    return NodeWorld(folder, *_families(sites, seed), through, ddl)


def _families(sites: str, seed: int) -> tuple[type[MariaDb | MySql], type[MariaDb | MySql]]:
    if sites == "mixed":
        return (MySql, MariaDb) if seed % 2 == 0 else (MariaDb, MySql)
    kind = MySql if sites == "mysql" else MariaDb
    return kind, kind


@dataclass(slots=True)
class Tally:
    """What came of a run through a node.

    Attributes:
        rounds: how many were played.
        statements: how many the source has taken.
        rows: how many rows of the source were compared.
        ends: how many rounds ended in what way, by `Outcome.kind`.
        wrong: how many ended with rows, tables or indexes that are wrong, without an error.
        native: how many the replica did not copy either, by `Outcome.native_kind`.
    """

    rounds: int = 0
    statements: int = 0
    rows: int = 0
    ends: Counter[str] = field(default_factory=Counter[str])
    wrong: int = 0
    native: Counter[str] = field(default_factory=Counter[str])

    def add(self, outcome: Outcome) -> None:
        """Count a round."""
        self.rounds += 1
        self.statements += len(outcome.steps) - len(outcome.refused)
        self.rows += outcome.rows
        self.ends[outcome.kind] += 1
        self.wrong += bool(outcome.wrong)
        self.native.update([outcome.native_kind] if outcome.native_kind else [])

    @property
    def lines(self) -> list[str]:
        """The run in a few lines."""
        first = (
            f"{self.rounds} rounds, {self.statements} statements, {self.rows} rows:"
            f" {self.ends['']} ended equal, {self.native.total()} without a replica that agrees,"
            f" {self.wrong} wrong without an error"
        )
        kinds = [f"{count:6} {kind}" for kind, count in self.ends.most_common() if kind]
        natives = [f"{count:6} the replica: {kind}" for kind, count in self.native.most_common()]
        return [first, *kinds, *natives]


def play_through_node(
    rounds: NodeRounds,
    seconds: float,
    say: Callable[[str], None],
    *,
    first: int = 1,
    shrink: float = 60.0,
) -> Tally:
    """Play rounds until the time is over, at least one; says what is to be looked at.

    Args:
        rounds: plays them.
        seconds: how long.
        say: takes lines of progress.
        first: the first round's number.
        shrink: seconds to spend on the smallest history of what is wrong, and of each kind of stop.
    """
    ends = time.monotonic() + seconds
    tally = Tally()
    while not tally.rounds or time.monotonic() < ends:
        number = first + tally.rounds
        outcome = rounds.play(number)
        new = outcome.kind not in tally.ends
        if outcome.native_kind and outcome.native_kind not in tally.native:
            say(f"round {number}, the replica: {outcome.native_kind}\n{rounds.file(number)}")
            say("\n".join([outcome.replica, *map(str, outcome.native)]).strip())
        tally.add(outcome)
        if outcome.wrong or (outcome.kind and new):
            say(f"round {number}: {outcome.kind}\n{rounds.file(number)}")
            say(as_text(outcome, brief=True))
            if shrink:
                say(as_text(rounds.smaller(outcome, shrink)))
    return tally


def as_text(outcome: Outcome, *, brief: bool = False) -> str:
    """What came of a history, for people: what is wrong, and the statements that lead to it."""
    lines = [str(difference) for difference in outcome.differences]
    if outcome.stopped is not None:
        lines.append(f"{outcome.stopped.state}: {outcome.stopped.error}")
    if outcome.replica:
        lines.append(f"the replica has stopped: {outcome.replica}")
    if not brief:
        lines.append(f"  CREATE DATABASE oracle_db {outcome.options};")
        lines += [f"  {_shown(step)}" for step in outcome.taken[:_SHOWN]]
        if len(outcome.taken) > _SHOWN:
            lines.append(f"  and {len(outcome.taken) - _SHOWN} more")
    return "\n".join(lines)


def _shown(step: Step) -> str:
    text = step.sql if len(step.sql) <= _LONGEST else f"{step.sql[:_LONGEST]}…"
    return f"{text};" if step.charset == "utf8mb4" else f"{text};  -- in {step.charset}"
