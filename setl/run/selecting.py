"""How a pipeline's source is read, as its channel file describes it."""

from __future__ import annotations

from setl.channel.file import Pipeline
from setl.select.batching import BatchSettings
from setl.select.reader import SelectSettings


def select_settings(pipeline: Pipeline) -> SelectSettings:
    """Sizes of batches, and how many may be unacknowledged."""
    batch = BatchSettings(pipeline.batch_rows, pipeline.batch_bytes, pipeline.batch_wait)
    return SelectSettings(batch, pipeline.window, pipeline.buffer_bytes)
