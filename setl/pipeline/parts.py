"""What a run of a pipeline is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from setl.extract.extractor import Extractor, RoutedRows
from setl.load.port import Fence, LoadTicket
from setl.pipeline.job import LoadReport
from setl.pipeline.stalls.observer import Sights
from setl.select.heartbeat import Heartbeat
from setl.select.port import CheckpointStore, Source
from setl.select.reader import SelectLoop


class Loading(Protocol):
    """What a run asks of Transform and Load; `setl.pipeline.job.LoadJob` is it."""

    def applied_through(self, ticket: LoadTicket) -> int:
        """Version up to which the target may hold this pipeline's changes; 0 if unknown."""
        ...

    def run(
        self, rows: Sequence[RoutedRows], ticket: LoadTicket, redelivered_through: int
    ) -> LoadReport:
        """Transform and load; returns when the target has everything, raises SetlError."""
        ...

    @property
    def abandoned(self) -> bool:
        """Whether a load has ended while tasks of it may still be writing.

        Then its epoch is spent: the fence tells what they write from what is loaded next only
        if that is loaded under a higher one.
        """
        ...

    def cancel(self) -> None:
        """Cancel the load that runs; from any thread."""
        ...


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run is made of; `setl.pipeline.assembly` builds it from a channel file.

    `tells_applied` says whether the target keeps what `Loading.applied_through` asks for, and
    `sights` what can be looked at from outside.
    """

    channel: str
    pipeline: str
    source: Source
    extractor: Extractor
    job: Loading
    fence: Fence
    store: CheckpointStore
    heartbeat: Heartbeat | None
    heartbeat_id: int
    select: SelectLoop
    generation: int
    stop_on_ddl: bool
    rows_per_load: int
    tells_applied: bool = True
    sights: Sights = field(default_factory=Sights)
