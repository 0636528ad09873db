"""A cluster of indexes as a target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from urllib.parse import urlsplit

from typing_extensions import override

from setl.bulk.source_side import MappedTable
from setl.channel.file import Pipeline
from setl.channel.routes.routing import Router
from setl.load.creation import TableCreation
from setl.load.deadletters.store import DeadLetterStore
from setl.load.identities import Identity
from setl.load.sink import Fence, SchemaChanges
from setl.load.target_view import LookAtTarget
from setl.load.version_fence import VersionFence
from setl.model.document import DocumentForm
from setl.systems.certificates import certificate_at
from setl.systems.expiry import Expiration, ServerDisk
from setl.systems.finding import Report
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import DdlReplicationContext, TargetSystem
from setl.systems.search_index.creation import IndexCreation
from setl.systems.search_index.ddl import IndexDdl
from setl.systems.search_index.deadletters import check_dead_letter_index, opened_index
from setl.systems.search_index.disks import look_at_disks
from setl.systems.search_index.identities import index_identities
from setl.systems.search_index.index_target import DocumentShape, IndexTarget, documents_in
from setl.systems.search_index.load.sink import IndexSinkSettings
from setl.systems.search_index.port import ClusterEndpoint
from setl.systems.search_index.preflight.arriving import Arriving, arriving
from setl.systems.search_index.preflight.target import check_search_target
from setl.systems.search_index.target_view import ClusterView, look_at_writes
from setl.transform.projection import document_form


class IndexTargetSystem(TargetSystem):
    """The `TargetSystem` of a cluster that is written to.

    It keeps no checkpoint, since it has nothing that would keep former leaders from storing one.
    """

    def __init__(self, endpoint: ClusterEndpoint) -> None:
        """Nothing is connected yet."""
        self._endpoint = endpoint

    def sink(self, mark: int, *, dead_letter_limit: int) -> IndexSinkSettings:  # noqa: ARG002
        """See `TargetSystem.sink`; documents carry no mark, since nobody reads them back."""
        return IndexSinkSettings(self._endpoint, dead_letter_limit=dead_letter_limit)

    def expirations(self) -> Sequence[Expiration]:
        """See `ExpiringSystem.expirations`: of each address with https."""
        found: list[Expiration] = []
        for host in self._endpoint.hosts:
            parts = urlsplit(host)
            if parts.scheme != "https" or not parts.hostname:
                continue
            seen = certificate_at(parts.hostname, parts.port or 443, self._endpoint.ca_certs)
            if seen is not None:
                found.append(seen)
        return found

    def disks(self) -> Sequence[ServerDisk] | None:
        """See `DiskTarget.disks`: of its data nodes."""
        return look_at_disks(self._endpoint)

    @override
    def fence(self, pipeline: str) -> Fence:
        return VersionFence()

    def identities(self, names: Collection[str]) -> Mapping[str, Identity]:
        """See `IdentifiedTarget.identities`: of indexes."""
        return index_identities(self._endpoint, names)

    @override
    def schema_changes(self, context: DdlReplicationContext) -> SchemaChanges:
        return IndexDdl(self._endpoint, context.router)

    def table_creation(self, context: DdlReplicationContext) -> TableCreation:  # noqa: ARG002
        """See `CreatingTarget.table_creation`."""
        return IndexCreation(self._endpoint)

    @override
    def dead_letters(self) -> AbstractContextManager[DeadLetterStore]:
        return opened_index(self._endpoint)

    @override
    def reader(
        self, name: tuple[str, str], sources: Sequence[MappedTable], columns: Sequence[str]
    ) -> IndexTarget:
        source = sources[0]
        filled = {column.name: column for column in source.target_columns}
        plan = source.columns
        key = tuple(columns.index(plan.columns[i].name) for i in plan.key)
        form = document_form(source.reader.schema, source.route) or DocumentForm.of_key(len(key))
        shape = DocumentShape(tuple(filled[column] for column in columns), key, form)
        return IndexTarget(self._endpoint, name[1], shape)

    @override
    def holds_rows(self, name: tuple[str, str]) -> bool:
        return documents_in(self._endpoint, name[1]) > 0

    @override
    def view(self, pipeline: str) -> LookAtTarget:
        return ClusterView(
            f"{self._endpoint.product.name} {self._endpoint}",
            partial(look_at_writes, self._endpoint),
        )

    @override
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        pipeline = check.pipeline
        with report.failing():
            indexes = arriving(check.tables, pipeline.source, check.origin)
            indexes = indexes or _exact_indexes(pipeline)
            check_search_target(self._endpoint, indexes, check.key, report)
            if pipeline.stores_dead_letters:
                check_dead_letter_index(self._endpoint, report)


def _exact_indexes(pipeline: Pipeline) -> dict[str, list[Arriving]]:
    """Indexes that are known without asking the source."""
    router = Router(pipeline)
    names = [entry.pattern.exact for entry in router.entries]
    routes = [route for name in names if name for route in router.route(*name)]
    return {route.target[1]: [] for route in routes}
