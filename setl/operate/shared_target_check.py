"""Finds tables and indexes into which several pipelines bring rows of different sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from setl.channel.relations.shared_targets import other_writers
from setl.channel.text.raw import Raw, items, part
from setl.systems.finding import Finding

_FIX: Final = (
    "See that no key is in both, as with a column of the key that says whose row it is; or give"
    " each a target of its own"
)

SHARED_TARGET: Final = "shared-target"
"""What `accept` of a pipeline calls it, see `setl.systems.finding.FOUND_LATER`."""


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
