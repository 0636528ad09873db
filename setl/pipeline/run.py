"""One leadership of one pipeline: take over, then select, extract, load and acknowledge."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from setl import failpoints
from setl.clock import Clock
from setl.errors import FatalError, TransientError
from setl.extract.extractor import Extracted, Extractor, RoutedRows
from setl.load.port import Fence, LoadTicket
from setl.log import fields
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.position import document_version
from setl.pipeline.backoff import Backoff
from setl.pipeline.job import LoadReport
from setl.pipeline.load_size import LoadSize
from setl.pipeline.progress import Progress, RunState
from setl.select.heartbeat import Heartbeat
from setl.select.port import CheckpointStore, Source
from setl.select.reader import SelectLoop

_log = logging.getLogger(__name__)

# A checkpoint that moved over nothing but foreign or filtered entries is stored this often.
# Storing it at once would be a change in the target's binlog, which the opposite pipeline
# reads and answers with a checkpoint of its own, for ever.
IDLE_CHECKPOINT_SECONDS = 5.0
_POLL_SECONDS = 0.2


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

    def cancel(self) -> None:
        """Cancel the load that runs; from any thread."""
        ...


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run is made of; `setl.pipeline.assembly` builds it from a channel file."""

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


class PipelineRun:
    """Runs a pipeline for as long as this node leads it under one epoch.

    `run` blocks in the calling thread until it is told to stop, is fenced, or fails for good;
    all other methods may be called from any thread.
    """

    def __init__(
        self, parts: RunParts, nid: str, epoch: int, progress: Progress, clock: Clock
    ) -> None:
        self._parts = parts
        self._nid = nid
        self._epoch = epoch
        self._progress = progress
        self._clock = clock
        self._stopping = threading.Event()
        self._aborted = False
        self._loading_allowed = threading.Event()
        self._loading_allowed.set()
        self._size = LoadSize(parts.rows_per_load)
        self._backoff = Backoff(random.Random())  # noqa: S311 - jitter is no secret
        self._set_aside: Batch | None = None
        self._stored: Checkpoint | None = None
        self._reached: Checkpoint | None = None
        self._stored_at = 0.0
        self._applied_through = 0

    # -- from other threads ---------------------------------------------------------------

    def stop(self) -> None:
        """Finish and acknowledge the load that runs, then return from `run`."""
        self._stopping.set()

    def abort(self) -> None:
        """Cancel the load that runs and return from `run` (I3: leadership may be gone)."""
        self._aborted = True
        self._stopping.set()
        self._parts.job.cancel()

    def suspend(self) -> None:
        """Start no new load until `resume` (I3: the arbiter does not answer)."""
        if self._loading_allowed.is_set():
            self._loading_allowed.clear()
            self._progress.enter(RunState.SUSPENDED)

    def resume(self) -> None:
        """Loads may start again."""
        if not self._loading_allowed.is_set():
            self._progress.enter(RunState.RUNNING)
            self._loading_allowed.set()

    # -- the run --------------------------------------------------------------------------

    def run(self) -> None:
        """Take over and apply until told to stop.

        Raises:
            FencedError: a newer leadership exists.
            SetlError: any other error that trying again does not mend.
        """
        try:
            while not self._stopping.is_set():
                try:
                    self._begin()
                    self._apply_until_stopped()
                except TransientError as error:
                    self._retry_later(error)
        finally:
            self._end()

    def _begin(self) -> None:
        """Raise the fence before the first entry is selected (I2), then open the source."""
        parts = self._parts
        if not self._backoff.failures:
            self._progress.enter(RunState.TAKING)
        failpoints.reached("take.before_fence")
        parts.fence.raise_to(self._epoch, self._nid)
        failpoints.reached("take.after_fence")
        checkpoint = parts.store.load()
        if checkpoint is None or checkpoint.generation < parts.generation:
            # A generation above the stored one means that the operator wants to start over,
            # since the stored position says nothing about the source as it is now.
            rows = checkpoint.rows if checkpoint else 0
            checkpoint = Checkpoint(parts.source.initial(), generation=parts.generation, rows=rows)
            # Kept before anything is applied: a start at "latest" that is lost in a crash
            # would become a later "latest", and what lies between would never be applied.
            parts.store.store(checkpoint, self._epoch)
        self._stored = self._reached = checkpoint
        self._stored_at = self._clock.monotonic()
        self._progress.resumed(str(checkpoint.resume), checkpoint.rows)
        self._applied_through = parts.job.applied_through(self._ticket(0, checkpoint))
        parts.extractor.reset(checkpoint)
        self._set_aside = None
        parts.select.start(checkpoint)
        if parts.heartbeat is not None:
            parts.heartbeat.start()
        _log.info(
            "pipeline takes over",
            extra=self._fields(position=str(checkpoint)),
        )

    def _apply_until_stopped(self) -> None:
        select = self._parts.select
        while not self._stopping.is_set():
            batch, self._set_aside = self._set_aside, None
            batch = batch or select.next_batch(_POLL_SECONDS)
            self._progress.enter_if(RunState.TAKING, RunState.RUNNING)
            if batch is None:
                self._store_if_due()
                continue
            self._load(self._with_backlog(batch))
        if not self._aborted and self._reached is not None and self._reached != self._stored:
            self._store(self._reached)  # handed over in order: the next leader reads nothing twice

    def _with_backlog(self, first: Batch) -> list[Batch]:
        """The batch and those waiting behind it: what piled up is loaded by one Spark job.

        So loads grow with the backlog and stay small without one. DDL stands alone (I16): the
        batch that holds it is set aside until everything before it is acknowledged.
        """
        batches, rows = [first], first.rows
        while rows < self._size.rows and not has_ddl(first):
            following = self._parts.select.next_batch(0)
            if following is None:
                break
            if has_ddl(following):
                self._set_aside = following
                break
            batches.append(following)
            rows += following.rows
        return batches

    def _load(self, batches: list[Batch]) -> None:
        failpoints.reached("select.batch")
        started = self._clock.monotonic()
        extracted = [self._parts.extractor.extract(batch) for batch in batches]
        self._progress.spent("extract", self._clock.monotonic() - started)
        failpoints.reached("extract.done")
        self._refuse_ddl(extracted)
        self._wait_until_allowed()
        if self._stopping.is_set():
            return
        last = batches[-1]
        rows = [row for part in extracted for row in part.rows]
        report = LoadReport()
        if rows:
            ticket = self._ticket(last.id, last.checkpoint)
            failpoints.reached("load.before_job")
            report = self._parts.job.run(rows, ticket, self._applied_through)
            failpoints.reached("load.after_job")
            self._size.loaded(report.rows, self._clock.monotonic() - started)
        total = (self._reached.rows if self._reached else 0) + report.rows
        self._reached = replace(last.checkpoint, rows=total)
        if rows:
            self._store(self._reached)
            failpoints.reached("checkpoint.stored")
        for batch in batches:
            self._parts.select.ack(batch)
        if rows:
            failpoints.reached("batch.acked")
        self._store_if_due()
        self._account(batches, extracted, report)
        self._backoff.succeeded()

    def _account(
        self, batches: list[Batch], extracted: list[Extracted], report: LoadReport
    ) -> None:
        progress, checkpoint = self._progress, batches[-1].checkpoint
        progress.applied(report.rows, str(checkpoint.resume), self._parts.select.status().unacked)
        progress.add(
            batches=len(batches),
            loads=1 if report.rows else 0,
            rows_applied=report.rows,
            rows_redelivered=report.redelivered,
            rows_loopback=sum(e.counts.loopback_rows for e in extracted),
            rows_unmapped=sum(e.counts.unmapped for e in extracted),
            upserts=report.upserts,
            deletes=report.deletes,
            stale=report.stale,
        )
        for stage, seconds in report.seconds.items():
            progress.spent(stage, seconds)
        now = self._clock.now()
        for part in extracted:
            for seen in part.heartbeats:
                if seen.id == self._parts.heartbeat_id:
                    progress.sample_lag(now - seen.written_at)
        progress.enter_if(RunState.RETRYING, RunState.RUNNING)

    def _refuse_ddl(self, extracted: list[Extracted]) -> None:
        for part in extracted:
            for entry in part.ddl:
                if self._parts.stop_on_ddl:
                    raise FatalError(
                        f"schema change at the source: {entry.statement[:300]}",
                        hint="Apply it to the target, then `setl start` the channel again with"
                        " `ddl: ignore`",
                        **self._place(),
                        position=entry.position,
                    )
                _log.warning(
                    "schema change at the source is not passed on",
                    extra=self._fields(
                        position=str(entry.position), statement=entry.statement[:300]
                    ),
                )

    def _wait_until_allowed(self) -> None:
        # A stop ends the wait by itself: while the arbiter is silent, the watchdog suspends
        # again and again, and would undo any "allowed" that a stop had set.
        while not self._stopping.is_set() and not self._loading_allowed.wait(_POLL_SECONDS):
            pass

    def _store_if_due(self) -> None:
        """Keep a checkpoint that moved over nothing of ours, now and then."""
        if (
            self._reached is not None
            and self._reached != self._stored
            and self._clock.monotonic() - self._stored_at >= IDLE_CHECKPOINT_SECONDS
        ):
            self._store(self._reached)

    def _store(self, checkpoint: Checkpoint) -> None:
        started = self._clock.monotonic()
        self._parts.store.store(checkpoint, self._epoch)
        self._stored, self._stored_at = checkpoint, self._clock.monotonic()
        self._progress.spent("checkpoint", self._stored_at - started)

    def _retry_later(self, error: TransientError) -> None:
        """Roll everything unacknowledged back (I6), then wait before beginning again."""
        wait = self._backoff.failed()
        error.at(**self._place())
        self._progress.enter(RunState.RETRYING, str(error))
        self._progress.add(retries=1)
        _log.warning(
            "pipeline rolls back and tries again",
            extra=self._fields(
                error=str(error), attempt=self._backoff.failures, wait=round(wait, 2)
            ),
        )
        self._parts.select.stop()
        self._stopping.wait(wait)

    def _end(self) -> None:
        """Leave no thread and no connection behind."""
        parts = self._parts
        if parts.heartbeat is not None:
            parts.heartbeat.stop()
        parts.select.stop()
        parts.source.close()

    def _ticket(self, batch_id: int, checkpoint: Checkpoint) -> LoadTicket:
        through = document_version(checkpoint.generation, checkpoint.applied or checkpoint.resume)
        return LoadTicket(
            channel=self._parts.channel,
            pipeline=self._parts.pipeline,
            nid=self._nid,
            epoch=self._epoch,
            batch_id=batch_id,
            slot=0,
            through=through,
        )

    def _place(self) -> dict[str, str]:
        return {"pipeline": f"{self._parts.channel}/{self._parts.pipeline}"}

    def _fields(self, **values: object) -> dict[str, object]:
        return fields(
            channel=self._parts.channel,
            pipeline=self._parts.pipeline,
            nid=self._nid,
            epoch=self._epoch,
            **values,
        )


def has_ddl(batch: Batch) -> bool:
    """Whether a batch is a schema change, which Select leaves alone in its batch."""
    return any(entry.statement for entry in batch.entries[:1])
