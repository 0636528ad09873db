"""Everything about the target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from setl.bulk.source_side import MappedTable
from setl.bulk.table_shape import TableShape
from setl.load.sink import Fence
from setl.load.target_view import LookAtTarget, TargetView
from setl.load.version_fence import VersionFence
from setl.systems.finding import Report
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import TargetSystem
from setl_jsonlines.config import JsonLinesTarget
from setl_jsonlines.lines import file_of
from setl_jsonlines.reader import JsonLinesReader
from setl_jsonlines.sink import JsonLinesSinkSettings


class JsonLines(TargetSystem):
    """The `TargetSystem` of a folder, in which a newer line is never undone by an older one."""

    def __init__(self, config: JsonLinesTarget) -> None:
        self._folder = config.folder

    def sink(self, mark: int, *, dead_letter_limit: int) -> JsonLinesSinkSettings:
        """See `TargetSystem.sink`."""
        return JsonLinesSinkSettings(self._folder)

    def fence(self, pipeline: str) -> Fence:
        """See `TargetSystem.fence`."""
        return VersionFence()

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

    def view(self, pipeline: str) -> LookAtTarget:
        """See `TargetSystem.view`."""
        return lambda _: TargetView(name=f"the folder {self._folder}")

    def preflight(self, check: PipelineCheck, report: Report) -> None:
        """See `TargetSystem.preflight`."""
        if not Path(self._folder).is_dir():
            report.error(f"there is no folder {self._folder}", "Make it, on every machine")
        elif not os.access(self._folder, os.W_OK):
            report.error(f"{self._folder} cannot be written to", "Let the account write there")
        else:
            report.ok(f"{self._folder} can be written to")
        if check.pipeline.stores_dead_letters:
            report.error("a folder keeps no dead letters", "Leave `faulty_rows` out")
