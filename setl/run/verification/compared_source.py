"""The source of a comparison: its tables, and the end of its stream."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from setl.bulk.source_reader import SourceTables
from setl.errors import ConfigurationError
from setl.model.position import Position
from setl.model.stream_end import StreamEnd
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline


def compared_tables(pipeline: Pipeline) -> AbstractContextManager[SourceTables]:
    """The tables that a pipeline's target is compared with; entering connects.

    Raises:
        ConfigurationError: the source is a topic without `database`.
    """
    opened = system_of(pipeline.source).tables(logged=pipeline.target.holds_documents)
    if opened is None:
        raise ConfigurationError(
            "a topic has no tables to compare with",
            hint="Name the database of its records: `database:` in the channel file's source",
            pipeline=pipeline.name,
        )
    return opened


def stream_end(pipeline: Pipeline, latest: Callable[[], Position]) -> StreamEnd:
    """The end of a source's stream at this moment; where that lies before its tables, the time.

    Args:
        pipeline: whose source.
        latest: asks for the end of the stream.

    Raises:
        ConfigurationError: see `compared_tables`.
        SetlError: the source does not answer.
    """
    if system_of(pipeline.source).has_end:
        return StreamEnd(latest(), 0.0)
    with compared_tables(pipeline) as source:
        return StreamEnd(None, source.now())
