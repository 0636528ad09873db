"""What a pipeline has done so far, as numbers for status, metrics and people."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from setl.clock import Clock
from setl.model.batch import Batch
from setl.model.loaded import Loaded
from setl.model.table_load import TableLoad
from setl.model.table_rows import OTHERS, added
from setl.run.measured import distributions
from setl.run.measured.distributions import Distributions, Measured
from setl.run.measured.figures import (
    MOST_SCHEMAS,
    THROTTLED,
    Figures,
    HandoverCost,
    LoadOutlook,
    RunState,
    SchemaStatements,
    VerificationFigures,
    table_load_figures,
)
from setl.run.measured.handover import HandoverTracker
from setl.run.measured.lag import LagTracker, percentile
from setl.run.measured.pace import Order, Pace, PaceTracker, Stage, Stall
from setl.run.measured.row_rate import RowRate
from setl.select.reader import SelectStatus

_UNKNOWN = LoadOutlook()
_IN_HAND = frozenset({RunState.TAKING, RunState.RUNNING, RunState.RETRYING, RunState.SUSPENDED})
_MOST_TABLES = 1000
"""Tables of which the last ignored schema change is remembered (I20)."""


class Progress:
    """Collects the figures of one pipeline; written by its threads, read by any."""

    def __init__(self, clock: Clock, before: Progress | None = None) -> None:
        """Nothing is known yet.

        Args:
            clock: for all times.
            before: what an earlier leadership of this node has left to be tried again, so that
                its failures count, and its lag goes on.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._figures = Figures()
        self._lag = LagTracker(clock)
        self._ignored = _IgnoredSchemaChanges()
        self._rate = RowRate(clock)
        self._pace = PaceTracker(clock)
        self._stall: Stall | None = None
        self._measured = Measured()
        self._handover = HandoverTracker()
        # The load of tables: its id, when this leadership saw it first, and its rows then.
        self._load_began: tuple[str, float, int] | None = None
        if before is not None:
            self._go_on_from(before)

    def _go_on_from(self, before: Progress) -> None:
        with before._lock:
            self._pace.go_on_from(before._pace)
            before._pace.forget_failures()
            self._lag, self._stall = before._lag, before._stall
            self._ignored, figures = before._ignored.copy(), before._figures
        self._set(
            state=figures.state, error=figures.error, last_ddl_ignored=figures.last_ddl_ignored
        )

    def _set(self, **values: Any) -> None:
        """Set figures, named as in `Figures`; with the lock held.

        In place: a copy has some eighty fields, and would be made ten times for each batch.
        """
        for name, value in values.items():
            setattr(self._figures, name, value)

    def enter(self, state: RunState, error: str = "") -> None:
        """Say what the pipeline is doing now, and with which error."""
        with self._lock:
            self._enter(state, error)

    def _enter(self, state: RunState, error: str) -> None:
        if (state, error) != (self._figures.state, self._figures.error):
            self._set(state=state, error=error)
        if state not in _IN_HAND:
            self._verifies_no_more(state)
            self._pace.forget_failures()
            self._stall = None
        if state is RunState.STANDBY:
            self._lag.forget()
            self._set(no_heartbeats="")
        elif state in _IN_HAND:
            self._lag.begin()

    def _verifies_no_more(self, state: RunState) -> None:
        figures = self._figures.verification
        if figures is not None:
            figures = replace(figures, state=THROTTLED, waits_for=f"the pipeline is {state.value}")
            standby = state is RunState.STANDBY
            self._set(verification=None if standby else figures)

    def begin_attempt(self) -> None:
        """Begin to take over; after a failure it is still being tried again."""
        if self.pace().retrying is None:
            self.enter(RunState.TAKING)

    def enter_if(self, current: RunState, state: RunState) -> None:
        """Go on to `state` and forget the error, but only from `current`."""
        with self._lock:
            if self._figures.state is current:
                self._set(state=state, error="")

    def at_stage(self, stage: Stage) -> None:
        """The run comes to a stage; `Stage.TAKE_OVER` begins an attempt."""
        with self._lock:
            self._pace.enter(stage)

    def moved(self) -> None:
        """Something advanced inside the stage, as seen from outside the run."""
        with self._lock:
            self._pace.moved()

    def failed(self, error: str, reached: Order | None = None, *, shown: str = "") -> None:
        """The run rolls back and will try again; see `PaceTracker.failed`.

        Args:
            error: what went wrong.
            reached: how far the attempt had come.
            shown: the same with its position and hint; "" changes the state of the run later.
        """
        with self._lock:
            self._pace.failed(error, reached)
            if shown:
                self._enter(RunState.RETRYING, shown)

    def succeeded(self, reached: Order | None = None) -> bool:
        """Batches are acknowledged; returns whether that is more than was done again.

        If so, whatever failed before has passed. See `PaceTracker.succeeded`.
        """
        with self._lock:
            made_progress = self._pace.succeeded(reached)
            if made_progress and self._figures.state is RunState.RETRYING:
                self._set(state=RunState.RUNNING, error="")
            return made_progress

    def pace(self) -> Pace:
        """How the run moves now."""
        with self._lock:
            return self._pace.pace()

    def stalls(self, stall: Stall | None) -> None:
        """What a diagnosis found; None if the run does not stand still (any more)."""
        with self._lock:
            self._stall = stall

    def report_heartbeat(self, error: str) -> None:
        """Why the last heartbeat could not be written to the source; "" if it was."""
        with self._lock:
            self._set(no_heartbeats=error)

    def found_checkpoint(self, age: float | None) -> None:
        """The run found a stored checkpoint; only the first one is of the leadership before.

        Args:
            age: seconds since it was stored, None if nobody knows.
        """
        stored_at = None if age is None else self._clock.now() - age
        with self._lock:
            self._handover.found_checkpoint(stored_at)

    def took_over(self, through: int, *, counted: bool) -> None:
        """The run begins at a checkpoint; only its first beginning in a leadership counts.

        Args:
            through: version up to which the target may hold changes already, 0 for none.
            counted: whether the target can tell `through`.
        """
        with self._lock:
            self._handover.took_over(through, counted=counted)

    def acknowledged(self, passed: int) -> None:
        """Everything up to a version is applied, and counted by `add` and `applied`."""
        with self._lock:
            self._acknowledged(passed)

    def _acknowledged(self, passed: int) -> None:
        self._handover.acknowledged(
            passed,
            self._clock.now(),
            first_applied_at=self._figures.first_applied_at,
            redelivered=self._figures.rows_redelivered,
        )

    def handover_cost(self) -> HandoverCost | None:
        """What the change of leadership has cost, see `HandoverTracker.cost`."""
        with self._lock:
            return self._handover.cost

    def loaded(self, done: Loaded) -> None:
        """Add what a load did; its rows are counted by `applied`, its dead letters beside it."""
        self.add(
            loads=1 if done.rows else 0,
            rows_applied=done.rows,
            rows_redelivered=done.redelivered,
            upserts=done.upserts,
            deletes=done.deletes,
            stale=done.stale,
            conflicts_source=done.conflicts_source,
            conflicts_target=done.conflicts_target,
        )
        with self._lock:
            tables = added(self._figures.tables, done.tables)
            self._set(tables=tables)
            self._measured.add(distributions.STATEMENT, done.statements)
            if done.rows:
                self._measured.observe(distributions.LOAD_ROWS, done.rows)
        if done.rows:
            self.add_time("transform", done.transform_seconds)
            self.add_time("load", done.seconds)

    def loads_tables(self, load: TableLoad | None, outlook: LoadOutlook = _UNKNOWN) -> None:
        """How far a load of whole tables has come, None for none.

        Args:
            load: the load.
            outlook: what else is known of it.
        """
        with self._lock:
            before, now = self._load_began, self._clock.monotonic()
            if load is None or before is None or before[0] != load.id or outlook.paused:
                before = self._load_began = None if load is None else (load.id, now, load.rows)
            rate = 0.0
            if load is not None and before is not None and now > before[1]:
                rate = (load.rows - before[2]) / (now - before[1])
            figures = None if load is None else table_load_figures(load, outlook, rate)
            self._set(table_load=figures)

    def loaded_ranges(self, done: Loaded) -> None:
        """Add what a load of ranges of tables did; its rows are no changes of the stream."""
        self.add(upserts=done.upserts, stale=done.stale)
        self.add_time("load", done.seconds)
        with self._lock:
            self._measured.add(distributions.STATEMENT, done.statements)

    def verifies(self, verification: VerificationFigures) -> None:
        """How standing verification does."""
        with self._lock:
            self._set(verification=verification)

    def add(self, **counters: int) -> None:
        """Add to counters, named as in `Figures`."""
        with self._lock:
            self._set(**{k: getattr(self._figures, k) + v for k, v in counters.items() if v})

    def changed_schema(self, statement: str) -> None:
        """A schema change was replicated."""
        with self._lock:
            passed = self._figures.ddl_replicated + 1
            self._set(ddl_replicated=passed, last_ddl=statement)

    def ignored_schema_change(self, statement: str, position: str, tables: Iterable[str]) -> None:
        """A schema change was not replicated.

        Args:
            statement: the front of it.
            position: where in the stream, and when.
            tables: ``schema.table`` of those that it concerns.
        """
        with self._lock:
            ignored = self._figures.ddl_ignored + 1
            text = f"{statement} ({position})"
            self._set(ddl_ignored=ignored, last_ddl_ignored=text)
            self._ignored.add(text, tables)

    def skipped_statements(self, by_schema: Mapping[str, int]) -> None:
        """Statements that the source logged instead of rows were skipped."""
        if not by_schema:
            return
        with self._lock:
            counted = dict(self._figures.statements_by_schema)
            for schema, number in by_schema.items():
                known = schema if schema in counted or len(counted) < MOST_SCHEMAS else OTHERS
                before = counted.get(known, SchemaStatements())
                counted[known] = SchemaStatements(before.number + number)
            passed = self._figures.statements_skipped + sum(by_schema.values())
            self._set(statements_skipped=passed, statements_by_schema=counted)

    def ignored_of(self, tables: Iterable[str]) -> str:
        """The last schema change of one of these tables that was not replicated; "" if none."""
        with self._lock:
            return self._ignored.of(tables)

    def has_dead_letters(self, number: int) -> None:
        """So many faulty rows wait for a decision."""
        with self._lock:
            self._set(dead_letters=number)

    def add_time(self, stage: str, seconds: float) -> None:
        """Add to the time spent in a stage."""
        with self._lock:
            add_time = dict(self._figures.seconds)
            add_time[stage] = add_time.get(stage, 0.0) + seconds
            self._set(seconds=add_time)
            self._measured.observe(distributions.STAGE, seconds, label=stage)

    def took(self, batches: Sequence[Batch], seconds: float) -> None:
        """Batches are acknowledged, so many seconds after what was done with them began."""
        with self._lock:
            self._measured.took(batches, seconds)

    def absorbed(self, batch: Batch, lags: Sequence[float], version: Callable[[], int]) -> None:
        """Heartbeats were absorbed: all at once that is counted of an acknowledged batch.

        Args:
            batch: holds nothing else.
            lags: how long ago each was written that tells the lag, in seconds.
            version: gives that of the batch's end, see `acknowledged`.
        """
        with self._lock:
            figures = self._figures
            figures.batches += 1
            figures.position, figures.pending = str(batch.checkpoint.resume), 0
            for seconds in lags:
                self._sample_lag(seconds)
            if self._handover.cost is None:
                self._acknowledged(version())
            self._measured.took((batch,), self._clock.monotonic() - batch.closed)
            self._pace.moved()

    def resumed(self, position: str, rows_total: int, committed_at: float = 0.0) -> None:
        """The pipeline goes on from a stored checkpoint.

        Args:
            position: where.
            rows_total: row changes applied before.
            committed_at: when the last of them was committed, seconds since 1970; 0 if unknown.
        """
        with self._lock:
            if committed_at:
                self._lag.resumed(self._clock.now() - committed_at)
            self._set(position=position, rows_total=rows_total)

    def applied(self, rows: int, position: str, pending: int) -> None:
        """A load of `rows` row changes is acknowledged up to `position`."""
        with self._lock:
            now = self._clock.now()
            first = self._figures.first_applied_at
            self._set(
                position=position,
                pending=pending,
                rows_total=self._figures.rows_total + rows,
                first_applied_at=now if first is None and rows else first,
            )
            self._rate.add(rows)

    def reads(self, select: SelectStatus) -> None:
        """What reading the source has come to."""
        with self._lock:
            self._set(
                behind=select.behind,
                waiting_for=select.waiting_for,
                reads_with_others=select.shared,
                pending=select.unacked,
                buffered_bytes=select.buffered_bytes,
                buffer_bytes=select.buffer_bytes,
                held_back_seconds=round(select.blocked_seconds, 1),
            )

    def sample_lag(self, seconds: float) -> None:
        """A heartbeat written `seconds` ago at the source has passed through the pipeline."""
        with self._lock:
            self._sample_lag(seconds)

    def _sample_lag(self, seconds: float) -> None:
        self._lag.sample(seconds)
        self._measured.observe(distributions.COMMIT_TO_VISIBLE, max(0.0, seconds))

    def heartbeats_every(self, seconds: float) -> None:
        """Heartbeats are written to the source this often."""
        with self._lock:
            self._lag.every(seconds)

    def caught_up(self) -> None:
        """Nothing waits to be applied, and no heartbeat could tell it better."""
        with self._lock:
            if self._figures.state is RunState.RUNNING:
                self._lag.caught_up()

    @property
    def state(self) -> RunState:
        """What the pipeline is doing; much cheaper than all figures."""
        return self._figures.state

    def measured(self) -> Distributions:
        """Histograms of what was measured in this leadership."""
        with self._lock:
            return self._measured.snapshot()

    def figures(self) -> Figures:
        """The figures as of now."""
        with self._lock:
            lags, lag = self._lag.ordered(), self._lag.lag()
            pace, stall = self._pace.pace(), self._stall
            return replace(
                self._figures,
                lag=None if lag is None else round(lag, 6),
                attempts=pace.retrying.attempts if pace.retrying else 0,
                stage=pace.stage,
                stage_seconds=round(pace.in_stage, 3) if pace.stage is not Stage.NONE else 0.0,
                stalled=stall.text if stall else "",
                stalled_stage=stall.stage.value if stall else "",
                stalled_reason=stall.reason.value if stall else "",
                stalled_seconds=round(stall.seconds, 1) if stall else 0.0,
                rows_per_second=self._rate.per_second(),
                lag_p50=percentile(lags, 0.50),
                lag_p99=percentile(lags, 0.99),
            )


class _IgnoredSchemaChanges:
    """The last schema change of each table that was not replicated, to explain later errors by.

    Not thread-safe: `Progress` guards it.
    """

    def __init__(self) -> None:
        """There is none."""
        self._texts: dict[str, str] = {}

    def copy(self) -> _IgnoredSchemaChanges:
        """The same again, which changes by itself."""
        copied = _IgnoredSchemaChanges()
        copied._texts = dict(self._texts)
        return copied

    def add(self, text: str, tables: Iterable[str]) -> None:
        """Note a change that concerns some tables; the oldest are forgotten."""
        for table in tables:
            self._texts.pop(table, None)
            self._texts[table] = text
        while len(self._texts) > _MOST_TABLES:
            del self._texts[next(iter(self._texts))]

    def of(self, tables: Iterable[str]) -> str:
        """The last change of one of these tables; "" if none."""
        return next((self._texts[table] for table in tables if table in self._texts), "")
