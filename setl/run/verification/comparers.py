"""What compares the targets of a pipeline, made when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from setl.bulk.position_waiter import PositionWaiter
from setl.bulk.range_comparison import RangeComparer, RangeOutcome
from setl.bulk.source_side import MappedTable
from setl.bulk.verify_target import TargetComparison, VerifySettings
from setl.channel.file import Pipeline
from setl.model.change import Row
from setl.model.target_name import target_name
from setl.run.verification.compared_targets import Sources, mapped_targets, target_reader
from setl.transform.spark_on_demand import SparkOnDemand

# Ranges are small, so every key of one that differs can be looked at again. So are the parts that
# tasks read: the stream's tasks come between any two of them.
_SETTINGS = VerifySettings(sample=100, rows_per_part=5_000, recheck_keys=100_000)


def standing_comparers(
    spark: SparkOnDemand,
    pipeline: Pipeline,
    waiter: PositionWaiter,
    settings: VerifySettings = _SETTINGS,
) -> list[RangeComparer]:
    """What compares each target of a pipeline with what goes into it, as the tables are now.

    A target that is missing, or does not fit, is noticed when it is compared, and so keeps none of
    the others from that.

    Args:
        spark: where jobs run.
        pipeline: the pipeline, its references resolved.
        waiter: tells when the target has what the source has shown.
        settings: how thoroughly to look.

    Raises:
        ConfigurationError: the source names no database, or lacks a mapped table.
        SetlError: the source does not answer.
    """
    return [
        LazyComparer(
            target_name(target[:2]),
            ", ".join(reader.name for reader, _ in sources),
            partial(
                _comparison, spark, pipeline, target, sources, waiter=waiter, settings=settings
            ),
        )
        for target, sources in mapped_targets(pipeline).items()
    ]


class LazyComparer:
    """See `RangeComparer`; learns of the target with the first range."""

    def __init__(self, name: str, table: str, make: Callable[[], RangeComparer]) -> None:
        """Nothing is asked yet.

        Args:
            name: the target.
            table: the source tables.
            make: makes what compares them; raises SetlError.
        """
        self.name = name
        self.table = table
        self._make = make
        self._made: RangeComparer | None = None

    @property
    def whole(self) -> str:
        """See `RangeComparer.whole`."""
        return "" if self._made is None else self._made.whole

    def compare(self, after: Row | None, rows: int) -> RangeOutcome:
        """See `RangeComparer.compare`."""
        if self._made is None:
            self._made = self._make()
        return self._made.compare(after, rows)


def _comparison(
    spark: SparkOnDemand,
    pipeline: Pipeline,
    target: Sequence[str],
    sources: Sources,
    *,
    waiter: PositionWaiter,
    settings: VerifySettings,
) -> RangeComparer:
    mapped = [MappedTable.build(spark, reader, route) for reader, route in sources]
    reader = target_reader(pipeline, tuple(target), mapped)
    return TargetComparison(spark, mapped, reader, settings, waiter=waiter)
