"""Compares targets with their sources, and names the keys that differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from setl.bulk.comparison import Difference
from setl.bulk.position_waiter import PositionWaiter
from setl.bulk.row_counter import Progress
from setl.bulk.source_side import MappedTable
from setl.bulk.verdict import TableVerdict
from setl.bulk.verify_target import TargetComparison, VerifySettings
from setl.channel.file import Pipeline
from setl.errors import ConfigurationError, SetlError, TransientError
from setl.model.target_name import target_name
from setl.run.verification.compared_targets import mapped_targets, target_reader
from setl.transform.spark_on_demand import SparkOnDemand


def verify_pipeline(
    spark: SparkSession | SparkOnDemand,
    pipeline: Pipeline,
    tables: Sequence[str] | None = None,
    sample: int = 20,
    *,
    settings: VerifySettings | None = None,
    progress: Callable[[str, int], None] | None = None,
    finished: Callable[[TableVerdict], None] | None = None,
    failed: Callable[[str, SetlError], None] | None = None,
    waiter: PositionWaiter | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> list[TableVerdict]:
    """Compare everything that a pipeline keeps in step, one target after another.

    A target that several tables go into is compared with all of them together.

    Args:
        spark: the session; one on demand is not started if servers can do it all.
        pipeline: the pipeline.
        tables: source tables as ``schema.table``; only the targets they go into are compared.
            None for all.
        sample: differing keys to name for each target.
        settings: how thoroughly to look; its `sample` is not used.
        progress: is told a target's name and how many rows were read for it so far, from
            another thread.
        finished: is told each verdict as soon as there is one.
        failed: is told a target that cannot be compared, and why; then the others are compared all
            the same. None raises the error. One that is transient is always raised.
        waiter: tells when the target has what the source has shown; None if nobody can, then
            keys that differ are read again a few times.
        wait: waits for so many seconds, where nobody can.

    Raises:
        ConfigurationError: the source names no database; a table of `tables` or of the mapping
            does not exist; a mapping does not fit its tables.
        SetlError: a side cannot be read, or Spark failed.
    """
    chosen = replace(settings or VerifySettings(), sample=sample)
    verdicts: list[TableVerdict] = []
    for target, sources in mapped_targets(pipeline, tables).items():
        name = target_name(target[:2])
        try:
            mapped = [MappedTable.build(spark, reader, route) for reader, route in sources]
            reader = target_reader(pipeline, target, mapped)
            report = None if progress is None else _for_target(progress, reader.name)
            verdict = TargetComparison(
                spark, mapped, reader, chosen, progress=report, waiter=waiter, wait=wait
            ).compare_all()
        except TransientError:
            raise
        except SetlError as error:
            if failed is None:
                raise
            failed(name, error.at(target=name))
            continue
        verdicts.append(verdict)
        if finished is not None:
            finished(verdict)
    return verdicts


def verify_keys(
    spark: SparkSession | SparkOnDemand,
    pipeline: Pipeline,
    before: TableVerdict,
    differences: Sequence[Difference],
    settings: VerifySettings,
    *,
    waiter: PositionWaiter | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> TableVerdict:
    """Look again at keys of a target that differed; see `TargetComparison.compare_keys`.

    Args:
        spark: see `verify_pipeline`.
        pipeline: likewise.
        before: the comparison in which they differed, of a target that one table goes into.
        differences: the keys.
        settings: how thoroughly to look.
        waiter: see `verify_pipeline`.
        wait: likewise.

    Raises:
        ConfigurationError: the target is not the same any more.
        SetlError: as `verify_pipeline`.
    """
    for target, sources in mapped_targets(pipeline, [before.table]).items():
        mapped = [MappedTable.build(spark, reader, route) for reader, route in sources]
        reader = target_reader(pipeline, target, mapped)
        if reader.name == before.target:
            return TargetComparison(
                spark, mapped, reader, settings, waiter=waiter, wait=wait
            ).compare_keys(differences)
    raise ConfigurationError(
        f"{before.table} does not go into {before.target} any more",
        hint="Compare again",
        pipeline=pipeline.name,
    )


def _for_target(progress: Callable[[str, int], None], name: str) -> Progress:
    return lambda rows: progress(name, rows)
