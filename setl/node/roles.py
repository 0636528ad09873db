"""The kinds of pipelines, and the command whose processes lead each of them."""

from __future__ import annotations

from collections.abc import Iterable

from arbiter.turns import Preference
from arbiter.values import NodeInfo

LOAD = "load"
"""Transforms and loads, on Spark: its target is MySQL or Elasticsearch."""

RELAY = "relay"
"""Writes DTS records to Kafka, without Spark."""

_COMMANDS = {LOAD: "setl node", RELAY: "setl relay"}


def unserved(preference: Preference, nodes: Iterable[NodeInfo]) -> str:
    """What is missing if no live node is able to lead a pipeline, as the end of a sentence.

    Args:
        preference: the pipeline's.
        nodes: the live nodes.

    Returns:
        "" if one is able to, whether or not it is warm or its weight is 0.
    """
    if any(preference.served_by(node.serves) for node in nodes):
        return ""
    command = _COMMANDS.get(preference.needs, _COMMANDS[LOAD])
    return f"needs a `{command}` process; none is running"
