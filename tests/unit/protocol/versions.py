"""The protocol of a target without transactions: one document, written with versions (I2, I12).

Elasticsearch has no fence. Every run sends its changes in order, each with the version that the
change has in the source, and what was sent may arrive at any time, more than once, long after
another run has begun. The checkpoint lies with the arbiter, which lets it only move on.

What is left out: other documents, which never meet, and requests of many changes, which are as
many requests here. Whether an item is answered does not matter either: a sender that has no
answer sends the change again, which is one more arrival.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.unit.protocol.explore import Step

V1 = "V1: what is older replaces what is newer"
V2 = "V2: a change that was acknowledged is not there"

CHANGES = ("put", "delete", "put", "delete", "put")
"""What the source says about the document, oldest first: change 0, change 1 and so on."""


class Document(NamedTuple):
    """What the target knows of the document.

    Attributes:
        change: the change that it reflects, -1 if none was ever applied.
        version: its version; None if the target knows of no document, not even a deleted one.
    """

    change: int = -1
    version: tuple[int, int] | None = None


class State(NamedTuple):
    """Everything.

    Attributes:
        document: in the target.
        sent: changes that may yet arrive, by whomever they were sent.
        runs: for each run, oldest first, how many changes it has had acknowledged.
        checkpoint: how many changes need not be sent again.
    """

    document: Document = Document()
    sent: frozenset[int] = frozenset()
    runs: tuple[int, ...] = ()
    checkpoint: int = 0

    def __str__(self) -> str:
        runs = ", ".join(f"run {i} at {position}" for i, position in enumerate(self.runs))
        return f"{self.document}; sent {sorted(self.sent)}; checkpoint {self.checkpoint}; {runs}"


@dataclass(frozen=True, slots=True)
class Versions:
    """The protections, each of which may be left out to see what it is there for.

    Attributes:
        compares: the target refuses what is older than what it holds.
        remembers: it remembers the version of a deleted document (``index.gc_deletes``).
        generations: positions that start again come with a higher generation.
        restart: the change at which the source's positions start again, as those of another
            server or a new topic do.
        max_runs: how many leaderships there may be.
    """

    compares: bool = True
    remembers: bool = True
    generations: bool = True
    restart: int = 3
    max_runs: int = 3

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen in a state."""
        if len(state.runs) < self.max_runs:
            runs = (*state.runs, state.checkpoint)
            yield Step(f"run {len(state.runs)} begins", state._replace(runs=runs))
        for change in sorted(state.sent):
            yield self._arrives(state, change)
        for i, position in enumerate(state.runs):
            if position == len(CHANGES):
                continue
            if position not in state.sent:
                sent = state.sent | {position}
                yield Step(f"run {i} sends change {position}", state._replace(sent=sent))
            else:
                yield from self._acknowledged(state, i, position)
        for i, position in enumerate(state.runs):
            if position > state.checkpoint:
                yield Step(f"run {i} stores its checkpoint", state._replace(checkpoint=position))

    def _acknowledged(self, state: State, i: int, change: int) -> Iterator[Step]:
        """The change arrives and its sender learns so; copies of it may still be on their way."""
        arrived = self._arrives(state, change)
        runs = (*state.runs[:i], change + 1, *state.runs[i + 1 :])
        violation = arrived.violation
        if arrived.state.document.change < change:
            violation = violation or V2
        yield Step(
            f"run {i} has change {change} acknowledged",
            arrived.state._replace(runs=runs),
            violation=violation,
        )

    def _arrives(self, state: State, change: int) -> Step:
        label = f"change {change} ({CHANGES[change]}) arrives"
        version, held = self._version(change), state.document.version
        if self.compares and held is not None and version < held:
            return Step(f"{label} and is refused", state)
        forgotten = CHANGES[change] == "delete" and not self.remembers
        document = Document(change, None if forgotten else version)
        violation = V1 if change < state.document.change else ""
        return Step(label, state._replace(document=document), violation=violation)

    def _version(self, change: int) -> tuple[int, int]:
        """Generation and position, in this order, see `setl.model.position.document_version`."""
        if change < self.restart:
            return 1, change
        return (2 if self.generations else 1), change - self.restart

    @staticmethod
    def key(state: State) -> Hashable:
        """What tells a state from others: runs are alike."""
        return *state[:2], tuple(sorted(state.runs)), state.checkpoint
