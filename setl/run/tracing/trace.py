"""What is told of a batch once it has ended, and the port that it is told to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from setl.model.leadership import Leadership


class Span(NamedTuple):
    """A time in a stage.

    Attributes:
        stage: its name, in lower case.
        begun: seconds since 1970.
        ended: seconds since 1970, not before `begun`.
    """

    stage: str
    begun: float
    ended: float


@dataclass(frozen=True, slots=True)
class BatchTrace:
    """A batch from its first entry to its end.

    Attributes:
        leadership: under which it was applied.
        batch: its id.
        position: where the pipeline stands once it is applied.
        rows: row changes in it, as the source counts them.
        size: bytes of its records.
        together: batches that were loaded together with it, itself included.
        begun: when its first entry came, seconds since 1970.
        ended: when it was acknowledged, or failed.
        stages: the stages that it came to, in order. What is loaded together is in the stages
            behind Select together.
        error: why it was rolled back, "" if it was acknowledged.
    """

    leadership: Leadership
    batch: int
    position: str
    rows: int
    size: int
    together: int
    begun: float
    ended: float
    stages: tuple[Span, ...]
    error: str = ""


class Tracer(Protocol):
    """Takes traces.

    Order: as batches end. Idempotence: a batch that is applied again is a trace again. Crash:
    traces that are not sent yet are lost; nothing else depends on them.

    `export` is called by runs' threads, at once. It neither waits nor raises.
    """

    def export(self, traces: Sequence[BatchTrace]) -> None:
        """Batches have ended."""
        ...

    def close(self) -> None:
        """Send what is left, within some seconds."""
        ...
