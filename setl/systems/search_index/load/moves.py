"""Documents that a load moves from one routing to another.

Such a move is a delete of an id under one routing and a write of the same id under another, both
of one version. If the two lead to different shards, each has its own version of the id. If they
lead to one shard, the id is one document there, and the write has to come second: whenever the
delete is sent, the write follows it in the same request, of which each shard carries its actions
out in order. So whoever sends them, and how often, the write is the last of the two.

The delete cannot be given a lower version instead. Records on Kafka have versions without a gap,
and the one below is that of the record before: it may be what wrote the document under the old
routing, and a late request of a former leader would write it again there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from setl.model.change import Row, TargetChanges
from setl.systems.search_index.load.ids import document_id

StartPoint = tuple[TargetChanges, int, bool]
"""Which row an action is about: its changes, its number there, and whether it is deleted."""


def may_move(changes: Sequence[TargetChanges]) -> bool:
    """Whether there may be such documents among these changes."""
    return any(change.deletes and _routed(change) for change in changes)


def moves_together(actions: Sequence[StartPoint]) -> list[list[int]]:
    """Which actions of a load are sent in one request, in which order; by their numbers.

    Args:
        actions: what each action is about, in the order in which they would be sent.

    Returns:
        Every number once, alone or with those that it must not be sent without.
    """
    moved = _deleted(actions)
    if not moved:
        return [[number] for number in range(len(actions))]
    versions = {version for _, _, version in moved}
    before: dict[int, list[int]] = {}
    for number, (change, row, delete) in enumerate(actions):
        if delete or not _routed(change) or change.upsert_versions[row] not in versions:
            continue
        key = tuple(change.upserts[row][i] for i in change.key)
        version = change.upsert_versions[row]
        deletes = moved.pop((change.target[1], document_id(key, change.document), version), None)
        if deletes:
            before[number] = deletes
    bound = {number for deletes in before.values() for number in deletes}
    return [[*before.get(n, ()), n] for n in range(len(actions)) if n not in bound]


def _deleted(actions: Sequence[StartPoint]) -> dict[tuple[str, str, int], list[int]]:
    """Deletes of routed documents by index, id and version."""
    found: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for number, (change, row, delete) in enumerate(actions):
        if delete and _routed(change):
            key: Row = change.deletes[row]
            position = change.target[1], document_id(key, change.document)
            found[*position, change.delete_versions[row]].append(number)
    return dict(found)


def _routed(change: TargetChanges) -> bool:
    return change.document is not None and change.document.routing is not None
