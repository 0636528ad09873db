"""The kinds of pipelines, and the command whose processes lead each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arbiter.turns import Preference
from arbiter.values import NodeInfo, PipelineId

LOAD = "load"
"""Transforms and loads, on Spark: its target is MySQL or Elasticsearch."""

RELAY = "relay"
"""Writes DTS records to Kafka, without Spark."""

_COMMANDS = {LOAD: "setl node", RELAY: "setl relay"}


def unserved(
    preference: Preference, nodes: Iterable[NodeInfo], pipeline: PipelineId | None = None
) -> str:
    """What is missing if no live node is able to lead a pipeline, as the end of a sentence.

    Args:
        preference: the pipeline's.
        nodes: the live nodes.
        pipeline: its name, to see what nodes lack for it.

    Returns:
        "" if one is able to, whether or not it is warm or its weight is 0.
    """
    serving = [node for node in nodes if preference.served_by(node.serves)]
    if serving:
        return _lacked(serving, pipeline)
    command = _COMMANDS.get(preference.needs, _COMMANDS[LOAD])
    return f"needs a `{command}` process; none is running"


def hopeless(preference: Preference, nodes: Iterable[NodeInfo], pipeline: PipelineId) -> bool:
    """Whether there are live nodes for a pipeline, and each of them lacks something for it."""
    serving = [node for node in nodes if preference.served_by(node.serves)]
    return bool(serving and _lacked(serving, pipeline))


def _lacked(serving: Sequence[NodeInfo], pipeline: PipelineId | None) -> str:
    """What each of the nodes lacks; "" if one of them lacks nothing."""
    whys = [(node.nid, node.not_ready.get(pipeline, "")) for node in serving] if pipeline else []
    if not whys or not all(why for _, why in whys):
        return ""
    return "has no node that can lead it: " + "; ".join(f"{nid}: {why}" for nid, why in whys)
