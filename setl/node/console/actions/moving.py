"""Moving a stopped pipeline to another position of its source, from the console."""

from __future__ import annotations

from arbiter.requests import Refused
from arbiter.values import PipelineId
from setl.channel.file import Pipeline
from setl.channel.reading import resolve_and_parse
from setl.node.console.actions.context import ActionContext, Fields, Preview, pipeline_of
from setl.operate import questions
from setl.operate.positions.reposition import (
    PlannedMove,
    checkpoint_words,
    exact_position,
    move,
    objection_to_move,
    plan_move,
)
from setl.systems.registry import system_of


def look(context: ActionContext, name: str, fields: Fields) -> Preview:
    """Find the position at the source; the form that confirms asks for exactly what was found."""
    ident = pipeline_of(name)
    planned = _planned(context, ident, _config(context, ident), fields)
    lines = [questions.before_move(ident, planned.found), planned.words]
    if planned.damage:
        lines.append(f"{planned.damage}; it will be written over.")
    lines.append(
        "Forward: changes in between are never applied. Back: they are applied again. Run a"
        " verification afterwards."
    )
    return Preview("\n".join(lines), {"to": exact_position(planned.found)})


def reset(context: ActionContext, name: str, fields: Fields) -> str:
    """Move it; the position is checked at the source once more."""
    ident = pipeline_of(name)
    config = _config(context, ident)
    found = _planned(context, ident, config, fields).found
    moved = move(config, ident, found, arbiter=context.arbiter, nid=_nid(context))
    return f"{ident}: moved to {checkpoint_words(moved.after)}"


def _planned(
    context: ActionContext, ident: PipelineId, config: Pipeline, fields: Fields
) -> PlannedMove:
    why = objection_to_move(context.arbiter.facts(), ident)
    if why:
        raise Refused(f"reset of {ident} refused: {why}")
    start_point = system_of(config.source).parse_start_point(fields.get("to", ""))
    return plan_move(config, ident, start_point, arbiter=context.arbiter, nid=_nid(context))


def _config(context: ActionContext, ident: PipelineId) -> Pipeline:
    definition = context.arbiter.channels.one(ident.channel).definition
    return resolve_and_parse(definition, context.environment).pipeline(ident.pipeline)


def _nid(context: ActionContext) -> str:
    """As whom this appears: a name that no node has."""
    return f"position-reset.{context.nid}"
