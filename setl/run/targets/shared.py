"""Which other pipelines of the cluster write a target, so that rows there may be theirs."""

from __future__ import annotations

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.values import PipelineId
from setl.channel.file import Pipeline
from setl.channel.relations.shared_targets import other_writers
from setl.channel.routes.routing import Router
from setl.errors import TransientError


def writers_beside(
    arbiter: Arbiter, ident: PipelineId, pipeline: Pipeline, table: str
) -> tuple[str, ...]:
    """The other pipelines that write where the rows of a source table go.

    A row that only the target has may be one of theirs.

    Args:
        arbiter: a session.
        ident: the pipeline.
        pipeline: its part of the channel file.
        table: ``schema.table`` of its source.

    Returns:
        Each as ``channel/pipeline``.

    Raises:
        TransientError: the arbiter does not answer.
    """
    try:
        definitions = [channel.definition for channel in arbiter.channels.all()]
    except ArbiterError as error:
        raise TransientError(f"the other channels are not known: {error}") from error
    by_entry = other_writers(str(ident), definitions)
    if not by_entry:
        return ()
    schema, _, name = table.partition(".")
    routes = Router(pipeline).route(schema, name)
    return tuple(sorted({each for route in routes for each in by_entry.get(route.index, ())}))
