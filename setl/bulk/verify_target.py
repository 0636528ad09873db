"""Compares one target with everything that goes into it.

Where both servers can compute checksums of the same ranges, they do, and rows are read only in
ranges that differ. Otherwise both sides are read side by side by Spark tasks, source rows are
mapped as the stream maps them, and what the two sides say of each key meets in one shuffle: a
digest, never the row itself.

A pipeline may be running meanwhile: keys that differ are looked at again before they count, see
`setl.bulk.rechecking`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from setl.bulk.checksumming import Summed, SummedTable, compare_checksums
from setl.bulk.checksums import ChecksummedTable, ChecksummedTarget
from setl.bulk.chunks import Chunk, joined_chunks
from setl.bulk.comparison import Comparison, Difference, What
from setl.bulk.comparison_plan import (
    ComparedTable,
    ComparisonPlan,
    plan_comparison,
    plan_ranges,
)
from setl.bulk.position_waiter import Arrival, PositionWaiter, WaitOutcome
from setl.bulk.range_comparison import RangeOutcome
from setl.bulk.rechecking import Look, Rechecked, Rechecking
from setl.bulk.row_counter import Progress, RowCounter
from setl.bulk.source_side import MappedTable
from setl.bulk.target_reader import OrderedTarget, RangedTarget, TargetReader
from setl.bulk.two_sides import TwoSides
from setl.bulk.verdict import TableVerdict
from setl.model.change import Row
from setl.model.schema import Kind
from setl.transform.spark_on_demand import SparkOnDemand

_FINER = 50  # pieces into which a chunk that differs is cut, so that few rows are read
_MOST_FINER = 32  # chunks for which that is worth it

_MAY_HAVE_MOVED = "a row differs, and a processor may have given it the key of another range"
_UNKNOWN = "the position of the pipeline is unknown, so rows were reread only a few times"


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """How thoroughly is looked.

    Attributes:
        sample: differing keys to name for each target.
        rows_per_part: rows of which a server computes one checksum, or that one task reads.
        rechecks: how many times keys that differ are looked at again before they count.
        pause: seconds before each time, where nobody can tell what the target has.
        recheck_keys: how many keys are looked at again at most; those beyond count as they are.
        further_keys: how many of those beyond are remembered, so that a repair can go on with them.
        checksums: whether servers may compute them.
    """

    sample: int = 20
    rows_per_part: int = 50_000
    rechecks: int = 5
    pause: float = 1.0
    recheck_keys: int = 10_000
    further_keys: int = 0
    checksums: bool = True


class TargetComparison:
    """Compares one target with all source tables that go into it; a `RangeComparer`.

    Columns that only the target has are not looked at. What it knows of the tables' columns is of
    the time when it was made.
    """

    def __init__(
        self,
        spark: SparkSession | SparkOnDemand,
        sources: Sequence[MappedTable],
        target: TargetReader,
        settings: VerifySettings = VerifySettings(),
        *,
        progress: Progress | None = None,
        waiter: PositionWaiter | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is read yet.

        Args:
            spark: the session; one on demand is not started if servers can do it all.
            sources: the source tables, at least one.
            target: the target; it is closed at the end.
            settings: how thoroughly to look.
            progress: is told how many rows were read so far, from a thread of its own.
            waiter: tells when the target has what the source has shown; None if nobody can.
            wait: waits for so many seconds, where nobody can.
        """
        self._spark = SparkOnDemand.of(spark)
        self._sources = sources
        self._target = target
        self._settings = settings
        self._progress = progress
        self._waiter = waiter
        self._wait = wait
        self._plan: ComparisonPlan | None = None

    @property
    def name(self) -> str:
        """See `RangeComparer.name`."""
        return self._target.name

    @property
    def table(self) -> str:
        """See `RangeComparer.table`."""
        return ", ".join(source.reader.name for source in self._sources)

    @property
    def whole(self) -> str:
        """See `RangeComparer.whole`."""
        return "" if self._plan is None else self._plan.whole

    def plan(self) -> ComparisonPlan:
        """How it is compared.

        Raises:
            SetlError: a server cannot be asked.
        """
        if self._plan is None:
            self._plan = plan_of(self._sources, self._target)
        return self._plan

    def compare_all(self) -> TableVerdict:
        """Compare every row of both sides.

        Raises:
            SetlError: a side cannot be read, or Spark failed.
        """
        plan, settings = self.plan(), self._settings
        with closing(self._target), RowCounter(self._spark, self._progress) as counter:
            sides = TwoSides(self._spark, self._sources, self._target, counter)
            if plan.by_checksums and settings.checksums:
                there, _ = self._tables()
                chunks = there.chunks(plan.source_cut, settings.rows_per_part)
                found = self._by_checksums(sides, plan, chunks, counter)
            else:
                found = sides.compare_all(
                    settings.rows_per_part, settings.recheck_keys, settings.further_keys
                )
            return self._verdict(sides, found)

    def compare_keys(self, differences: Sequence[Difference]) -> TableVerdict:
        """Look at keys again that differed in a comparison before, and at nothing else.

        Args:
            differences: `TableVerdict.further`, or some of them; so many as are looked at again.

        Returns:
            What differs of them now. Rows are counted under these keys only.

        Raises:
            SetlError: a side cannot be read, or Spark failed.
        """
        found = Comparison(differences=list(differences))
        for difference in differences:
            found.counts[difference.what] += 1
            found.source_rows += difference.source.rows
            found.target_rows += difference.target.rows
        with closing(self._target), RowCounter(self._spark, self._progress) as counter:
            return self._verdict(TwoSides(self._spark, self._sources, self._target, counter), found)

    def compare(self, after: Row | None, rows: int) -> RangeOutcome:
        """See `RangeComparer.compare`."""
        plan, settings = self.plan(), self._settings
        if not plan.source_cut:
            verdict = self.compare_all()
            return RangeOutcome(None, verdict.source_rows, verdict)
        there, here = self._sources[0].reader, self._target
        assert isinstance(there, ChecksummedTable)
        assert isinstance(here, RangedTarget)
        chunk = there.next_chunk(plan.source_cut, after, rows)
        with closing(self._target), RowCounter(self._spark, self._progress) as counter:
            sides = TwoSides(self._spark, self._sources, self._target, counter)
            if plan.by_checksums and settings.checksums:
                found = self._by_checksums(sides, plan, [chunk], counter)
            else:
                parts = [there.part(plan.source_cut, chunk)], [here.part(plan.target_cut, chunk)]
                compares = self._compare_made if plan.keys_may_move else self._compare_read
                found = compares(sides, *parts)
            verdict = None if found is None else self._verdict(sides, found)
        if verdict is None:
            self._plan = ComparisonPlan(why=_MAY_HAVE_MOVED)
            return self.compare(None, rows)
        return RangeOutcome(chunk.high, verdict.source_rows, verdict)

    def _compare_read(self, sides: TwoSides, ours: list[Any], theirs: list[Any]) -> Comparison:
        return sides.compare_parts([ours], theirs, self._settings.recheck_keys)

    def _compare_made(
        self, sides: TwoSides, ours: list[Any], theirs: list[Any]
    ) -> Comparison | None:
        """Compare a range whose rows may be in other ranges of the target.

        If both sides have the same there, and in all other ranges, nothing differs. If they have
        not, only all rows together can tell why.

        Returns:
            Both sides, without a difference; None if something differs in two looks, the target
            having had time to follow in between.
        """
        found = self._compare_read(sides, ours, theirs)
        if not any(found.counts.values()):
            return found
        self._wait_outcome()
        again = self._compare_read(sides, ours, theirs)
        # What is not kept of them may be the same.
        if any(sum(each.counts.values()) > len(each.differences) for each in (found, again)):
            return None
        if {(d.key, d.source, d.target) for d in found.differences} & {
            (d.key, d.source, d.target) for d in again.differences
        }:
            return None
        return Comparison(again.source_rows, again.target_rows, again.merged)

    def _tables(self) -> tuple[ChecksummedTable, ChecksummedTable]:
        """Both tables; where the plan is to compare checksums, they are such."""
        source, target = self._sources[0].reader, self._target
        assert isinstance(source, ChecksummedTable)
        assert isinstance(target, ChecksummedTarget)
        return source, target.reader

    def _by_checksums(
        self, sides: TwoSides, plan: ComparisonPlan, chunks: Sequence[Chunk], counter: RowCounter
    ) -> Comparison:
        summed = self._sum(plan, chunks, counter)
        differing, equal_rows = summed.differing, summed.equal_rows
        if differing and len(differing) <= _MOST_FINER:
            size = max(1, self._settings.rows_per_part // _FINER)
            there, _ = self._tables()
            finer = [
                piece for chunk in differing for piece in there.chunks(plan.source_cut, size, chunk)
            ]
            summed = self._sum(plan, finer, counter)
            differing = joined_chunks(summed.differing, _FINER)
            equal_rows += summed.equal_rows
        found = Comparison()
        if differing:
            there, here = self._tables()
            found = sides.compare_parts(
                [[there.part(plan.source_cut, chunk) for chunk in differing]],
                [here.part(plan.target_cut, chunk) for chunk in differing],
                self._settings.recheck_keys,
                self._settings.further_keys,
            )
        found.source_rows += equal_rows
        found.target_rows += equal_rows
        return found

    def _sum(self, plan: ComparisonPlan, chunks: Sequence[Chunk], counter: RowCounter) -> Summed:
        there, here = self._tables()
        return compare_checksums(
            SummedTable(there, plan.source, plan.source_cut),
            SummedTable(here, plan.target, plan.target_cut),
            chunks,
            counter.add,
        )

    def _verdict(self, sides: TwoSides, first: Comparison) -> TableVerdict:
        settings = self._settings
        known = sorted(first.differences, key=_order)
        remaining, beyond = known[: settings.recheck_keys], known[settings.recheck_keys :]
        rechecked, note = self._recheck(sides, remaining)
        different = sorted(rechecked.different, key=_order)
        undecided = sorted(rechecked.undecided, key=_order)
        counts = dict(first.counts)
        for difference in remaining:
            counts[difference.what] -= 1
        for difference in different:
            counts[difference.what] += 1
        return TableVerdict(
            table=self.table,
            target=self._target.name,
            source_rows=first.source_rows + rechecked.more_source_rows,
            target_rows=first.target_rows + rechecked.more_target_rows,
            missing=counts[What.MISSING],
            extra=counts[What.EXTRA],
            different=counts[What.DIFFERENT],
            merged=first.merged + rechecked.more_merged,
            caught_up=rechecked.caught_up,
            undecided=len(undecided),
            sample_keys=tuple(sides.explain(different[: settings.sample])),
            undecided_keys=tuple(sides.named(undecided[: settings.sample])),
            note=note if any(counts.values()) else "",
            differing=sides.differing(different, undecided),
            further=tuple(beyond[: settings.further_keys]),
        )

    def _recheck(self, sides: TwoSides, remaining: Sequence[Difference]) -> tuple[Rechecked, str]:
        """What becomes of keys that differ, and why nobody can be sure, "" if one can.

        Of a row of the source that is not found by its key nobody can tell where it has gone.
        """
        lost: list[Difference] = []
        found: list[Difference] = []
        for each in remaining:
            (lost if each.source.rows and not sides.is_found(each) else found).append(each)
        rechecked, note = self._look_again(sides, found)
        rechecked.different += lost
        return rechecked, note

    def _look_again(
        self, sides: TwoSides, remaining: Sequence[Difference]
    ) -> tuple[Rechecked, str]:
        rechecking = Rechecking(remaining, sides.merging)
        # A processor may give rows other keys, by which they are not found at the source.
        processed = any(source.route.processor for source in self._sources)
        if processed or not remaining or not self._settings.rechecks:
            return rechecking.end(), ""
        before = sides.source_of(rechecking.pending)
        arrival = Arrival(WaitOutcome.CAUGHT_UP)
        for _ in range(self._settings.rechecks):
            arrival = self._wait_outcome()
            target = sides.target_of(rechecking.pending)
            # The target may have what the source's tables do not show yet.
            end = None if self._waiter is None else self._waiter.end()
            after = sides.source_of(rechecking.pending, None if end is None else end.position)
            rechecking.look(Look(before, target, after, arrival.wait_outcome))
            if not rechecking.pending or arrival.wait_outcome is WaitOutcome.LATE:
                break
            before = after
        return rechecking.end(), arrival.why

    def _wait_outcome(self) -> Arrival:
        """Wait until the target has what the source has shown so far, or may have it."""
        end = None if self._waiter is None else self._waiter.end()
        if self._waiter is None or end is None:
            self._wait(self._settings.pause)
            return Arrival(WaitOutcome.UNKNOWN, _UNKNOWN)
        return self._waiter.wait(end)


def plan_of(sources: Sequence[MappedTable], target: TargetReader) -> ComparisonPlan:
    """How a target is compared with its sources.

    Raises:
        SetlError: a server cannot be asked.
    """
    if len(sources) != 1:
        return ComparisonPlan(why="several tables come together")
    source = sources[0]
    there = source.reader
    if not isinstance(there, ChecksummedTable):
        return ComparisonPlan(why="the source computes no checksums")
    if not isinstance(target, ChecksummedTarget):
        if not isinstance(target, OrderedTarget):
            return ComparisonPlan(why="the target cannot be read in ranges")
        return plan_ranges(source.route, source.columns, there.schema, target.ordered)
    here = target.reader
    textual = any(there.schema.columns[i].kind is Kind.TEXT for i in there.schema.key)
    orders = (there.text_order(), here.text_order()) if textual else ("", "")
    return plan_comparison(
        source.route,
        source.columns,
        ComparedTable(there.schema, orders[0]),
        ComparedTable(here.schema, orders[1]),
        target.shape.names,
    )


def _order(difference: Difference) -> tuple[int, str]:
    """Short keys first, which brings positive numbers into their order."""
    return len(difference.key), difference.key
