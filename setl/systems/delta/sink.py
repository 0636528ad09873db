"""Writes changes into Delta tables: one commit for each table of a load."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from setl import failpoints
from setl.clock import Clock, SystemClock
from setl.counting import count
from setl.errors import ConfigurationError, SetlError, TransientError
from setl.load.sink import LoadTicket, SingleWriterTables, Sink, SinkSettings
from setl.load.timings import Timings
from setl.log import fields
from setl.model.change import TargetChanges
from setl.model.faulty import FaultyRow
from setl.model.loaded import Loaded
from setl.systems.delta.commit import VersionTakenError, check_epoch, commit
from setl.systems.delta.fence import admit
from setl.systems.delta.files import schema_of
from setl.systems.delta.location import Folder, Location, Name, translating
from setl.systems.delta.maintenance import maintain
from setl.systems.delta.rewriting import rewrite
from setl.systems.delta.row_changes import row_changes
from setl.systems.delta.suitable import refuse_unsuitable
from setl.systems.delta.values import ZeroDates

if TYPE_CHECKING:
    from deltalake import DeltaTable

_log = logging.getLogger(__name__)
_BACKOFF = 0.05  # seconds, doubled with each attempt


@dataclass(frozen=True, slots=True)
class DeltaSinkSettings(SinkSettings):
    """What a sink is made from; see `setl.load.sink.SinkSettings`.

    Attributes:
        location: the folder of all tables.
        zero_dates: what becomes of dates that no calendar has.
        optimize: commits after which small files are rewritten; 0 for never.
        vacuum: whether old files are deleted then.
        attempts: how often a commit is made whose version another writer took.
    """

    location: Location
    zero_dates: ZeroDates = "refuse"
    optimize: int = 0
    vacuum: bool = False
    attempts: int = 5

    def make_sink(self) -> Sink:
        """See `SinkSettings.make_sink`."""
        return DeltaSink(self)

    def single_writer_tables(self, clock: Clock) -> SingleWriterTables:  # noqa: ARG002
        """See `SinkSettings.single_writer_tables`: all of them, each is one commit of one task."""
        return _AllTables()


class _AllTables:
    """The `SingleWriterTables` of Delta tables."""

    def add(self, table: Name) -> None:
        """See `SingleWriterTables.add`."""

    def among(self, tables: Iterable[Name]) -> frozenset[Name]:
        """See `SingleWriterTables.among`."""
        return frozenset(tables)

    def check_name_collisions(self, tables: Iterable[Name], version: int) -> None:
        """See `SingleWriterTables.check_name_collisions`; folders are told apart by case."""


class DeltaSink:
    """The `Sink` for Delta tables. Used by one thread at a time.

    Order: of a load, each table's rows are in one commit, and tables follow each other. Crash:
    some tables may have their commit then and others not; applying the load again completes it.
    """

    def __init__(
        self,
        settings: DeltaSinkSettings,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: where and how to write.
            clock: for the time spent in the target.
            sleep: waits between attempts.
        """
        self._settings = settings
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._timings = Timings(self._clock)

    def apply(
        self,
        ticket: LoadTicket,
        changes: Sequence[TargetChanges],
        faulty: Sequence[FaultyRow] = (),
    ) -> Loaded:
        """See `Sink.apply`."""
        if faulty:
            raise faulty[0].error.at(pipeline=ticket.pipeline_key)
        by_table: dict[Name, list[TargetChanges]] = {}
        for change in changes:
            if change.upserts or change.deletes:
                by_table.setdefault(change.target, []).append(change)
        if not by_table:
            return Loaded()
        started = self._clock.monotonic()
        for name, parts in by_table.items():
            try:
                with self._timings.one():
                    self._write(ticket, name, parts)
            except SetlError as error:
                raise error.at(pipeline=ticket.pipeline_key, table=".".join(name)) from None
        return Loaded(
            upserts=sum(len(change.upserts) for change in changes),
            deletes=sum(len(change.deletes) for change in changes),
            seconds=self._clock.monotonic() - started,
            statements=self._timings.taken(),
        )

    def close(self) -> None:
        """See `Sink.close`; nothing is kept open."""

    def _write(self, ticket: LoadTicket, name: Name, parts: Sequence[TargetChanges]) -> None:
        folder = self._settings.location.of_table(name)
        for attempt in range(self._settings.attempts):
            # As it is now: a table that was made again would get a version far from its own.
            table = _opened(folder)
            try:
                if not check_epoch(table, ticket.leadership, folder):
                    admit(self._settings.location, name, ticket.leadership)
                changes = row_changes(schema_of(table), parts, self._settings.zero_dates)
                with translating(folder):
                    actions = rewrite(folder, table, changes)
                if not actions:
                    return
                failpoints.reached("task.before_commit")
                table = commit(table, folder, ticket.leadership, actions)
            except VersionTakenError:
                # By a new leader, who is found in the next attempt, or by another writer.
                self._sleep(_BACKOFF * 2**attempt)
                continue
            failpoints.reached("task.after_commit")
            self._maintain(ticket, name, folder, table)
            return
        raise TransientError(
            "others commit to the table again and again, in"
            f" {count(self._settings.attempts, 'attempt')}",
            hint="Let no other writer commit to the table so often",
        )

    def _maintain(self, ticket: LoadTicket, name: Name, folder: Folder, table: DeltaTable) -> None:
        """Optimize and vacuum; whatever comes of it, the rows are there."""
        every = self._settings.optimize
        if not every or table.version() % every:
            return
        try:
            maintain(table, folder, ticket.leadership, vacuum=self._settings.vacuum)
        except (VersionTakenError, SetlError) as error:
            _log.warning(
                "a Delta table was not optimized",
                extra=fields(table=".".join(name), error=str(error)[:300]),
            )


def _opened(folder: Folder) -> DeltaTable:
    table = folder.open()
    if table is None:
        raise ConfigurationError(
            f"there is no Delta table in {folder.uri}",
            hint="Write `create: true` for it, or create it; then start again",
        )
    refuse_unsuitable(table, folder)
    return table
