"""One leadership of one pipeline: take over, then select, apply and acknowledge."""

from __future__ import annotations

import logging
import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from setl import failpoints, garbage_collection
from setl.clock import Clock
from setl.errors import (
    FatalError,
    FencedError,
    NodeFullError,
    TargetWentBackError,
    TransientError,
)
from setl.log import fields
from setl.model.batch import Batch, BatchTermin
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.run.backlog import Backlog, HeartbeatAbsorber
from setl.run.backoff import Backoff
from setl.run.checkpoints.checkpoint_writer import BUSY_SECONDS, QUIET_SECONDS, CheckpointWriter
from setl.run.interruption import Cancelling, Interruption
from setl.run.measured.figures import RunState
from setl.run.measured.pace import Stage
from setl.run.measured.progress import Progress
from setl.run.stalls.observer import Observed, Views
from setl.run.work import Applied, Work
from setl.select.heartbeat import Heartbeat, shows_lag
from setl.select.reader import SelectLoop
from setl.select.source import CheckpointStore, Source

if TYPE_CHECKING:
    from setl.run.verification.verifier import Verifier

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
# Longer than from one heartbeat to the next, for sixty quiet pipelines need not wake up in between.
_QUIET_POLL_SECONDS = 1.2  # where they are absorbed, there are only checkpoints to wake up for
_NOTHING = Applied(0, wrote=False)
_NO_VIEWS = Views()
_STREAM_TO_TABLES = 3.0  # how much longer the stream is applied than tables are loaded


class PipelineRun:
    """Runs a pipeline for as long as this node leads it under one epoch.

    `run` blocks in the thread that calls it, once, until it is told to stop, is fenced, or fails
    for good. Everything else may be called from any thread, before it begins and after it has
    ended too, and never blocks.
    """

    def __init__(
        self,
        leadership: Leadership,
        progress: Progress,
        clock: Clock,
        *,
        source: Source,
        work: Work,
        store: CheckpointStore,
        heartbeat: Heartbeat | None,
        select: SelectLoop,
        generation: int,
        store_every: float = 0.0,
        views: Views = _NO_VIEWS,
        verifier: Verifier | None = None,
    ) -> None:
        """Nothing is begun yet.

        Args:
            leadership: under which it runs.
            progress: is told how it goes.
            clock: for all times.
            source: where its changes come from; read by `select`, asked for positions by the run.
            work: what is done with them.
            store: stores its checkpoint.
            heartbeat: writes to the source, None if nothing does.
            select: reads the source.
            generation: that the channel file asks for.
            store_every: seconds between two checkpoints; 0 stores one with everything written.
            views: what can be looked at from outside.
            verifier: compares tables alongside the stream, None if nothing does.
        """
        self._source = source
        self._work = work
        self._store = store
        self._heartbeat = heartbeat
        self._select = select
        self._generation = generation
        self._store_every = store_every
        self._views = views
        self._verifier = verifier
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._asked = Interruption(select.wake)
        self._ended = threading.Event()
        self._aborted = False
        self._cancelling = Cancelling(self._work, leadership, self._ended)
        before = progress.pace().retrying  # under the epoch before this one
        self._backoff = Backoff(
            random.Random(),  # noqa: S311 - jitter is no secret
            failures=before.attempts if before else 0,
        )
        self._backlog = Backlog(self._select, self._work, clock, self._asked.is_interrupted)
        self._applying = 0  # the first batch of those that are being applied
        self._absorber = HeartbeatAbsorber(self._work, progress, self._has_reached)
        self._rolled_back_to: Checkpoint | None = None  # where Select reads again since a failure
        self._reached: Checkpoint | None = None
        self._checkpoints = CheckpointWriter(self._store, leadership.epoch, progress, clock)
        self._last_step = 0.0, 0.0  # when the last step of loading tables ended, and its length

    # -- from other threads ---------------------------------------------------------------

    def stop(self) -> None:
        """Finish and acknowledge what is being applied, then return from `run`."""
        self._asked.stop()
        if self._verifier is not None:
            self._verifier.stop()

    def rollback(self) -> threading.Event:
        """Finish what is being applied, then go back to the stored checkpoint and on from there.

        Returns an event that is set once reading has begun again.
        """
        return self._asked.roll_back()

    def look_at_loads(self) -> None:
        """What operators ask to be loaded may have changed."""
        self._work.look_at_loads()
        self._select.wake()

    def abort(self) -> None:
        """Cancel what is being applied and return from `run` (I3: leadership may be gone)."""
        if self._aborted:
            return
        self._aborted = True
        self.stop()
        self._cancelling.begin()

    @property
    def abandoned(self) -> bool:
        """Whether parts of this run may still be writing when it has ended.

        Its epoch is burnt then: only a higher one tells what is written next from that.
        """
        return self._aborted or self._work.abandoned

    def suspend(self) -> None:
        """Start no new load until `resume` (I3: the arbiter does not answer)."""
        if self._asked.suspend():
            self._progress.enter(RunState.SUSPENDED)

    def resume(self) -> None:
        """Loads may start again."""
        if self._asked.suspended:
            retrying = self._progress.pace().retrying
            if retrying is None:
                self._progress.enter(RunState.RUNNING)
            else:
                self._progress.enter(RunState.RETRYING, retrying.error)
            self._asked.resume()

    @property
    def observed(self) -> Observed:
        """The run as whoever watches for stalls needs it."""
        return Observed(
            self._leadership,
            progress=self._progress,
            select=self._select,
            heartbeat=self._heartbeat,
            ended=self._ended.is_set,
            views=self._views,
        )

    # -- the run --------------------------------------------------------------------------

    def run(self) -> None:
        """Take over and apply until told to stop.

        Raises:
            FencedError: a newer leadership exists.
            TransientError: it may work when tried again, but only under another epoch; see
                `abandoned`.
            SetlError: any other error that trying again does not help.
        """
        try:
            if self._verifier is not None:
                self._verifier.start(lambda: self._reached)
            while not self._asked.to_stop:
                failure = self._attempt()
                if failure and not self._asked.to_stop:  # else nothing is to be read again
                    self._retry_later(failure)
        except FencedError as error:
            if not self._aborted:
                raise
            # What was cancelled may call that fenced, too. If this node leads again, it may begin.
            raise TransientError("it was given up: leadership was in doubt") from error
        finally:
            self._progress.at_stage(Stage.NONE)
            self._ended.set()
            self._end()

    def _attempt(self) -> str:
        """Apply until told to stop; returns what went wrong if it may go well when tried again.

        The error itself holds on to all that was read, so it does not leave this method.
        """
        try:
            self._begin()
            self._apply_until_interrupted()
        except TransientError as error:
            self._count(error)
            if isinstance(error, TargetWentBackError):
                self._refuse_to_jump(error)
            # A node without room is to leave the lead to others.
            if self.abandoned or isinstance(error, TargetWentBackError | NodeFullError):
                raise
            return str(error)
        return ""

    def _begin(self) -> None:
        """Raise the fence before the first entry is selected (I2), then open the source."""
        asked = self._asked.begin()
        if asked:
            garbage_collection.collect()  # what was read ahead, before as much is read again
        self._progress.at_stage(Stage.TAKE_OVER)
        self._progress.begin_attempt()
        failpoints.reached("take.before_fence")
        self._work.take_over()
        failpoints.reached("take.after_fence")
        stored = self._store.load()
        self._progress.found_checkpoint(self._store.age())
        acked, self._rolled_back_to = self._rolled_back_to, None
        changed = asked or stored != self._checkpoints.last
        if acked is not None and (changed or not self._is_reached(acked)):
            # Somebody has asked for what is stored, or the target is not as this run left it, or
            # its work went back further by itself.
            self._select.stop()
            acked = None
        if acked is None:
            self._reached = self._position_to_continue(stored)
        checkpoint = self._reached
        assert checkpoint is not None
        self._progress.resumed(str(checkpoint.resume), checkpoint.rows, checkpoint.timestamp)
        self._backlog.forget()
        first = self._work.begin(checkpoint)
        if acked is not None and first != checkpoint:
            self._select.stop()  # the target lacks what was acknowledged, such as a topic's tail
            acked = None
        if acked is None:
            self._select.start(first)
        if self._heartbeat is not None:
            if shows_lag(self._heartbeat):
                self._progress.heartbeats_every(self._heartbeat.interval)
            self._heartbeat.start()
        _log.info("pipeline takes over", extra=self._fields(position=str(checkpoint)))
        self._asked.has_begun()

    def _position_to_continue(self, stored: Checkpoint | None) -> Checkpoint:
        """Where to go on at the servers that answer now; stored before anything is applied.

        Args:
            stored: what the store holds, None for a pipeline that never ran.

        Raises:
            SetlError: what the source raises when it looks for the position, or the store.
        """
        writer = self._checkpoints
        applied = writer.unsaved(self._reached) if stored == writer.last else None
        wanted = (known := applied or stored) and self._work.with_written(known)
        checkpoint = _position_to_begin(self._source, wanted, self._generation)
        if stored is not None and checkpoint == wanted:
            # The source is as it was, so it can go on from what is stored, too. Another one has
            # to have what was applied since.
            checkpoint = stored
        if checkpoint.fresh:
            # What the target stores is from an earlier generation. Forgotten before this is stored,
            # and never again: then it may be of this one, whose first load was cut off.
            self._work.forget(checkpoint)
            checkpoint = replace(checkpoint, began=True)
        if checkpoint == stored:
            writer.is_stored(checkpoint)
        else:
            # A start at "latest" that is lost in a crash would become a later "latest", and what
            # lies between would never be applied.
            writer.moved(checkpoint)
        return checkpoint

    def _is_reached(self, acked: Checkpoint) -> bool:
        """Whether all that was acknowledged is applied for good, as far as the work told."""
        return self._reached is not None and self._reached.order == acked.order

    def _apply_until_interrupted(self) -> None:
        self._begin_load()
        while not self._asked.is_interrupted():
            self._progress.at_stage(Stage.SELECT)
            batch = self._backlog.next_batch(self._patience(), self._absorber)
            self._progress.enter_if(RunState.TAKING, RunState.RUNNING)
            self._progress.reads(self._select.status())
            if batch is None:
                self._reached = self._work.idle(self._asked.allowed) or self._reached
                if not self._has_heartbeat:
                    self._notice_that_nothing_waits()
                if self._checkpoints.save_if_idle(self._reached):
                    self._made_progress()
            else:
                self._apply(self._backlog.with_what_waits(batch))
            # While the stream is busy, tables get a quarter of the time.
            if self._tables_are_due(0.0 if batch is None else _STREAM_TO_TABLES):
                self._load_tables()
        unsaved = self._checkpoints.unsaved(self._reached)
        if unsaved is not None and not self._aborted:
            self._checkpoints.keep(
                unsaved
            )  # handed over in order: the next leader reads nothing twice
        if not self._asked.to_stop:
            _log.info("pipeline rolls back on request", extra=self._fields())
            self._progress.add(retries=1)
            self._select.stop()

    def _patience(self) -> float:
        """Seconds to wait for a batch before other things are looked at."""
        if self._tables_are_due(0.0):
            return 0.0
        if not self._checkpoints.quiet:
            return _POLL_SECONDS
        return (
            QUIET_SECONDS
            if self._has_heartbeat and self._absorber.absorbs(())
            else _QUIET_POLL_SECONDS
        )

    def _notice_that_nothing_waits(self) -> None:
        """Tell the lag of a source that has few heartbeats, or in which none can be written."""
        seen = self._select.status()
        if not (seen.unacked or seen.behind or seen.waiting_for):
            self._progress.caught_up()

    def _tables_are_due(self, times: float) -> bool:
        """Whether to load rows of whole tables, so many times the last step after that one."""
        if self._reached is None or not self._work.tables_due(self._reached):
            return False
        ended, seconds = self._last_step
        return self._clock.monotonic() >= ended + seconds * times

    def _begin_load(self) -> None:
        """Begin a load that is asked for and not under way, before anything is applied.

        The stream may stop at a table that only this load brings into order.
        """
        load = self._reached.load if self._reached else None
        if (load is None or load.ended) and self._tables_are_due(0.0) and self._asked.allowed():
            self._load_tables()

    def _load_tables(self) -> None:
        """Load some rows of whole tables, and keep how far that has come."""
        reached, started = self._reached, self._clock.monotonic()
        assert reached is not None
        load = self._work.load_tables(reached, self._asked.allowed)
        now = self._clock.monotonic()
        if load is None:
            self._last_step = now + _POLL_SECONDS, 0.0  # it waits for the stream
            return
        self._last_step = now, now - started
        self._reached = replace(reached, load=load, targets=self._work.targets)
        self._checkpoints.wrote()
        failpoints.reached("tables.loaded")
        self._checkpoints.save_if_due(self._reached, 0.0)
        self._made_progress()

    @property
    def _has_heartbeat(self) -> bool:
        heartbeat = self._heartbeat
        return heartbeat is not None and shows_lag(heartbeat) and not heartbeat.status().error

    def _apply(self, batches: list[Batch]) -> None:
        failpoints.reached("select.batch")
        alone = batches[0].stands_alone
        unsaved = self._checkpoints.unsaved(self._reached) if alone else None
        if unsaved is not None and self._asked.allowed():
            # What comes before it must not be applied again behind it.
            self._checkpoints.keep(unsaved)
        self._applying, started = batches[0].id, self._clock.monotonic()
        applied = self._work.apply(batches, self._asked.allowed)
        if applied is None:
            self._applying = 0
            return
        self._has_reached(batches[-1].checkpoint, applied)
        if applied.again:
            self._asked.roll_back()
        if applied.wrote:
            self._checkpoints.wrote()
            self._checkpoints.save_if_due(self._reached, 0.0 if alone else self._store_every)
            failpoints.reached("checkpoint.stored")
        self._applying = 0
        for batch in batches:
            self._select.ack(batch)
        if applied.wrote:
            failpoints.reached("batch.acked")
        self._checkpoints.save_if_due(self._reached, max(self._store_every, BUSY_SECONDS))
        self._progress.took(batches, self._clock.monotonic() - started)
        self._work.acknowledged(self._select.unacked)
        self._made_progress()

    def _has_reached(self, checkpoint: Checkpoint, applied: Applied = _NOTHING) -> None:
        before, targets = self._reached, self._work.targets
        rows = (before.rows if before else 0) + applied.rows
        load = applied.load or (before.load if before else None)
        own = checkpoint.counting(rows, load, targets)
        self._reached = applied.checkpoint or own

    def _made_progress(self) -> None:
        """Something was acknowledged or kept; see how far no attempt will go back any more."""
        stored = self._checkpoints.last
        if stored is not None and self._progress.succeeded(stored.order):
            self._backoff.succeeded()

    def _refuse_to_jump(self, error: TargetWentBackError) -> None:
        """A target that has lost the checkpoint, too, looks like that of a new pipeline (I8)."""
        if self._checkpoints.last is None or self._store.load() is not None:
            return
        raise FatalError(
            f"{error.message}, and its checkpoint is gone, which was last {self._checkpoints.last}",
            hint="`setl position reset --to` says from where to go on; or load the tables again",
            **self._log_fields(),
        ) from error

    def _count(self, error: TransientError) -> None:
        """Note that an attempt has failed, and how far it had come."""
        hangs_at = self._heartbeat.status().hangs_at if self._heartbeat is not None else ""
        if hangs_at and not error.hint and error.where.get("server") == hangs_at:
            # A server that cannot write its binlog answers nothing about it either.
            error.hint = "Its commits do not end: its log says why; mostly its disk is full"
        error.at(**self._log_fields())
        reached = self._reached.order if self._reached else None
        self._progress.failed(error.brief, reached, shown=error.text)
        self._progress.add(retries=1)

    def _retry_later(self, failure: str) -> None:
        """Roll everything unacknowledged back (I6), then wait before beginning again."""
        wait = self._backoff.failed()
        _log.warning(
            "pipeline rolls back and tries again",
            extra=self._fields(error=failure, attempt=self._backoff.failures, wait=round(wait, 2)),
        )
        self._rolled_back_to = None
        garbage_collection.collect()  # what was read ahead, before as much is read again
        try:
            self._rolled_back_to = self._roll_back(TransientError(failure))
        except TransientError as error:
            _log.info("reading restarts", extra=self._fields(error=str(error)))
            self._select.stop()
        self._asked.wait(wait)

    def _roll_back(self, error: TransientError) -> Checkpoint | None:
        """Let Select read again from the last ack, and return that; None where it has to stop."""
        batch, self._applying = self._applying, 0
        if self._select.status().state != "reading":
            # The source itself has failed, and may be another one now: see `Source.locate`.
            self._select.stop()
            return None
        if batch:
            return self._select.finish(BatchTermin(batch, self._leadership.epoch, error))
        return self._select.rollback()

    def _end(self) -> None:
        """Leave no thread and no connection behind."""
        if self._verifier is not None:
            self._verifier.stop()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._select.stop()
        self._source.release()
        self._store.close()
        self._work.close()

    def _log_fields(self) -> dict[str, str]:
        return {"pipeline": self._leadership.key}

    def _fields(self, **values: object) -> dict[str, object]:
        return fields(**self._leadership.fields, **values)


def _position_to_begin(source: Source, stored: Checkpoint | None, wanted: int) -> Checkpoint:
    """Where to go on: where the stored checkpoint stands, or at the configured start.

    Args:
        source: not opened yet.
        stored: the checkpoint that the store holds, None for a pipeline that never ran.
        wanted: the generation that the channel file asks for.

    Raises:
        SetlError: what the source raises when it looks for the position.
    """
    if stored is None:
        return Checkpoint.first(source.initial(), wanted)
    if stored.outdated(wanted):
        # A generation above the stored one means that the operator wants to start over,
        # since the stored position says nothing about the source as it is now.
        moved = stored.moved_to(source.initial())
        generation = max(moved.generation, wanted)
        return replace(moved, generation=generation, requested=wanted, load=None, targets=())
    return source.locate(stored)
