"""How a pipeline's source is read, as its channel file describes it."""

from __future__ import annotations

from collections.abc import Callable

from setl.channel.file import Pipeline
from setl.extract.statements import SkippedStatements
from setl.select.batching import BatchSettings
from setl.select.reader import SelectSettings
from setl.systems.finding import accepting
from setl.systems.port import SourceSystem, StatementSource


def select_settings(pipeline: Pipeline) -> SelectSettings:
    """Sizes of batches, and how many may be unacknowledged."""
    batch = BatchSettings(pipeline.batch_rows, pipeline.batch_bytes, pipeline.batch_wait)
    return SelectSettings(batch, pipeline.window, pipeline.buffer_bytes)


def skipped_statements(
    pipeline: Pipeline, origin: SourceSystem, is_mapped: Callable[[str, str], bool]
) -> SkippedStatements:
    """What decides about statements that a source logged instead of rows.

    Nothing is asked yet.

    Args:
        pipeline: the pipeline.
        origin: its source.
        is_mapped: whether rows of a table go anywhere.
    """
    return SkippedStatements(
        is_mapped,
        lambda name: bool(accepting(pipeline.accept, name)),
        origin.statement_effects() if isinstance(origin, StatementSource) else None,
    )
