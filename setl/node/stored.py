"""Reads what the election needs from a stored channel definition.

A definition may have been stored by another release, or be damaged; a node has to take part in
the election all the same, and so has a command that only wants to know who leads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from arbiter.paths import is_name
from arbiter.turns import Preference
from arbiter.values import Channel, PipelineId
from setl.node.roles import LOAD, RELAY


def pipelines_of(channel: Channel) -> list[PipelineId]:
    """The pipelines of a channel, in the order of its file; those with a name, see `nameless`."""
    return [PipelineId(channel.name, name) for name, _ in _named(channel) if is_name(name)]


def pipelines_into(channel: Channel, kind: str) -> list[PipelineId]:
    """Those of `pipelines_of` whose target is of a kind, or says none."""
    kinds = {name: _mapping(raw.get("target")).get("type", kind) for name, raw in _named(channel)}
    return [ident for ident in pipelines_of(channel) if kinds[ident.pipeline] == kind]


def nameless(channel: Channel) -> int:
    """How many of its pipelines have no name that one can have, and so are nobody's to lead."""
    pipelines = channel.definition.get("pipelines")
    number = len(cast("list[Any]", pipelines)) if isinstance(pipelines, list) else 0
    return number - len(pipelines_of(channel))


def preference_of(channel: Channel, pipeline: str) -> Preference:
    """Which nodes a pipeline prefers, and what kind it is.

    It prefers none if it says nothing that can be read, and is of the kind `LOAD` then.
    """
    raw = dict(_named(channel)).get(pipeline, {})
    nodes, target = _mapping(raw.get("nodes")), _mapping(raw.get("target"))
    prefer = nodes.get("prefer")
    return Preference(
        tuple(map(str, cast("list[Any]", prefer))) if isinstance(prefer, list) else (),
        _numbers(_mapping(nodes.get("weights"))),
        needs=RELAY if target.get("type") == "kafka" else LOAD,
    )


def _named(channel: Channel) -> Iterable[tuple[str, Mapping[str, Any]]]:
    pipelines = channel.definition.get("pipelines")
    if not isinstance(pipelines, list):
        return
    for raw in cast("list[Any]", pipelines):
        if isinstance(raw, dict):
            pipeline = cast("dict[str, Any]", raw)
            yield str(pipeline.get("name", "")), pipeline


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _numbers(weights: Mapping[str, Any]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for nid, weight in weights.items():
        try:
            weight_of = float(weight)
        except (TypeError, ValueError, OverflowError):
            continue  # a reference to the environment, which every node could read differently
        if math.isfinite(weight_of):
            numbers[str(nid)] = weight_of
    return numbers
