"""Delta tables as a target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from typing_extensions import override

from setl.bulk.source_side import MappedTable
from setl.channel.fields.delta_endpoint import DeltaTarget
from setl.load.creation import TableCreation
from setl.load.identities import Identity
from setl.load.sink import Fence, SchemaChanges
from setl.load.target_view import LookAtTarget, TargetView
from setl.systems.delta.creation import DeltaCreation
from setl.systems.delta.ddl import DeltaDdl
from setl.systems.delta.fence import DeltaFence
from setl.systems.delta.files import files_of
from setl.systems.delta.identities import table_identities
from setl.systems.delta.location import Location, translating
from setl.systems.delta.preflight import check_delta_target
from setl.systems.delta.reader import DeltaReader
from setl.systems.delta.sink import DeltaSinkSettings
from setl.systems.finding import Report
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import DdlReplicationContext, TargetSystem
from setl.systems.stored_state import StoredState


class DeltaTargetSystem(TargetSystem):
    """The `TargetSystem` of Delta tables.

    It keeps no checkpoint: a load of several tables is several commits, and no one of them could
    say that all are there.
    """

    runs_statements = False

    def __init__(self, config: DeltaTarget) -> None:
        """Nothing is connected yet."""
        self._config = config
        self._location = Location.of(config)

    def sink(self, mark: int, *, dead_letter_limit: int) -> DeltaSinkSettings:  # noqa: ARG002
        """See `TargetSystem.sink`; rows carry no mark, since nobody reads them back."""
        config = self._config
        return DeltaSinkSettings(
            self._location, config.zero_dates, config.optimize, vacuum=config.vacuum
        )

    @override
    def fence(self, pipeline: str) -> Fence:
        return DeltaFence(self._location, pipeline)

    @override
    def stored_state(self, pipeline: str) -> StoredState:
        return DeltaFence(self._location, pipeline).stored()

    def identities(self, names: Collection[str]) -> Mapping[str, Identity]:
        """See `IdentifiedTarget.identities`: of tables."""
        return table_identities(self._location, names)

    @override
    def schema_changes(self, context: DdlReplicationContext) -> SchemaChanges:
        return DeltaDdl(self._location, context.router)

    def table_creation(self, context: DdlReplicationContext) -> TableCreation:  # noqa: ARG002
        """See `CreatingTarget.table_creation`."""
        return DeltaCreation(self._location)

    @override
    def reader(
        self, name: tuple[str, str], sources: Sequence[MappedTable], columns: Sequence[str]
    ) -> DeltaReader:
        filled = {column.name: column for column in sources[0].target_columns}
        own = [filled[column] for column in columns]
        return DeltaReader.build(
            self._location.of_table(name), own, sources[0].key_names, self._config.zero_dates
        )

    @override
    def holds_rows(self, name: tuple[str, str]) -> bool:
        folder = self._location.of_table(name)
        table = folder.open()
        with translating(folder):
            return table is not None and bool(files_of(table))

    @override
    def view(self, pipeline: str) -> LookAtTarget:
        return lambda _: TargetView(name=f"the Delta tables in {self._location}")

    @override
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        with report.failing():
            check_delta_target(self._config, check, report)
