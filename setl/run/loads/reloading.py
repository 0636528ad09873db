"""Dead letters as what a load takes: work for Transform, and rows that are transformed already."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import NamedTuple

from setl.channel.routes.routing import Route, Router
from setl.errors import FatalError
from setl.load.deadletters.dead_letter import DeadLetter
from setl.model.change import DecodedRows, TargetChanges
from setl.model.faulty import RawRecord, SourceChange, TargetRow
from setl.model.target_name import target_name
from setl.transform.isolating import number_in_record
from setl.transform.partition import Partition
from setl.transform.work import WorkItem


class Reload(NamedTuple):
    """What the dead letters of one load hold.

    Attributes:
        items: work for Transform in stream order, with the names and routes of its table.
        ready: the pickled share of rows that need no Transform, None if there are none.
        targets: where all of it goes.
    """

    items: list[tuple[WorkItem, tuple[Route, ...]]]
    ready: bytes | None
    targets: frozenset[tuple[str, str]]


def reload_of(letters: Sequence[DeadLetter], router: Router, codec: str) -> Reload:
    """What dead letters hold, in stream order.

    Args:
        letters: the letters.
        router: the pipeline's routes.
        codec: name of the pipeline's codec.

    Raises:
        FatalError: a letter cannot be loaded any more, as the pipeline is now.
    """
    items: list[tuple[WorkItem, tuple[Route, ...]]] = []
    ready: list[TargetChanges] = []
    for letter in sorted(letters, key=lambda letter: letter.version):
        content = letter.content
        if isinstance(content, TargetRow):
            ready.append(_row(content, letter))
        else:
            items.append(_item(content, letter, router, codec))
    partition = pickle.dumps(Partition(ready), protocol=5) if ready else None
    targets = {change.target for change in ready} | {r.target for _, rs in items for r in rs}
    return Reload(items, partition, frozenset(targets))


def _row(content: TargetRow, letter: DeadLetter) -> TargetChanges:
    row, versions = [content.values], [letter.version]
    return TargetChanges(
        content.target,
        content.columns,
        content.key,
        upserts=[] if content.delete else row,
        deletes=row if content.delete else [],
        upsert_versions=[] if content.delete else versions,
        delete_versions=versions if content.delete else [],
        group=content.group,
        document=content.document,
        source=letter.source,
        mapped_by=letter.mapped_by,
        unlogged=content.unlogged,
    )


def _item(
    content: RawRecord | SourceChange, letter: DeadLetter, router: Router, codec: str
) -> tuple[WorkItem, tuple[Route, ...]]:
    decoded, payload, context, first = None, b"", (), 0
    if isinstance(content, RawRecord):
        if content.codec != codec:
            raise _impossible(letter, f"it is a record of {content.codec}, the source has {codec}")
        table, payload, context = content.table, content.payload, content.context
    else:
        if content.partial:
            raise _impossible(letter, "the record did not mention all columns")
        table = content.schema.schema, content.schema.table
        images = [(content.before, content.after)]
        decoded = DecodedRows(content.schema, content.op, images)
        first = number_in_record(content)
    routes = tuple(r for r in router.route(*table) if target_name(r.target) == letter.target)
    if not routes:
        raise _impossible(letter, f"{'.'.join(table)} does not go to {letter.target} any more")
    indexes = tuple(route.index for route in routes)
    return WorkItem(indexes, letter.version, context, payload, table, decoded, first), routes


def _impossible(letter: DeadLetter, why: str) -> FatalError:
    return FatalError(
        f"the dead letter cannot be loaded again: {why}",
        hint="Drop it, and change the row at the source once more if it is still there",
        table=letter.source,
    )
