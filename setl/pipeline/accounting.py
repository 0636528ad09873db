"""What a load has done, added to the figures of its pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from setl.extract.extractor import Extracted
from setl.model.batch import Batch
from setl.pipeline.job import LoadReport
from setl.pipeline.parts import RunParts
from setl.pipeline.progress import Progress, RunState


def account(
    progress: Progress,
    parts: RunParts,
    batches: Sequence[Batch],
    extracted: Sequence[Extracted],
    report: LoadReport,
    *,
    now: float,
    through: int,
) -> None:
    """Count batches that are acknowledged.

    Args:
        progress: the figures.
        parts: the run's parts.
        batches: what was loaded together, in order.
        extracted: what Extract made of each of them.
        report: what the load did; all zero if nothing was left to load.
        now: seconds since 1970, for the lag of heartbeats.
        through: version of the last batch's end, see `setl.model.position.document_version`.
    """
    resume = batches[-1].checkpoint.resume
    progress.applied(report.rows, str(resume), parts.select.status().unacked)
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
    for part in extracted:
        for seen in part.heartbeats:
            if seen.id == parts.heartbeat_id:
                progress.sample_lag(now - seen.written_at)
    progress.enter_if(RunState.RETRYING, RunState.RUNNING)
    progress.succeeded()
    progress.acknowledged(through)
