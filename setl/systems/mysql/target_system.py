"""MySQL and MariaDB as a target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial

from typing_extensions import override

from setl.bulk.source_side import MappedTable
from setl.bulk.table_shape import TableShape
from setl.channel.fields.endpoint import SourceConfig
from setl.channel.file import MysqlTarget
from setl.channel.routes.routing import Route, Router
from setl.clock import Clock
from setl.errors import ConfigurationError
from setl.load.creation import TableCreation
from setl.load.deadletters.store import DeadLetterStore
from setl.load.key_actions import KeyActions
from setl.load.sink import Fence, RefuseTargets, SchemaChanges
from setl.load.target_view import LookAtTarget
from setl.select.checkpoints.note import Notes
from setl.select.checkpoints.owner import Owner
from setl.select.source import ReplaceableStore
from setl.systems.conflicts import ConflictList
from setl.systems.expiry import Expiration
from setl.systems.finding import Report
from setl.systems.mysql.acting_keys import MysqlKeyActions
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.conflicts.listing import MysqlConflicts
from setl.systems.mysql.connection import connect, translating
from setl.systems.mysql.ddl.replicating import MysqlDdl
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.expirations import expirations
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.load.fence import MysqlFence
from setl.systems.mysql.locks.target_view import look_at_target
from setl.systems.mysql.preflight.contested_tables import check_contested_tables
from setl.systems.mysql.preflight.endpoints import check_mysql_target
from setl.systems.mysql.preflight.load_limits import check_replicas
from setl.systems.mysql.preflight.origin import connected
from setl.systems.mysql.preflight.same_numbers import check_same_numbers
from setl.systems.mysql.preflight.trigger_watch import TriggerWatch
from setl.systems.mysql.preflight.unique_keys import agreeing_tables
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.reading.table_target import TableTarget
from setl.systems.mysql.replicas import farthest_replica
from setl.systems.mysql.server_kind import UPGRADE_TARGET
from setl.systems.mysql.sink.sink import MysqlSinkSettings
from setl.systems.mysql.stored.checkpoints import MysqlCheckpointStore
from setl.systems.mysql.stored.deadletters import opened_table
from setl.systems.mysql.stored.state import opened_states, read_stored_state
from setl.systems.mysql.table_creation import MysqlTableCreation
from setl.systems.mysql.write_stop import MysqlWriteStop
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import DdlReplicationContext, TargetSystem
from setl.systems.replicas import ReplicaBehind
from setl.systems.stored_state import StoredState
from setl.systems.write_stop import WriteStop


class MysqlTargetSystem(TargetSystem):
    """The `TargetSystem` of a server that is written to."""

    reports_applied = True

    def __init__(self, config: MysqlTarget) -> None:
        """Nothing is connected yet."""
        self._config = config
        self._endpoint = mysql_endpoint(config)

    @override
    def sink(self, mark: int, *, dead_letter_limit: int) -> MysqlSinkSettings:
        return MysqlSinkSettings(self._endpoint, mark, dead_letter_limit=dead_letter_limit)

    @override
    def fence(self, pipeline: str) -> Fence:
        return MysqlFence(self._endpoint, pipeline, self._config.fence_timeout)

    @override
    def checkpoints(self, owner: Owner, notes: Notes) -> ReplaceableStore:
        return MysqlCheckpointStore(self._endpoint, owner, notes)

    def expirations(self) -> Sequence[Expiration]:
        """See `ExpiringSystem.expirations`."""
        return expirations(self._endpoint)

    @override
    def stored_state(self, pipeline: str) -> StoredState:
        return read_stored_state(self._endpoint, pipeline)

    def stored_states(self, pipeline: str) -> AbstractContextManager[Callable[[], StoredState]]:
        """See `StoringTarget.stored_states`."""
        return opened_states(self._endpoint, pipeline)

    @override
    def schema_changes(self, context: DdlReplicationContext) -> SchemaChanges:
        origin = context.source.origin if context.source.reads_origin else None
        return MysqlDdl(
            self._endpoint,
            context.mark,
            context.router,
            lambda: secrets.token_hex(8),
            marked_drops=context.marked,
            source=None if origin is None else mysql_endpoint(origin),
            accept=context.accept,
        )

    def table_creation(self, context: DdlReplicationContext) -> TableCreation:
        """See `CreatingTarget.table_creation`."""
        origin = context.source.origin
        if origin is None:
            raise ConfigurationError(
                "tables cannot be created: the server that they come from is not known",
                hint="Name it: `database:` in the source of the channel file",
            )
        return MysqlTableCreation(
            self._endpoint,
            mysql_endpoint(origin),
            context.mark,
            lambda: secrets.token_hex(8),
            marked=context.marked,
            accept=context.accept,
        )

    def trigger_watch(
        self, router: Router, back: Router | None, accept: Sequence[str], clock: Clock
    ) -> RefuseTargets:
        """See `TriggeringTarget.trigger_watch`."""
        return TriggerWatch(self._endpoint, router, back, accept, clock).refuse

    def key_actions(
        self, context: DdlReplicationContext, *, keeps_letters: bool
    ) -> KeyActions | None:
        """See `ActingTarget.key_actions`."""
        origin = context.source.origin if context.source.reads_origin else None
        if origin is None:
            return None
        return MysqlKeyActions(
            mysql_endpoint(origin),
            self._endpoint,
            context.router,
            context.accept,
            keeps_letters=keeps_letters,
        )

    @override
    def dead_letters(self) -> AbstractContextManager[DeadLetterStore]:
        return opened_table(self._endpoint)

    @override
    def reader(
        self, name: tuple[str, str], sources: Sequence[MappedTable], columns: Sequence[str]
    ) -> TableTarget:
        with closing(connect(self._endpoint)) as connection:
            described = read_table(connection, *name)
        if described is None:
            raise ConfigurationError(
                "the target table does not exist, or the account may not see it",
                hint="Create it on the target, or leave it out of the mapping",
                table=".".join(name),
                server=self._endpoint,
            )
        shape = TableShape.build(described, columns, sources[0].key_names)
        return TableTarget(TableReader(self._endpoint, described), shape)

    def farthest_replica(self) -> ReplicaBehind | None:
        """See `ReplicatedTarget.farthest_replica`."""
        return farthest_replica(self._endpoint, self._config.replicas)

    @override
    def holds_rows(self, name: tuple[str, str]) -> bool:
        with closing(connect(self._endpoint)) as connection:
            if read_table(connection, *name) is None:
                return False
            with translating(self._endpoint), connection.cursor() as cursor:
                table = ".".join(map(identifier, name))
                return bool(cursor.execute(f"SELECT 1 FROM {table} LIMIT 1"))

    def agreeing_tables(
        self, source: SourceConfig, tables: Sequence[tuple[tuple[str, str], Route]]
    ) -> frozenset[str]:
        """See `TargetSystem.agreeing_tables`: those whose unique keys say no more."""
        if source.origin is None:
            return frozenset()
        return agreeing_tables(mysql_endpoint(source.origin), self._endpoint, tables)

    @override
    def view(self, pipeline: str) -> LookAtTarget:
        return partial(look_at_target, self._endpoint, pipeline)

    @override
    def conflicts(self) -> ConflictList:
        return MysqlConflicts(self._endpoint)

    @override
    def write_stop(self) -> WriteStop | None:
        return MysqlWriteStop(self._endpoint)

    @override
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        server = connected(self._config, check.open, report)
        if server is None:
            return
        if server.kind.no_target:
            report.error(server.kind.no_target, UPGRADE_TARGET, code="old-server")
            return
        with report.failing():
            check_replicas(self._endpoint, self._config.replicas, check.pipeline, report)
            origin, tables = check.origin, check.tables
            check_mysql_target(
                server,
                check.pipeline,
                origin,
                tables,
                report,
                two_way=check.two_way,
                back=check.back,
            )
            check_contested_tables(
                origin, server, check.pipeline, check.back, tables=tables, report=report
            )
            if origin is not None and check.back is not None:
                check_same_numbers(origin, server, check.back, tables, report)
