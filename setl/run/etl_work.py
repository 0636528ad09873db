"""What a run does with batches in setl proper: extract, then transform and load on Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from setl import failpoints
from setl.clock import Clock
from setl.errors import CollisionError, FatalError, SetlError, TransientError
from setl.extract.extractor import Extracted, Extractor, RoutedRows
from setl.load.sink import Fence, LoadTicket
from setl.log import fields
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, KnownTargets, ShownPosition
from setl.model.entry import Entry
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.table_load import TableLoad
from setl.run.dead_letters import DeadLetterHandler
from setl.run.loads.catching_up import CatchingUp
from setl.run.loads.fault_positions import locate_fault
from setl.run.loads.job import LoadJob
from setl.run.loads.repeated import repeated_through
from setl.run.loads.size import LoadSize
from setl.run.measured.accounting import account, account_absorbed
from setl.run.measured.pace import Stage
from setl.run.measured.progress import Progress
from setl.run.table_loads.choice import PlannedLoad
from setl.run.table_loads.loading import TableLoading
from setl.run.table_loads.table_creation import TableCreating
from setl.run.targets.acting_keys import ActingKeys
from setl.run.targets.identities import Identities
from setl.run.targets.schema_changes import SchemaChangePolicy
from setl.run.tracing.course import Course
from setl.run.tracing.trace import Tracer
from setl.run.work import Applied

_log = logging.getLogger(__name__)


class EtlWork:
    """Extract, Transform and Load as `setl.run.work.Work`."""

    def __init__(
        self,
        leadership: Leadership,
        progress: Progress,
        clock: Clock,
        *,
        extractor: Extractor,
        job: LoadJob,
        catching_up: CatchingUp,
        fence: Fence,
        heartbeat_id: int | None,
        ddl: SchemaChangePolicy,
        rows_per_load: int,
        tables: TableLoading,
        creating: TableCreating | None = None,
        identities: Identities | None = None,
        letters: DeadLetterHandler | None = None,
        reports_applied: bool = True,
        tracer: Tracer | None = None,
        keys: ActingKeys | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            leadership: on whose behalf.
            progress: is told what was done.
            clock: for all times.
            extractor: drops what is not to be applied.
            job: transforms and loads.
            catching_up: runs the loads.
            fence: keeps stale leaders out of the target.
            heartbeat_id: row of ``retl.xdual`` whose heartbeats tell the lag, None if none do.
            ddl: what is done with schema changes.
            rows_per_load: rows that one load takes at most.
            tables: loads whole tables.
            creating: creates target tables, None for a pipeline that creates none.
            identities: notices that the target's tables are others than before, None where the
                target refuses rows of a table that is gone.
            letters: the dead letters, None for a pipeline that stops at a faulty row.
            reports_applied: whether the target stores what `LoadJob.applied_through` asks for.
            tracer: is told how batches passed through the stages, None if nobody asks.
            keys: the foreign keys whose actions are carried out, None for a target without any.
        """
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._extractor = extractor
        self._job = job
        self._catching_up = catching_up
        self._fence = fence
        self._heartbeat_id = heartbeat_id
        self._ddl = ddl
        self._tables = tables
        self._creating = creating
        self._identities = identities
        self._letters = letters
        self._reports_applied = reports_applied
        self._keys = keys
        self._course = Course(tracer, leadership, clock)
        self._size = LoadSize(rows_per_load)
        self._applied_through = 0
        self._repeated = 0.0  # commit time up to which the stream repeats what was applied
        self._schema_version = 0
        self._reached: Checkpoint | None = None
        self._load_of_tables: TableLoad | None = None
        self._done: tuple[Sequence[Batch], list[Extracted], Loaded] | None = None

    def take_over(self) -> None:
        """See `Work.take_over`."""
        self._fence.raise_to(self._leadership.epoch, self._leadership.nid)

    def with_written(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Work.with_written`; rows do not tell of which transaction they are."""
        return checkpoint

    def forget(self, checkpoint: Checkpoint) -> None:
        """See `Work.forget`."""
        self._job.forget_loaded(self._ticket(0, checkpoint))

    def begin(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Work.begin`."""
        ticket = self._ticket(0, checkpoint)
        self._applied_through = through = self._job.applied_through(ticket)
        self._repeated = checkpoint.timestamp if checkpoint.repeats else 0.0
        self._progress.took_over(through, counted=self._reports_applied)
        self._extractor.reset(checkpoint)
        self._schema_version = ticket.through
        self._reached = checkpoint
        self._load_of_tables = checkpoint.load
        if self._identities is not None:
            self._identities.begin(checkpoint)
        if self._keys is not None:
            self._keys.begin(checkpoint)
        if self._creating is not None:
            self._creating.begin(ticket, self._planned, asks_end=self._ddl.replicates)
        self._tables.begin(checkpoint.load)
        if self._letters is not None:
            self._letters.begin()
        return checkpoint

    @property
    def targets(self) -> KnownTargets:
        """See `Work.targets`."""
        if self._keys is not None:
            return self._keys.known
        return () if self._identities is None else self._identities.known

    @property
    def room(self) -> int:
        """See `Work.room`."""
        return self._size.rows

    def apply(self, batches: Sequence[Batch], allowed: Callable[[], bool]) -> Applied | None:
        """See `Work.apply`."""
        try:
            return self._apply(batches, allowed)
        except SetlError as error:
            # Traces go to another system, whose readers need not be those of rows.
            self._course.failed(error.public)
            raise

    def _apply(self, batches: Sequence[Batch], allowed: Callable[[], bool]) -> Applied | None:
        self._look_at_letters(allowed)
        self._course.begins(batches)
        self._progress.at_stage(Stage.EXTRACT)
        started = self._clock.monotonic()
        extracted = [self._extractor.extract(batch) for batch in batches]
        self._progress.add_time("extract", self._clock.monotonic() - started)
        self._course.extracted()
        failpoints.reached("extract.done")
        self._progress.at_stage(Stage.LOAD)
        begun = self._clock.now()
        if not allowed():
            return None
        changed = self._change_schema(extracted, batches[-1])
        moved = self._tables.after_changes(_ddl(extracted), self._load_of_tables)
        self._goes_on_with(moved or self._load_of_tables)
        rows = [row for part in extracted for row in part.rows]
        report = Loaded()
        if rows:
            ticket = self._ticket(batches[-1].id, batches[-1].checkpoint)
            ticket = replace(ticket, begun=begun)
            if batches[0].acts:
                ticket, moved = self._acting(rows, ticket, batches[-1].checkpoint)
            failpoints.reached("load.before_job")
            self._course.loads()
            report = self._load(rows, ticket, batches[-1])
            self._course.loaded(report)
            failpoints.reached("load.after_job")
            self._size.loaded(report.rows, self._clock.monotonic() - started)
            if self._letters is not None:
                self._letters.loaded(report, str(batches[-1].checkpoint))
        self._resend(extracted)
        self._done = batches, extracted, report
        self._reached = batches[-1].checkpoint
        keys = self._keys
        again = bool(_ddl(extracted)) and keys is not None and keys.after_changes()
        return Applied(report.rows, wrote=bool(rows or changed or moved), load=moved, again=again)

    def _acting(
        self, rows: Sequence[RoutedRows], ticket: LoadTicket, checkpoint: Checkpoint
    ) -> tuple[LoadTicket, TableLoad | None]:
        """A ticket with which actions of foreign keys run, and what a load is by that.

        Raises:
            FatalError: they ran before, and must not run again.
            DataError: a row cannot be decoded.
        """
        keys = self._keys
        if keys is None or not keys.actions:
            return ticket, None
        doubtful = keys.doubtful(rows)
        if doubtful and checkpoint.repeats:
            tables = " ".join(f"--table {name}" for name in doubtful)
            raise FatalError(
                "the stream repeats what was applied before, and in it foreign keys with CASCADE or"
                f" SET NULL change rows: what they made of {', '.join(doubtful)} is unknown"
                " from what came later",
                hint="`setl stop` the channel, `setl position reset` the pipeline to where nothing"
                " is repeated (`--to latest`), start it, and load all its tables with such keys"
                f" again: `setl load {tables} --replace`",
                position=checkpoint.resume,
            )
        moved = self._tables.after_actions(doubtful, keys.tables, self._load_of_tables)
        self._goes_on_with(moved or self._load_of_tables)
        return replace(ticket, key_actions=keys.actions, key_moves=keys.moves(rows)), moved

    def _resend(self, extracted: Sequence[Extracted]) -> None:
        """Ask for the rows that the free gate names, before the checkpoint passes that."""
        problems = [problem for part in extracted for problem in part.gate_problems]
        if problems:
            _log.warning(
                "rows of the free gate are left out",
                extra=fields(
                    **self._leadership.fields, count=len(problems), error="; ".join(problems[:3])
                ),
            )
        wanted = [row for part in extracted for row in part.gate]
        if wanted:
            self._tables.resend(wanted)

    def _load(self, rows: Sequence[RoutedRows], ticket: LoadTicket, last: Batch) -> Loaded:
        version_of = last.checkpoint.version_of
        again = repeated_through(rows, self._repeated, version_of) if self._repeated else 0
        if not last.checkpoint.repeats:
            self._repeated = 0.0
        try:
            through = max(self._applied_through, again)
            names = {(row.entry.schema, row.entry.table) for row in rows}
            ticket = replace(ticket, unread=self._tables.unread(names, self._load_of_tables))
            return self._catching_up.load(
                lambda t: self._job.run(rows, t, through), ticket, self._tables.alone(names), rows
            )
        except SetlError as error:
            if isinstance(error, CollisionError) and last.checkpoint.repeats:
                # A relay may have to write again first what its topic has lost.
                raise TransientError(
                    f"what was applied before has not all come again yet: {error.message}",
                    hint=error.hint,
                    **error.where,
                ) from error
            self._ddl.explain(error, rows)
            locate_fault(error, rows)
            raise

    def acknowledged(self, pending: int) -> None:
        """See `Work.acknowledged`."""
        if self._done is None:
            return
        batches, extracted, report = self._done
        self._done = None
        self._course.acknowledged()
        account(
            self._progress,
            batches,
            extracted,
            report,
            heartbeat_id=self._heartbeat_id,
            pending=pending,
            now=self._clock.now(),
            through=batches[-1].checkpoint.version,
        )

    def absorbs(self, entries: Sequence[Entry]) -> bool:
        """See `Work.absorbs`; heartbeats do, unless dead letters have to be looked at soon."""
        if self._letters is not None and self._letters.tables_with_dead_letters:
            return False
        return self._extractor.are_heartbeats(entries)

    def absorbed(self, batch: Batch) -> None:
        """See `Work.absorbed`."""
        self._course.begins([batch])
        extracted = self._extractor.extract(batch)
        self._course.extracted()
        self._reached = batch.checkpoint
        self._course.acknowledged()
        account_absorbed(
            self._progress,
            batch,
            extracted,
            heartbeat_id=self._heartbeat_id,
            now=self._clock.now(),
            version=lambda: batch.checkpoint.version,
        )

    def tables_due(self, reached: Checkpoint) -> bool:
        """See `Work.tables_due`."""
        return self._tables.due(reached.load)

    def look_at_loads(self) -> None:
        """See `Work.look_at_loads`."""
        self._tables.look_again()

    def load_tables(self, reached: Checkpoint, allowed: Callable[[], bool]) -> TableLoad | None:
        """See `Work.load_tables`."""
        self._progress.at_stage(Stage.LOAD)
        ticket = replace(self._ticket(0, reached), from_tables=True, begun=self._clock.now())
        moved = self._tables.step(reached, ticket, allowed)
        read = reached.load is not None and reached.load.reads
        if moved is not None and read and not moved.reads and allowed():
            self._complete_creation(ticket)
        self._goes_on_with(moved or reached.load)
        return moved

    def idle(self, allowed: Callable[[], bool]) -> None:
        """See `Work.idle`."""
        self._look_at_letters(allowed)
        if self._identities is not None:
            self._identities.idle()

    def _goes_on_with(self, load: TableLoad | None) -> None:
        self._load_of_tables = load
        if self._identities is not None:
            self._identities.goes_on_with(load)

    @property
    def _planned(self) -> PlannedLoad:
        return self._tables.planned(self._load_of_tables)

    def _look_at_letters(self, allowed: Callable[[], bool]) -> None:
        reached = self._reached
        if self._letters is not None and reached is not None:
            self._letters.look(lambda: self._ticket(0, reached), allowed)

    @property
    def abandoned(self) -> bool:
        """See `Work.abandoned`."""
        return self._job.abandoned

    def cancel(self) -> None:
        """See `Work.cancel`."""
        self._job.cancel()

    def end_writers(self) -> None:
        """See `Work.end_writers`."""
        self._fence.end_writers(self._leadership.epoch)

    def close(self) -> None:
        """See `Work.close`: connections belong to Spark's workers."""

    def _change_schema(self, extracted: Sequence[Extracted], last: Batch) -> bool:
        """Act on schema changes; whether anything was done. They come alone, without rows."""
        entries = _ddl(extracted)
        if not entries:
            return False
        ticket = self._ticket(last.id, last.checkpoint)
        # Also if nothing is replicated: then somebody else changes the target.
        self._schema_version = ticket.through
        if self._letters is not None:
            self._letters.before_schema_changes(entries)
        if self._ddl.replicates:
            self._complete_creation(ticket)  # what is changed may be one of the keys to come
        done = self._ddl.act_on(
            entries, ticket, last.checkpoint.generation, self._planned.is_to_read
        )
        if self._creating is not None and self._creating.at_changes:
            self._creating.begin(ticket, self._planned)
        return done

    def _complete_creation(self, ticket: LoadTicket) -> None:
        if self._creating is not None:
            self._creating.complete(ticket)

    def _ticket(self, batch_id: int, checkpoint: Checkpoint) -> LoadTicket:
        return LoadTicket(
            self._leadership,
            batch_id=batch_id,
            slot=0,
            through=checkpoint.version,
            generation=checkpoint.generation,
            files=checkpoint.files,
            schema_version=self._schema_version,
            at=checkpoint.resume,
            tables_with_dead_letters=self._letters.tables_with_dead_letters
            if self._letters
            else frozenset(),
            position=ShownPosition.of(checkpoint),
        )


def _ddl(extracted: Sequence[Extracted]) -> list[Entry]:
    return [entry for part in extracted for entry in part.ddl]
