"""How a pipeline's source is read, as its channel file describes it."""

from __future__ import annotations

from setl.channel.file import MysqlSource, Pipeline
from setl.select.batching import BatchSettings
from setl.select.identity import heartbeat_id
from setl.select.reader import SelectSettings
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.heartbeat import Heartbeat


def select_settings(pipeline: Pipeline) -> SelectSettings:
    """Sizes of batches, and how many may be unacknowledged."""
    batch = BatchSettings(pipeline.batch_rows, pipeline.batch_bytes, pipeline.batch_wait)
    return SelectSettings(batch, pipeline.window, pipeline.buffer_bytes)


def heartbeat_of(pipeline: Pipeline, channel: str) -> Heartbeat | None:
    """What writes to ``retl.xdual`` of the source, None if nothing does."""
    source = pipeline.source
    if not isinstance(source, MysqlSource) or not source.heartbeat:
        return None
    return Heartbeat(
        mysql_endpoint(source),
        heartbeat_id(channel, pipeline.name),
        interval=source.heartbeat,
        name=f"{channel}/{pipeline.name}",
    )
