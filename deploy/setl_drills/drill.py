"""What a drill is, and what comes of one run of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from setl_drills.world import Needs, World

Run = Callable[[World, int], "DrillResult"]


@dataclass
class DrillResult:
    """The outcome of one drill with one seed.

    Attributes:
        drill: its name.
        seed: the seed.
        outages: seconds from each fault to the first load after it, for each struck pipeline.
        redelivered: row changes that were applied again.
        lost: acknowledged rows that never arrived.
        unexpected: rows that nobody wrote.
        echoes: row changes that came back to where they were written.
        problems: what should not have been, in words; empty if the drill passed.
        notes: what is worth knowing though it is no problem.
        evidence: what was seen, as JSON values.
        seconds: how long it took.
        folder: where logs were kept, None if they were not.
    """

    drill: str
    seed: int
    outages: list[float] = field(default_factory=list)
    redelivered: int = 0
    lost: int = 0
    unexpected: int = 0
    echoes: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    folder: Path | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {**asdict(self), "folder": str(self.folder or ""), "passed": self.passed}


@dataclass(frozen=True, slots=True)
class Drill:
    """A rehearsed fault.

    Attributes:
        name: what people type.
        about: one line that says what is done and what must hold.
        seeded: what the seed decides.
        run: rehearses it once.
        needs: the servers it needs.
    """

    name: str
    about: str
    seeded: str
    run: Run
    needs: Needs = field(default_factory=Needs)
