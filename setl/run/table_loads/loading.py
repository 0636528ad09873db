"""Loads whole tables alongside the stream: a step now and then, between two loads of the stream.

The target's rows come from two sides. The stream has brought it to the position P. A step reads
rows as the source has them at a position S, which is never before P, since the stream was read from
there. The step is a load as any other: it is over before the stream's next one begins (I15), under
the same fence (I2) and with the same mark (I9). It sees all that the stream has brought, although a
server's binlog is ahead of its tables (`SourceReader.reading_at`). So what it writes is never older
than what it replaces. What the stream brings between P and S is applied again to rows that have it
already, as after a crash, and ends in the same rows. So once the stream has come to the end of the
source as it was after the last step, the target is what the source was there: `TableLoad.until`.

What is loaded, requests say (see `StoredLoadRequests`): those of operators, and those that a leader
makes because the channel file asks for tables that no load has taken up yet. One is carried out
after another. A request may also name single keys: their rows are read at S as all others are, and
a key without a row is deleted, which is as right as the rest.

A step's rows are read and written in Spark tasks, a range of the key each. The driver sees keys.

A table without a key is another matter, since a change that is applied again would be there twice.
It is read as a whole, as of a position of the stream that is exactly known, and replaces what the
target has (`ReplacingSink`). The stream's changes of it before that position are left out.

The algorithm differs from that of https://arxiv.org/abs/2010.12597 in this: there a chunk waits in
memory until the stream has come to where it was read, and rows that the stream has changed
meanwhile are dropped from it. Here nothing waits, for the price that for a moment a row may be
newer than rows beside it, and then go back by a change or two that come again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from setl import failpoints
from setl.bulk.source_reader import SourceTables
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.routes.routing import Router
from setl.clock import Clock
from setl.errors import ConfigurationError, DataError, FencedError, SetlError, TransientError
from setl.extract.free_gate import GateRow
from setl.load.sink import LoadTicket
from setl.log import fields
from setl.model.checkpoint import Checkpoint, ShownPosition
from setl.model.entry import Entry
from setl.model.leadership import Leadership
from setl.model.load_request import LoadRequest, RequestState
from setl.model.position import Position
from setl.model.stream_end import StreamEnd
from setl.model.table_load import TableLoad
from setl.model.target_name import target_name
from setl.run.loads.catching_up import CatchingUp
from setl.run.loads.job import LoadJob
from setl.run.loads.size import LoadSize, spent_on_rows
from setl.run.measured.figures import LoadOutlook
from setl.run.measured.progress import Progress
from setl.run.table_loads import choice as load_choice
from setl.run.table_loads.choice import START, PlannedLoad
from setl.run.table_loads.gate_requests import gate_requests
from setl.run.table_loads.items import Step, StepSize, check_request, keys_of, ranges_of
from setl.run.table_loads.listed_tables import ListedTables
from setl.run.table_loads.queue import LoadQueue
from setl.run.table_loads.rearranged_tables import (
    doubt_of_actions,
    read_again,
    read_whole_again,
    reason_to_reload,
)
from setl.run.table_loads.refusals import RefusedTables
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.table_loads.throttle import Throttle
from setl.run.targets.joined import NamedRoute, with_targets_of_their_own
from setl.systems.replicas import ReplicaBehind

_log = logging.getLogger(__name__)

STEP_SECONDS = 0.4
"""What the rows of a step should take: the stream waits for it, and for what Spark adds."""

_MOST_ROWS = 200_000  # of a step, however quick it is
_MOST_ITEMS = 64  # ranges of a step: many small tables go together
_LEAST_ROWS = 2_000  # of a range; below, a step costs more than its rows
_REFUSED = 3  # of which the log says what is wrong
_MOST_UNPASSED = 100_000  # rows that the target keeps for the other site


class TableLoading:
    """The load of whole tables of one leadership.

    Used by the run's thread; only `look_again` may be called by others.
    """

    def __init__(
        self,
        job: LoadJob,
        leadership: Leadership,
        progress: Progress,
        clock: Clock,
        *,
        router: Router,
        tables: Callable[[], AbstractContextManager[SourceTables] | None],
        latest: Callable[[], Position] | None,
        catching_up: CatchingUp,
        holds_rows: Callable[[tuple[str, str]], bool],
        requests: StoredLoadRequests,
        wanted: tuple[str, ...],
        limits: LoadLimits,
        back: str = "",
        unpassed: Callable[[], int] | None = None,
        replica: Callable[[], ReplicaBehind | None] | None = None,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            job: reads and loads ranges.
            leadership: on whose behalf.
            progress: is told how far it is, and tells the lag.
            clock: for all times.
            router: which tables go where.
            tables: opens the tables of the source; gives None if nobody can read them.
            latest: asks for the end of the source's stream; None if the stream may end before what
                its tables show, so that only the server's clock tells when all of that has come.
            catching_up: runs the loads.
            holds_rows: see `TargetSystem.holds_rows`.
            requests: what operators ask for.
            wanted: names of the channel file's entries whose tables are to be loaded.
            limits: what a load is throttled by.
            back: the pipeline that writes into the source's tables, if any table has a conflict
                policy, as ``channel/pipeline``; "" without.
            unpassed: of how many rows the target still stores something until `back` has read it.
            replica: asks which replica of the target is behind most; None if it has none.
        """
        self._job = job
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._router = router
        self._latest = latest
        self._catching_up = catching_up
        self._holds_rows = holds_rows
        self._requests = requests
        self._wanted = wanted
        self._back = back
        self._unpassed = unpassed
        self._replica = replica
        self._size = LoadSize(_MOST_ROWS, seconds=STEP_SECONDS, first=2 * _LEAST_ROWS)
        self._tables = ListedTables(tables, router, leadership.key, clock)
        self._one_by_one: Sequence[NamedRoute] = ()  # with targets of their own, while they load
        self._waiting: StreamEnd | None = None
        self._refusals = RefusedTables()
        self._checked = ""  # the request that was seen to make sense
        self._queue = LoadQueue(requests, wanted, leadership, clock)
        self._throttle = Throttle(limits, lambda: progress.figures().lag, clock)
        self._reported = LoadProgress(progress, self._tables, self._throttle)

    def begin(self, load: TableLoad | None) -> None:
        """A leadership goes on with a load, or there is none.

        Raises:
            ConfigurationError: the tables cannot be loaded.
            SetlError: the source or the target does not answer.
        """
        self._waiting, self._checked, self._one_by_one = None, "", ()
        self._refusals.forget()
        self._tables.forget()
        self._progress.loads_tables(load)
        self._queue.look_again()
        if load is not None and not load.ended:
            self._prepare(load)

    def planned(self, load: TableLoad | None) -> PlannedLoad:
        """What is about to be loaded as a whole, when `load` goes on or was the last one."""
        missing = load_choice.missing_entries(load, self._wanted)
        return PlannedLoad(load, missing, self._router)

    def unread(
        self, names: Collection[tuple[str, str]], load: TableLoad | None
    ) -> frozenset[tuple[str, str]]:
        """Targets of these tables that a load is about to replace, should they have no key.

        Args:
            names: source tables.
            load: see `planned`.
        """
        planned = self.planned(load)
        if not planned.is_planned:
            return frozenset()
        found = (n for n in names if planned.is_to_read(n) and self._tables.may_be_read(n))
        return frozenset(
            r.target for name in found for r in self._router.route(*name) if r.takes_keyless
        )

    def resend(self, rows: Sequence[GateRow]) -> None:
        """Have rows sent again that the stream asks for, grouped by `gate_requests`.

        Order: before the checkpoint passes what asked for them. Crash: it is asked again.

        Raises:
            SetlError: the requests cannot be kept now.
        """
        wanted = [row for row in rows if self._tables.are_mapped(row.table)]
        for request in gate_requests(wanted, self._clock.now()):
            self._requests.add(request)
            self._queue.look_again()

    def look_again(self) -> None:
        """Requests may have changed; from any thread."""
        self._queue.look_again()

    def due(self, load: TableLoad | None) -> bool:
        """Whether `step` has anything to do, as far as is known."""
        if self._queue.has_changed:
            return True
        if load is not None and not load.ended:
            request = self._queue.of(load)
            if self._throttle.now:
                return False
            return request is None or request.state is not RequestState.PAUSED
        return self._queue.next is not None

    def after_changes(self, ddl: Sequence[Entry], load: TableLoad | None) -> TableLoad | None:
        """A load after schema changes that the stream has brought; None if it stays as it is.

        Tables may have to be read again, see `setl.run.table_loads.rearranged_tables`.
        """
        if load is None or load.ended or not ddl:
            return None
        moved = load
        for entry in ddl:
            if load.goes_on:
                moved = read_again(moved, entry, lambda name: self._tables.are_wanted(load, name))
            else:
                moved = read_whole_again(moved, entry)
        if moved == load:
            return None
        self._prepare(moved)  # names have changed, or unique keys
        _log.info(
            "tables are to be read again after a schema change",
            extra=self._fields(load=load.id, tables=", ".join(moved.again)),
        )
        return moved

    def after_actions(
        self,
        doubtful: Collection[str],
        related: Collection[tuple[str, str]],
        load: TableLoad | None,
    ) -> TableLoad | None:
        """A load when actions of foreign keys run that may meet rows ahead of the stream.

        Args:
            doubtful: tables that may lack rows then, see `ActingKeys.doubtful`.
            related: all tables that have to do with such keys.
            load: how far it has come.

        Returns:
            None if it stays as it is.
        """
        if load is None or load.ended or set(doubtful) <= set(load.acted):
            return None
        if not any(self._tables.are_wanted(load, ".".join(name)) for name in related):
            return None
        return replace(load, acted=tuple(sorted({*load.acted, *doubtful})))

    def alone(self, names: Collection[tuple[str, str]]) -> Sequence[NamedRoute]:
        """The source tables of these that are loaded now, each into a target of its own."""
        return [both for both in self._one_by_one if both[0] in names]

    def step(
        self, reached: Checkpoint, ticket: LoadTicket, allowed: Callable[[], bool]
    ) -> TableLoad | None:
        """Load some ranges; returns how far the load has come, None if it has not moved.

        Args:
            reached: the position P of the module's text; its `load` says where to go on.
            ticket: on whose behalf.
            allowed: see `Work.apply`.

        Raises:
            SetlError: as `Work.apply`.
        """
        load = reached.load
        if not self._queue.look(load):
            return None
        if load is None or load.ended:
            return self._begin_next(load)
        request = self._queue.of(load)
        if load_choice.is_cancelled(load, request) and load.goes_on:
            return self._broken_off(replace(load, cancelled=True))
        if not load.reads and StreamEnd(load.until, load.until_time).is_past(reached):
            return self._end(replace(load, error=load.error or self._reason_to_reload(load)))
        if not load.reads or self._has_to_wait(load, request, reached):
            return None
        moved = self._read(reached, request, ticket, allowed)
        if moved is not None:
            left = len(moved.left(self._tables.names_of(moved)))
            self._reported.publish(moved, tables_left=left)
        return moved

    def _has_to_wait(
        self, load: TableLoad, request: LoadRequest | None, reached: Checkpoint
    ) -> bool:
        if request is not None and request.state is RequestState.PAUSED:
            self._reported.publish(load, paused=True)
            return True
        if reached.repeats:
            return True  # the target is ahead of the stream, and may be of what is read
        return self._waiting is not None and not self._waiting.is_past(reached)

    # -- requests ---------------------------------------------------------------------------

    def _begin_next(self, before: TableLoad | None) -> TableLoad | None:
        """The next load as it begins, or what is remembered of the last one; None for nothing."""
        request = self._queue.next
        if request is None:
            return None if before is None else self._queue.remembered(before)
        load = load_choice.begun(request, before, self._clock.now())
        _log.info("tables are to be loaded", extra=self._fields(load=load.id, what=request.what))
        self._progress.loads_tables(load)
        try:
            self._prepare(load)
        except (ConfigurationError, DataError) as error:
            if request.reason == START:
                raise
            return self._end(replace(load, error=str(error)))
        return load

    def _prepare(self, load: TableLoad) -> None:
        """Learn what a load needs to know of the tables."""
        self._tables.relist()
        named, names = self._tables.routes_of(load), [table.name for table in self._tables.mapped]
        self._one_by_one = with_targets_of_their_own(named, names, self._router)
        self._reported.expect(load, self._queue.of(load))

    def _reason_to_reload(self, load: TableLoad) -> str:
        existing = {table.text for table in self._tables.mapped}
        if not load.goes_on:
            return ""
        return reason_to_reload(load, existing.__contains__) or doubt_of_actions(load)

    def _end(self, load: TableLoad) -> TableLoad:
        self._one_by_one, self._waiting = (), None
        ended = replace(load, ended=self._clock.now())
        self._reported.publish(ended)
        self._queue.look_again()  # it is answered once it is kept
        _log.info(
            "tables are loaded",
            extra=self._fields(load=load.id, rows=load.rows, outcome=load_choice.outcome(load)[1]),
        )
        return ended

    # -- a step -----------------------------------------------------------------------------

    def _read(
        self,
        reached: Checkpoint,
        request: LoadRequest | None,
        ticket: LoadTicket,
        allowed: Callable[[], bool],
    ) -> TableLoad | None:
        load = reached.load
        assert load is not None
        try:
            with self._tables.opened() as source:
                if not self._may_step(source):
                    self._reported.publish(load)
                    return None
                step = self._next(reached, load, request, source)
                if step.refused:  # also where it is all that was asked for
                    self._warn_of_keys(step.refused)
                if not step.items and not step.load.left(self._tables.names_of(load)):
                    return self._round_is_over(step.load, source)
            if not step.items:
                return step.load
            if not allowed():
                return None
            failpoints.reached("tables.before_job")
            started = self._clock.monotonic()
            run = partial(self._job.load_ranges, step.items)
            loading = self.alone({item.table for item, _ in step.items})
            report = self._catching_up.load(run, ticket, loading)
        except (FencedError, TransientError):
            raise
        except SetlError as error:
            return self._refused(load, request, error)
        failpoints.reached("tables.after_job")
        self._waiting = None
        self._refusals.forget()
        seconds = self._clock.monotonic() - started
        at_once = min(len(step.items), self._job.parallelism)
        add_time = spent_on_rows(report, at_once, seconds)
        self._size.loaded(max(step.rows, report.rows), add_time)
        self._throttle.loaded(report.rows, seconds)
        self._progress.loaded_ranges(report)
        read_to = None if self._latest is None else self._latest()  # what was read is before that
        return replace(step.load, rows=load.rows + report.rows, read_to=read_to)

    def _may_step(self, source: SourceTables) -> bool:
        if not self._throttle.may_step(source.busy, self._replica):
            return False
        if self._unpassed is not None and self._unpassed() > _MOST_UNPASSED:
            self._throttle.wait_for(f"the opposite pipeline {self._back} has rows to read")
            return False
        return True

    def _next(
        self,
        reached: Checkpoint,
        load: TableLoad,
        request: LoadRequest | None,
        source: SourceTables,
    ) -> Step:
        self._tables.list_if_old(source)
        if request is not None and request.id != self._checked:
            check_request(request, self._tables.mapped, source)
            if request.into_empty and not load.table:
                self._check_empty(load)
            self._checked = request.id
        mapped = {table.text: table for table in self._tables.of(load)}
        at_once = self._job.parallelism
        rows = self._throttle.most_rows(self._size.rows)
        position, back = ShownPosition.of(reached), self._back
        size = StepSize(rows, at_once, _LEAST_ROWS, _MOST_ITEMS, position, back)
        if request is not None and request.keys:
            return keys_of(load, mapped, request, source, size)
        where = request.where if request else ""
        return ranges_of(load, mapped, where, source, size, joined=self._tables.joined)

    def _warn_of_keys(self, refused: Sequence[str]) -> None:
        shown = "; ".join(refused[:_REFUSED])
        _log.warning(
            "rows of the free gate are left out",
            extra=self._fields(count=len(refused), error=shown),
        )

    def _check_empty(self, load: TableLoad) -> None:
        targets = {route.target for _, route in self._tables.routes_of(load)}
        full = sorted(target_name(t) for t in targets if self._holds_rows(t))
        if full:
            raise ConfigurationError(
                f"the target has rows already in {', '.join(full)}",
                hint="Empty them, or load without --into-empty: rows are written over, and those"
                " that only the target has stay",
                pipeline=self._leadership.key,
            )

    def _broken_off(self, load: TableLoad) -> TableLoad:
        """No more is read. Rows that are in may be ahead of the stream, which has to come there."""
        if load.reads:
            with self._tables.opened() as source:
                load = self._all_is_read(load, source)
        self._reported.publish(load)
        return load

    def _round_is_over(self, load: TableLoad, source: SourceTables) -> TableLoad:
        if load.again:
            self._prepare(load.next_round)  # other rows are in each other's way now
            return load.next_round
        return self._all_is_read(load, source)

    def _all_is_read(self, load: TableLoad, source: SourceTables) -> TableLoad:
        end = self._stream_end(source)
        return replace(load, until=end.position, until_time=end.time, read_to=None)

    def _refused(
        self, load: TableLoad, request: LoadRequest | None, error: SetlError
    ) -> TableLoad | None:
        """A table may have changed, and the target is to follow when the stream comes there."""
        if self._refusals.may_skip(error):
            self._tables.relist()
            with self._tables.opened() as source:
                self._waiting = self._stream_end(source)
            _log.info(
                "loading tables waits for the stream",
                extra=self._fields(load=load.id, error=error.message),
            )
            return None
        if request is None or request.reason == START:
            raise error
        # What an operator asks for alongside the stream does not stop the stream.
        _log.warning("tables are not loaded", extra=self._fields(load=load.id, error=str(error)))
        return self._broken_off(replace(load, error=str(error)))

    def _stream_end(self, source: SourceTables) -> StreamEnd:
        if self._latest is None:
            return StreamEnd(None, source.now())
        return StreamEnd(self._latest(), 0.0)

    def _fields(self, **values: object) -> dict[str, object]:
        return fields(**self._leadership.fields, **values)


class LoadProgress:
    """Tells a pipeline's `Progress` how far its load has come, and what is left of it."""

    def __init__(self, progress: Progress, tables: ListedTables, throttle: Throttle) -> None:
        """Nothing is known of a load yet.

        Args:
            progress: is reported.
            tables: the source's.
            throttle: knows for what the load waits.
        """
        self._progress = progress
        self._tables = tables
        self._throttle = throttle
        self._outlook = LoadOutlook()

    def expect(self, load: TableLoad, request: LoadRequest | None) -> None:
        """Learn how many rows there are to load, now that the tables are listed."""
        sizes = self._tables.sizes_of(load)
        rows, size = sum(each.rows for each in sizes), sum(each.bytes for each in sizes)
        expected = rows if request is None or not request.where else None
        if request is not None and request.keys:
            expected = len(request.keys)
        row_bytes = size / rows if rows else 0.0
        self._outlook = LoadOutlook(rows_expected=expected, row_bytes=row_bytes)

    def publish(
        self, load: TableLoad, *, tables_left: int | None = None, paused: bool = False
    ) -> None:
        """Tell how far the load has come.

        Args:
            load: the load.
            tables_left: see `LoadOutlook`; likewise the next.
            paused: whether an operator has paused it.
        """
        size = self._tables.size_of(load.table)
        outlook = replace(
            self._outlook,
            table_rows_expected=None if size is None else size.rows,
            tables_left=tables_left,
            paused=paused,
            throttle_count=self._throttle.count,
            waits_for=self._throttle.waits_for,
        )
        self._progress.loads_tables(load, outlook)
