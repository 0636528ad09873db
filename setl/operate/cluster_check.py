"""Checks of a channel beside the others of its cluster: rings, and targets that several write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from arbiter.arbiter import Arbiter
from setl.channel.relations.rings import of_unknown_database, ring_through
from setl.channel.relations.shared_targets import other_writers
from setl.channel.text.raw import Raw, items, part
from setl.systems.finding import Finding

_FIX: Final = (
    "See that no key is in both, as with a column of the key that says whose row it is; or give"
    " each a target of its own"
)

SHARED_TARGET: Final = "shared-target"
"""What `accept` of a pipeline calls it, see `setl.systems.finding.FOUND_LATER`."""


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


def shared_target_findings(
    definition: Raw, others: Iterable[Raw] = ()
) -> Mapping[str, Sequence[Finding]]:
    """A warning for each entry of a channel's tables that does not write its target alone.

    The two directions of a channel write to different servers, and share nothing.

    Args:
        definition: the channel, as it is stored.
        others: the other channels of the cluster.

    Returns:
        The warnings by the pipeline's name; of those that are not named, none.
    """
    definitions = [definition, *others]
    found: dict[str, list[Finding]] = {}
    for pipeline in map(part, items(definition.get("pipelines"))):
        name, tables = str(pipeline.get("name")), items(pipeline.get("tables"))
        full = f"{definition.get('channel')}/{name}"
        for entry, writers in other_writers(full, definitions).items():
            found.setdefault(name, []).append(_shared(full, part(tables[entry]), writers))
    return found


def _shared(pipeline: str, table: Raw, writers: Sequence[str]) -> Finding:
    reads = str(table.get("from"))
    writes = str(table.get("to") or reads)
    return Finding(
        "warning",
        f"{pipeline} and {' and '.join(writers)} write {writes}, each from another source: where"
        " two rows have the same key, one replaces the other, and a delete of one removes both",
        f"{pipeline.partition('/')[2]}, table {reads}",
        (_FIX,),
        code=SHARED_TARGET,
        location=writes,
    )
