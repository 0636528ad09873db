"""Standing verification: the leader compares its tables with their targets while it runs.

It has a thread and connections of its own, and is throttled by everything else: to the stream, to
loads of tables, to a run that is in trouble. It writes nothing into the target. What it repairs, it
asks of the run by load requests, as an operator would. So a leader whose leadership is over may end
at once: what its verification still reads changes nothing.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace

from setl.bulk.comparison import What
from setl.bulk.position_waiter import PositionWaiter
from setl.bulk.range_comparison import RangeComparer, RangeOutcome
from setl.bulk.repair import Repair, repair_of
from setl.bulk.source_reader import SourceTables
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.fields.standing_verification import StandingVerification
from setl.clock import Clock
from setl.counting import count
from setl.errors import ConfigurationError, FencedError, SetlError, TransientError, unexpected
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.position import Position
from setl.model.standing import TableFinding, Verification
from setl.model.stream_end import StreamEnd
from setl.run.backoff import Backoff
from setl.run.loads.size import LoadSize
from setl.run.measured.figures import Figures, VerifiedSoFar
from setl.run.measured.progress import Progress
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.verification import course
from setl.run.verification.course import Name
from setl.run.verification.figures import reason_to_wait, verification_figures
from setl.run.verification.log_lines import VerificationLog
from setl.run.verification.position_waiter import RunPositionWaiter
from setl.run.verification.range_comparison import ComparedRange, RangeComparison
from setl.run.verification.store import StoredVerification

REPAIRED_BY = "standing verification"
"""Who asks for repairs, in the list of load requests."""

_LOOK_SECONDS = 1.0  # after which it is seen again whether to are throttled
_LAG = 5.0  # seconds behind, above which nothing is compared if the channel file says nothing
_DOUBT_SECONDS = 2.0  # after which a range that differs is compared once more, before it counts
_REPAIR_SECONDS = 0.5  # after which it is seen whether a repair is done
_SAVE_SECONDS = 5.0  # between two writes of how far it is
_LONGEST_BACKOFF = 60.0
_FAILURES = 5  # at one place, after which the table is left out of the pass
_RANGE_SECONDS = 2.0  # what a range should take
_RANGE_ROWS = 50_000  # of a range, however quick it is
_FIRST_ROWS = 2_000
_LEAST_ROWS = 1_000  # fewer cost as much as these
_COMES_BACK = (What.MISSING, What.DIFFERENT)
_NAMED_WHOLE = 100  # targets
_PACE_SECONDS = 5.0  # that a range takes with the pause after it, if it is not of the least rows


@dataclass(slots=True)
class _Current:
    """How far verification is, and what of that is stored."""

    state: Verification
    stored: Verification
    at: float  # monotonic
    comparers: dict[Name, RangeComparer] = field(default_factory=dict[Name, RangeComparer])


class Verifier:
    """The standing verification of one leadership.

    Order: `start` once, then `stop`; both return at once and may be called from any thread, so
    that it never holds up a run that ends (I3). Idempotence: `stop` may be called again, and
    without `start`. Crash: it stores what the next leader needs.
    """

    def __init__(
        self,
        leadership: Leadership,
        progress: Progress,
        clock: Clock,
        *,
        settings: StandingVerification,
        limits: LoadLimits,
        comparers: Callable[[PositionWaiter], Sequence[RangeComparer]],
        end: Callable[[], StreamEnd],
        passed: Callable[[Position, Position], bool],
        tables: Callable[[], AbstractContextManager[SourceTables] | None],
        requests: StoredLoadRequests,
        look_at_loads: Callable[[], None],
        store: StoredVerification,
        opposite: Callable[[threading.Event], None] | None = None,
        others_writing: Callable[[str], Sequence[str]] = lambda _: (),
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            leadership: on whose behalf.
            progress: is told how it does, and tells how the run does.
            clock: for all times.
            settings: what the channel file says of it.
            limits: what it is throttled by, as loads are.
            comparers: gives what compares each target with what goes into it, as the tables are
                now; see `setl.run.verification.comparers.standing_comparers`.
            end: asks for the end of the source's stream; raises SetlError.
            passed: see `SourceSystem.passed`.
            tables: opens the tables of the source; gives None if nobody can read them.
            requests: take the repairs.
            look_at_loads: tells the run that there are new requests.
            store: stores how far it is.
            opposite: waits until the other direction has brought what the target has, see
                `Opposite`; None where there is none.
            others_writing: names the other pipelines that write where the rows of a source table
                go, by ``schema.table``; raises SetlError.
            cancel: ends what compares just now, as soon as can be; from any thread.
        """
        self._settings = settings
        self._limits = limits
        self._comparers = comparers
        self._end = end
        self._passed = passed
        self._tables = tables
        self._requests = requests
        self._look_at_loads = look_at_loads
        self._store = store
        self._opposite = opposite
        self._others_writing = others_writing
        self._cancel = cancel
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._stopping = threading.Event()
        self._reached: Callable[[], Checkpoint | None] = lambda: None
        self._current: _Current | None = None
        self._counters = VerifiedSoFar()
        self._size = LoadSize(_RANGE_ROWS, seconds=_RANGE_SECONDS, first=_FIRST_ROWS)
        self._backoff = Backoff(
            random.Random(),  # noqa: S311 - jitter is no secret
            first=1.0,
            longest=_LONGEST_BACKOFF,
        )
        self._log = VerificationLog(leadership)
        self._ranges = RangeComparison(opposite, self._stopping, clock)
        self._error = ""
        self._whole: dict[str, str] = {}
        self._waits_for = ""
        self._at_range = False  # whether what is done now is to compare
        self._thread = threading.Thread(
            target=self._work, name=f"verify-{leadership.key}", daemon=True
        )

    def start(self, reached: Callable[[], Checkpoint | None]) -> None:
        """Begin.

        Args:
            reached: up to where everything is applied; is asked from another thread.
        """
        self._reached = reached
        self._thread.start()

    def stop(self) -> None:
        """Compare nothing more; what is just being read may be read to its end."""
        if not self._stopping.is_set():
            self._stopping.set()
            # A JVM that hangs must not hold up the caller.
            threading.Thread(target=self._cancel, name="verify-end", daemon=True).start()

    def join(self, seconds: float) -> bool:
        """Wait until it has ended, at most so long; returns whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # -- the thread -------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                pause = self.step()
                self._stopping.wait(pause)
        except FencedError as error:
            self._log.is_over(str(error))
        else:
            with suppress(SetlError):
                self._keep(0.0)

    def step(self) -> float:
        """Do what is next; returns the seconds after which to come again.

        Raises:
            FencedError: a newer leadership verifies.
        """
        self._at_range = False
        try:
            pause = self._next()
            self._keep(_SAVE_SECONDS)
        except FencedError:
            raise
        except SetlError as error:
            pause = self._failed(error)
        except Exception as error:  # noqa: BLE001 - a defect in it must not look like an end of it
            self._log.failed_unexpectedly()
            pause = self._failed(TransientError(unexpected(error)))
        self._publish()
        return pause

    def _next(self) -> float:
        current = self._current
        if current is None:
            state = self._store.load()
            current = self._current = _Current(state, state, self._clock.monotonic())
        self._waits_for = self._throttled_by(self._progress.figures())
        if self._waits_for:
            return _LOOK_SECONDS
        state, now = current.state, self._clock.now()
        left = course.seconds_left(state, self._settings.every, now)
        if left:
            current.comparers = {}
            return min(left, _LOOK_SECONDS)
        if state.repair is not None and self._is_repairing(state.repair.requests):
            return _REPAIR_SECONDS
        if not (state.under_way and current.comparers):
            self._prepare(current)
        if current.state.position is None:
            self._log.ended(current.state)
            return 0.0
        return self._compare(current)

    def _prepare(self, current: _Current) -> None:
        """Begin a pass, or go on with one that another leadership has begun, or that failed."""
        current.comparers = {
            Name(each.table, each.name): each for each in self._comparers(self._waiter())
        }
        names, now = tuple(current.comparers), self._clock.now()
        if current.state.under_way:
            current.state = course.on_the_way(current.state, names, now)
        else:
            current.state = course.begun(current.state, names, self._expected(names), now)
            self._log.begins(current.state)

    def _waiter(self) -> RunPositionWaiter:
        return RunPositionWaiter(
            end=self._end,
            passed=self._passed,
            reached=self._reached,
            stopping=self._stopping,
            clock=self._clock,
        )

    def _expected(self, names: Sequence[Name]) -> int | None:
        opened = self._tables()
        if opened is None:
            return None
        with opened as source:
            rows = {".".join(name): size.rows for name, size in source.sizes().items()}
        return sum(rows.get(table, 0) for name in names for table in name.table.split(", "))

    def _throttled_by(self, figures: Figures) -> str:
        """What verification is throttled by now, for people; "" if by nothing.

        May ask the source, and raises SetlError if that does not answer.
        """
        limits = self._limits
        reason = reason_to_wait(figures, limits.lag or _LAG)
        if reason or limits.threads_running is None:
            return reason
        opened = self._tables()
        if opened is None:
            return ""
        with opened as source:
            busy = source.busy()
        too_many = busy > limits.threads_running
        return f"the source carries out {count(busy, 'statement')}" if too_many else ""

    def _is_repairing(self, requests: Sequence[str]) -> bool:
        waiting = {request.id for request in self._requests.unanswered()}
        return bool(waiting & set(requests))

    # -- a range ----------------------------------------------------------------------------

    def _compare(self, current: _Current) -> float:
        state = current.state
        position, repair = state.position, state.repair
        assert position is not None
        size = repair.size if repair else self._rows
        name, self._at_range = Name(position.table, position.target), True
        compared_range = self._ranges.look(current.comparers[name], position.after, size)
        self._at_range = False
        if self._stopping.is_set():
            return 0.0
        outcome, pause = compared_range.outcome, self._pause(compared_range)
        self._size.loaded(outcome.rows, compared_range.seconds)
        self._recovered()
        self._note_whole(current.comparers[name])
        self._count(rows=outcome.rows)
        if not compared_range.sure:
            return max(_DOUBT_SECONDS, pause)
        finding = course.found_in(name, outcome.verdict, self._clock.now())
        if repair is None and finding.differences:
            if not position.warned:  # one line a table and pass; status and metrics have the rest
                current.state = course.warned(current.state)
                self._log.differs(state.now.number, finding)
            asked = self._repair(current, outcome, size, finding)
            if asked is not None:
                current.state = asked
                return max(_REPAIR_SECONDS, pause)
        before = state.now
        current.state = course.compared(
            current.state, outcome, finding, tuple(current.comparers), self._clock.now()
        )
        self._count(
            found=0 if repair else finding.differences,
            repaired=current.state.now.repaired - before.repaired,
        )
        if not current.state.under_way:
            self._log.ended(current.state)
        return pause

    def _note_whole(self, comparer: RangeComparer) -> None:
        """Remember, and say once, that a target cannot be compared in ranges."""
        why, known = comparer.whole, self._whole.pop(comparer.name, "")
        if not why:
            return
        if not known:
            self._log.compared_whole(comparer)
        if len(self._whole) < _NAMED_WHOLE:
            self._whole[comparer.name] = why

    def _pause(self, compared_range: ComparedRange) -> float:
        return course.pause_after(
            compared_range.outcome.rows, compared_range.seconds, self._settings.rate
        )

    @property
    def _rows(self) -> int:
        """Rows of the next range: as many as are quick, and not those of a long pause."""
        paced = int(self._settings.rate * _PACE_SECONDS)
        return min(self._size.rows, max(_LEAST_ROWS, paced))

    def _count(self, rows: int = 0, found: int = 0, repaired: int = 0) -> None:
        counters = self._counters
        self._counters = VerifiedSoFar(
            counters.rows + rows, counters.found + found, counters.repaired + repaired
        )

    def _repair(
        self, current: _Current, outcome: RangeOutcome, size: int, finding: TableFinding
    ) -> Verification | None:
        """Have what differs sent again; None if nothing is repaired."""
        settings, state = self._settings, current.state
        if not settings.repair or state.repairs_no_more:
            return None
        # Where both sites write, nobody says whether a row is gone or has not come yet. It comes
        # back by the other direction, which finds it missing; see docs/pages/verify.md.
        # Where other pipelines write as well, it may be a row of theirs.
        keeps = self._opposite is not None or self._others_writing(outcome.verdict.table)
        only = _COMES_BACK if keeps else tuple(What)
        repair = repair_of(outcome.verdict, REPAIRED_BY, self._clock.now(), only)
        if not repair.keys:
            return None
        if state.asked + repair.keys > settings.repair_limit:
            current.state = replace(state, repairs_no_more=True)
            self._log.repairs_no_more(state)
            return None
        requests = self._ask(repair)
        self._count(found=finding.differences)
        self._log.repairs(repair, requests)
        return course.to_repair(state, requests, repair.keys, size, finding)

    def _ask(self, repair: Repair) -> list[str]:
        asked = [self._requests.add(request).id for request in repair.requests]
        self._look_at_loads()
        return asked

    # -- what goes wrong --------------------------------------------------------------------

    def _failed(self, error: SetlError) -> float:
        """Note an error, and leave a table out that fails again and again."""
        if self._stopping.is_set():
            return 0.0
        first, self._error = not self._error, error.text
        if first:
            self._log.fails(str(error))
        current = self._current
        if current is not None:
            names, position = tuple(current.comparers), current.state.position
            self._ranges.forget()
            current.comparers = {}  # what they know of the tables may be of the past
            if self._at_range and position is not None:
                current.state = course.failed(current.state)
                if position.failures + 1 >= _FAILURES:
                    self._leave_out(current, names, error.text)
        return self._backoff.failed()

    def _leave_out(self, current: _Current, names: Sequence[Name], error: str) -> None:
        position = current.state.position
        assert position is not None
        self._log.left_out(position, error)
        current.state = course.left_out(current.state, error, names, self._clock.now())
        self._error = ""  # it stands with the table, and says nothing of the others
        self._backoff.succeeded()
        if not current.state.under_way:
            self._log.ended(current.state)

    def _recovered(self) -> None:
        if self._error:
            self._error = ""
            self._backoff.succeeded()
            self._log.goes_on()

    # -- what is kept and told --------------------------------------------------------------

    def _keep(self, interval: float) -> None:
        current = self._current
        if current is None or current.state == current.stored:
            return
        now = self._clock.monotonic()
        if now - current.at < interval:
            return
        current.at = now
        state = replace(current.state, epoch=self._leadership.epoch)
        try:
            self._store.store(state)
        except TypeError as error:
            raise ConfigurationError(f"its position cannot be kept: {error}") from error
        current.stored = current.state

    def _publish(self) -> None:
        if self._stopping.is_set():
            return
        current = self._current
        state = current.state if current is not None else Verification()
        self._progress.verifies(
            verification_figures(
                state,
                self._settings.every,
                self._clock.now(),
                waits_for=self._waits_for,
                error=self._error,
                whole=self._whole,
                counters=self._counters,
            )
        )
