"""What a run does with batches in a relay: write them to a log, in order."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from setl import failpoints
from setl.clock import Clock
from setl.codec.row_codec import RowCodec
from setl.errors import FatalError
from setl.extract.heartbeats import heartbeats_in
from setl.log import fields
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, KnownTargets
from setl.model.entry import Entry
from setl.model.leadership import Leadership
from setl.model.table_load import TableLoad
from setl.relay.ports import RelayLog
from setl.relay.resume import Tails, resumption, with_written
from setl.relay.sequence import Sequencer
from setl.relay.transaction import Outgoing
from setl.run.measured.pace import Stage
from setl.run.measured.progress import Progress
from setl.run.work import Applied

_log = logging.getLogger(__name__)

SequencerFactory = Callable[[Checkpoint, Tails], Sequencer]
"""Makes the sequencer of a leadership that goes on at a checkpoint; raises SetlError."""


class RelayWork:
    """A relay as `setl.run.work.Work`."""

    def __init__(
        self,
        leadership: Leadership,
        progress: Progress,
        clock: Clock,
        *,
        log: RelayLog,
        sequencer: SequencerFactory,
        exact: bool,
        spread: bool,
        heartbeat: float,
        rows: int,
        codec: RowCodec,
        heartbeat_id: int,
    ) -> None:
        """Nothing is asked yet.

        Args:
            leadership: on whose behalf.
            progress: is told what was done.
            clock: for all times.
            log: where records go.
            sequencer: makes what turns entries into records.
            exact: whether the log keeps former leaders out.
            spread: whether a row's partition goes by how many there are.
            heartbeat: seconds after which every partition gets a heartbeat.
            rows: rows that are written before the log is flushed.
            codec: decodes rows of ``retl.xdual``.
            heartbeat_id: the row there that heartbeats write, 0 if the stream's own times tell the
                lag.
        """
        self._log = log
        self._sequencer_at = sequencer
        self._exact = exact
        self._spread = spread
        self._heartbeat = heartbeat
        self._rows = rows
        self._codec = codec
        self._heartbeat_id = heartbeat_id
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._tails: Tails = ()
        self._sequencer: Sequencer | None = None
        self._sealed: Checkpoint | None = None
        self._beat_at = 0.0  # monotonic time of the last heartbeats
        self._done: _Done | None = None

    def take_over(self) -> None:
        """See `Work.take_over`."""
        self._tails = self._log.take_over()

    def with_written(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Work.with_written`; the last records of a topic tell their transactions."""
        return with_written(checkpoint, self._tails)

    def forget(self, checkpoint: Checkpoint) -> None:
        """See `Work.forget`; a topic keeps nothing beside its records."""

    def begin(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Work.begin`; goes by what is in the topic."""
        resumed = resumption(checkpoint, self._tails, exact=self._exact, spread=self._spread)
        if resumed.reason:
            _log.warning(
                "relay goes on from the topic's last records",
                extra=fields(
                    **self._leadership.fields,
                    reason=resumed.reason,
                    position=str(resumed.checkpoint),
                    checkpoint=str(checkpoint),
                ),
            )
        self._sequencer = self._sequencer_at(resumed.checkpoint, resumed.tails)
        self._progress.took_over(0, counted=False)
        self._sealed = checkpoint
        self._beat_at = self._clock.monotonic() - self._heartbeat  # at once
        return resumed.checkpoint

    @property
    def targets(self) -> KnownTargets:
        """See `Work.targets`; a topic has no rows that could be lost with it."""
        return ()

    @property
    def room(self) -> int:
        """See `Work.room`."""
        return self._rows

    def apply(self, batches: Sequence[Batch], allowed: Callable[[], bool]) -> Applied | None:
        """See `Work.apply`."""
        sequencer = self._sequenced()
        self._progress.at_stage(Stage.LOAD)
        if not allowed():
            return None
        started = self._clock.monotonic()
        failpoints.reached("load.before_job")
        records, done = 0, _Done(len(batches), batches[-1].checkpoint)
        for batch in batches:
            passed = sequencer.records(batch.entries)
            self._append(passed.records)
            records += len(passed.records)
            done.rows += passed.rows
            done.heartbeats += passed.heartbeats
            done.statements += passed.statements
        beating = self._beat() if self._due() else None
        failpoints.reached("relay.appended")
        appended = self._clock.monotonic()
        self._log.flush()
        failpoints.reached("load.after_job")
        self._progress.add_time("sequence", appended - started)
        self._progress.add_time("flush", self._clock.monotonic() - appended)
        self._sealed = beating or self._sealed
        self._done = done
        return Applied(done.rows, wrote=bool(records), checkpoint=self._sealed)

    def acknowledged(self, pending: int) -> None:
        """See `Work.acknowledged`."""
        done, self._done = self._done, None
        if done is None:
            return
        progress = self._progress
        progress.add(batches=done.batches, loads=1 if done.rows else 0, rows_applied=done.rows)
        progress.skipped_statements(Counter(done.statements))
        # Last of the counts, as in setl proper: see `setl.run.measured.accounting.account`.
        progress.applied(done.rows, str(done.reached.resume), pending)
        if not self._heartbeat_id and done.reached.timestamp:
            progress.sample_lag(self._clock.now() - done.reached.timestamp)
        for entry in done.heartbeats:
            for seen in heartbeats_in(self._codec.decode(entry.payload, entry.context)):
                if seen.id == self._heartbeat_id:
                    progress.sample_lag(self._clock.now() - seen.written_at)
        progress.acknowledged(0)

    def tables_due(self, reached: Checkpoint) -> bool:  # noqa: ARG002
        """See `Work.tables_due`; a relay copies changes, no rows."""
        return False

    def look_at_loads(self) -> None:
        """See `Work.look_at_loads`."""

    def load_tables(
        self,
        reached: Checkpoint,  # noqa: ARG002
        allowed: Callable[[], bool],  # noqa: ARG002
    ) -> TableLoad | None:
        """See `Work.load_tables`; a relay copies changes, no rows."""
        return None

    def absorbs(self, entries: Sequence[Entry]) -> bool:  # noqa: ARG002
        """See `Work.absorbs`; heartbeats become records, too."""
        return False

    def absorbed(self, batch: Batch) -> None:
        """See `Work.absorbed`."""

    def idle(self, allowed: Callable[[], bool]) -> Checkpoint | None:
        """See `Work.idle`; readers need not wonder whether anybody is there."""
        if not (self._due() and allowed()):
            return None
        beating = self._beat()
        self._log.flush()
        self._sealed = beating or self._sealed
        return beating

    @property
    def abandoned(self) -> bool:
        """See `Work.abandoned`; what may still arrive repeats positions, or is fenced off."""
        return False

    def cancel(self) -> None:
        """See `Work.cancel`."""
        self._log.abandon()

    def end_writers(self) -> None:
        """See `Work.end_writers`: `cancel` has done it."""

    def close(self) -> None:
        """See `Work.close`."""
        self._log.close()

    def _append(self, records: Sequence[Outgoing]) -> None:
        append = self._log.append
        for partition, value, position, key, timestamp in records:
            append(partition, value, position, key, timestamp)

    def _due(self) -> bool:
        return self._clock.monotonic() - self._beat_at >= self._heartbeat

    def _beat(self) -> Checkpoint | None:
        """Append heartbeats.

        Returns:
            The checkpoint that may be kept once they are flushed: every partition has come as
            far then. None inside a transaction, where there are no heartbeats.
        """
        sequencer = self._sequenced()
        self._append(sequencer.heartbeat(self._clock.now()))
        self._beat_at = self._clock.monotonic()
        return None if sequencer.inside else sequencer.checkpoint

    def _sequenced(self) -> Sequencer:
        if self._sequencer is None:
            raise FatalError("a relay applies before it has begun", hint="This is a defect")
        return self._sequencer


@dataclass(slots=True)
class _Done:
    """What the last `apply` did."""

    batches: int
    reached: Checkpoint
    rows: int = 0
    heartbeats: list[Entry] = field(default_factory=list[Entry])
    statements: list[str] = field(default_factory=list[str])
