"""Everything about the target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from setl.bulk.source_side import MappedTable
from setl.bulk.table_shape import TableShape
from setl.channel.endpoint import SourceConfig
from setl.channel.routing import Route
from setl.errors import ConfigurationError
from setl.load.deadletters.store import DeadLetterStore
from setl.load.sink import Fence, SchemaChanges
from setl.load.target_view import LookAtTarget, TargetView
from setl.select.checkpoints.note import Notes
from setl.select.checkpoints.owner import Owner
from setl.select.source import ReplaceableStore
from setl.systems.conflicts import ConflictList
from setl.systems.finding import Report
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import Passing, Relaying
from setl.systems.refusals import no_log
from setl.systems.stored_state import StoredState
from setl.systems.write_stop import WriteStop
from setl_jsonlines.config import JsonLinesTarget
from setl_jsonlines.lines import file_of
from setl_jsonlines.reader import JsonLinesReader
from setl_jsonlines.sink import JsonLinesSinkSettings


class NoFence:
    """The `Fence` of a folder, which needs none: see `setl_jsonlines.lines`."""

    def raise_to(self, epoch: int, nid: str) -> None:
        """See `Fence.raise_to`."""

    def end_writers(self, epoch: int) -> None:
        """See `Fence.end_writers`."""


class JsonLines:
    """The `TargetSystem` of a folder."""

    tells_applied = False

    def __init__(self, config: JsonLinesTarget) -> None:
        self._folder = config.folder

    def sink(self, mark: int, *, dead_letter_limit: int) -> JsonLinesSinkSettings:
        """See `TargetSystem.sink`."""
        return JsonLinesSinkSettings(self._folder)

    def fence(self, pipeline: str) -> Fence:
        """See `TargetSystem.fence`."""
        return NoFence()

    def checkpoints(self, owner: Owner, notes: Notes) -> ReplaceableStore | None:
        """See `TargetSystem.checkpoints`; ZooKeeper keeps them."""
        return None

    def stored_state(self, pipeline: str) -> StoredState:
        """See `TargetSystem.kept`."""
        return StoredState()

    def schema_changes(self, passing: Passing) -> SchemaChanges | None:
        """See `TargetSystem.schema_changes`; each line has its own columns."""
        return None

    def dead_letters(self) -> AbstractContextManager[DeadLetterStore]:
        """See `TargetSystem.dead_letters`."""
        raise ConfigurationError("a folder keeps no dead letters")

    def reader(
        self, name: tuple[str, str], sources: Sequence[MappedTable], columns: Sequence[str]
    ) -> JsonLinesReader:
        """See `TargetSystem.reader`."""
        filled = {column.name: column for column in sources[0].target_columns}
        shape = TableShape.of_columns([filled[column] for column in columns], sources[0].key_names)
        return JsonLinesReader(file_of(self._folder, *name), shape)

    def holds_rows(self, name: tuple[str, str]) -> bool:
        """See `TargetSystem.holds_rows`."""
        file = file_of(self._folder, *name)
        return file.exists() and file.stat().st_size > 0

    def agreeing_tables(
        self, source: SourceConfig, tables: Sequence[tuple[tuple[str, str], Route]]
    ) -> frozenset[str]:
        """See `TargetSystem.agreeing_tables`; no line is in the way of another."""
        return frozenset()

    def view(self, pipeline: str) -> LookAtTarget:
        """See `TargetSystem.view`."""
        return lambda _: TargetView(name=f"the folder {self._folder}")

    def conflicts(self) -> ConflictList | None:
        """See `TargetSystem.conflicts`."""
        return None

    def write_stop(self) -> WriteStop | None:
        """See `TargetSystem.write_stop`."""
        return None

    def relaying(self, pipeline: str) -> Relaying:
        """See `TargetSystem.relaying`."""
        raise no_log(pipeline)

    def preflight(self, check: PipelineCheck, report: Report) -> None:
        """See `TargetSystem.preflight`."""
        if not Path(self._folder).is_dir():
            report.error(f"there is no folder {self._folder}", "Make it, on every machine")
        elif not os.access(self._folder, os.W_OK):
            report.error(f"{self._folder} cannot be written to", "Let the account write there")
        else:
            report.ok(f"{self._folder} can be written to")
        if check.pipeline.keeps_dead_letters:
            report.error("a folder keeps no dead letters", "Leave `faulty_rows` out")
