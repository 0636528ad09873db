"""What a load has done, added to the figures of its pipeline."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from setl.extract.extractor import Extracted
from setl.log import fields
from setl.model.batch import Batch
from setl.model.loaded import Loaded
from setl.run.measured.progress import Progress

_log = logging.getLogger(__name__)


def account_absorbed(
    progress: Progress,
    batch: Batch,
    extracted: Extracted,
    *,
    heartbeat_id: int | None,
    now: float,
    version: Callable[[], int],
) -> None:
    """Count a batch of nothing but heartbeats, as `account` would, for a part of the cost.

    Args:
        progress: the figures.
        batch: the batch.
        extracted: what Extract made of it.
        heartbeat_id: as for `account`.
        now: likewise.
        version: gives that of the batch's end, as `through` there.
    """
    committed_at = batch.checkpoint.timestamp
    lags = [now - seen.written_at for seen in extracted.heartbeats if seen.id == heartbeat_id]
    if heartbeat_id is None and committed_at:
        lags = [now - committed_at]
    progress.absorbed(batch, lags, version)


def account(
    progress: Progress,
    batches: Sequence[Batch],
    extracted: Sequence[Extracted],
    report: Loaded,
    *,
    heartbeat_id: int | None,
    pending: int,
    now: float,
    through: int,
) -> None:
    """Count batches that are acknowledged.

    Args:
        progress: the figures.
        batches: what was loaded together, in order.
        extracted: what Extract made of each of them.
        report: what the load did; all zero if nothing was left to load.
        heartbeat_id: row of ``retl.xdual`` whose writes tell this pipeline's lag; None where
            nothing writes there, and the stream's own times have to do, which are whole seconds.
        pending: batches selected and not yet acknowledged.
        now: seconds since 1970, for the lag of heartbeats.
        through: version of the last batch's end, see `setl.model.position.document_version`.
    """
    resume = batches[-1].checkpoint.resume
    passed = sum(e.counts.echoes_replicated for e in extracted)
    if passed:
        _log.error(
            "transactions of this channel came back and were not dropped: something at the source"
            " changes rows of retl.retl_mark",
            extra=fields(transactions=passed, position=str(resume)),
        )
    progress.add(
        batches=len(batches),
        rows_loopback=sum(e.counts.loopback_rows for e in extracted),
        echoes_dropped=sum(e.counts.echoes_dropped for e in extracted),
        echoes_replicated=passed,
        rows_unmapped=sum(e.counts.unmapped for e in extracted),
    )
    statements = Counter[str]()
    for part in extracted:
        statements.update(part.counts.statements)
    progress.skipped_statements(statements)
    progress.loaded(report)
    # Last of the counts, so that whoever sees that rows are applied sees what became of them.
    progress.applied(report.rows, str(resume), pending)
    committed_at = batches[-1].checkpoint.timestamp
    if heartbeat_id is None and committed_at:
        progress.sample_lag(now - committed_at)
    for part in extracted:
        for seen in part.heartbeats:
            if seen.id == heartbeat_id:
                progress.sample_lag(now - seen.written_at)
    progress.acknowledged(through)
