"""Checks whether a channel forms a ring with others of its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arbiter.arbiter import Arbiter
from setl.channel.relations.rings import of_unknown_database, ring_through
from setl.systems.finding import Finding


def other_channels(arbiter: Arbiter, name: str) -> list[Mapping[str, Any]]:
    """The definitions of all channels of the cluster but one."""
    return [other.definition for other in arbiter.channels.all() if other.name != name]


def ring_findings(
    definition: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> list[Finding]:
    """An error if changes would go round, a warning for each pipeline that may hide it.

    Args:
        definition: the channel, as it is stored.
        others: the other channels of the cluster.
    """
    where = f"channel {definition['channel']}"
    ring = ring_through(definition, others)
    if ring is not None:
        way = ", ".join(map(str, ring))
        what = f"a change would go round for ever: {way}, and again"
        hint = "Leave out one of these pipelines, or these tables in one of them"
        return [Finding("error", what, where, (hint,), code="ring")]
    return [
        Finding(
            "warning",
            f"nothing says what server {pipeline} reads, so changes may go round unseen",
            where,
            ("Name the `database` of its source",),
            code="ring-unknown-database",
        )
        for pipeline in of_unknown_database(definition, others)
    ]
