"""Merges the results of several tasks, key by key.

The tasks of a large batch decode and compact one stretch of it each. A key may have changed in
more than one stretch. Its latest change survives: the one with the highest version. Versions grow
along the stream, and one record is decoded by one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any

from setl.model.change import Row, TargetChanges, Value
from setl.model.document import DocumentForm
from setl.transform.row_sequences import joined, keys_of, taken


def merge(parts: Sequence[TargetChanges]) -> list[TargetChanges]:
    """One survivor for each key of each target, from parts in any order."""
    by_target: dict[tuple[tuple[str, str], DocumentForm | None], list[TargetChanges]] = {}
    # Of rows without a key each change counts.
    keyless = [part.with_own_rows() for part in parts if part.keyless]
    for part in (part for part in parts if not part.keyless):
        by_target.setdefault((part.target, part.document), []).append(part)
    merged: list[TargetChanges] = [*_by_shape(keyless)]
    for same_target in by_target.values():
        if len(same_target) == 1:
            merged += same_target
        else:
            merged += _merge_target(same_target)
    return merged


def _merge_target(parts: list[TargetChanges]) -> list[TargetChanges]:
    """The survivors of one target; rows of different shapes stay apart but share their keys."""
    parts = parts[:]  # to which shapes may be added
    if len({(part.columns, part.key, part.unlogged, part.partial) for part in parts}) == 1:
        merged = _of_one_shape(parts)
        return [merged] if merged.upserts or merged.deletes else []
    # Key → (version, shape number or -1 for a delete, row). In stream order, so that a later
    # row that lacks columns (its record did not mention them) can take them from the earlier.
    changes = sorted(_changes(parts), key=itemgetter(0))
    survivors: dict[Row, tuple[int, int, Row]] = {}
    # Keys that were emptied before a row with fewer columns took them: their delete stays, or
    # the new row would keep what the old one held in the columns that it does not mention.
    emptied: dict[Row, int] = {}
    widest = max(len(part.columns) for part in parts)
    for version, shape, key, row in changes:
        pending = survivors.get(key)
        if shape < 0:
            emptied.pop(key, None)
        elif pending is not None and pending[1] < 0 and len(parts[shape].columns) < widest:
            emptied[key] = pending[0]
        if shape >= 0 and pending is not None and pending[1] >= 0 and pending[1] != shape:
            survivors[key] = (version, *_complete(parts, pending[1], pending[2], shape, row))
        else:
            survivors[key] = (version, shape, row)
    results = [part.without_rows() for part in parts]
    for key, version in emptied.items():
        results[0].deletes.append(key)
        results[0].delete_versions.append(version)
    for key, (version, shape, row) in survivors.items():
        if shape < 0:
            results[0].deletes.append(key)
            results[0].delete_versions.append(version)
        else:
            results[shape].own_upserts.append(row)
            results[shape].upsert_versions.append(version)
    return [result for result in _by_shape(results) if result.upserts or result.deletes]


def _of_one_shape(parts: list[TargetChanges]) -> TargetChanges:
    """The survivors of parts with the same columns and key, where none can complete another."""
    keys = [
        (delete, own, versions)
        for part in parts
        for delete, own, versions in (
            (False, [*keys_of(part.upserts, part.key)], part.upsert_versions),
            (True, [*keys_of(part.deletes, range(len(part.key)))], part.delete_versions),
        )
    ]
    together = replace(
        parts[0],
        upserts=joined([part.upserts for part in parts]),
        upsert_versions=[version for part in parts for version in part.upsert_versions],
        deletes=[key for part in parts for key in part.deletes],
        delete_versions=[version for part in parts for version in part.delete_versions],
    )
    if len(set[Any]().union(*[own for _, own, _ in keys])) == sum(len(own) for _, own, _ in keys):
        return together  # as those of new rows do
    # Of each key the version, whether it is a delete, and the number among all of these.
    latest: dict[Any, tuple[int, bool, int]] = {}
    known = latest.get
    numbers = {False: count(), True: count()}
    for delete, own, versions in keys:
        for key, version, number in zip(own, versions, numbers[delete], strict=False):
            there = known(key)
            if there is None or there[0] <= version:
                latest[key] = version, delete, number
    left = sorted(latest.values(), key=itemgetter(0))
    return replace(
        together,
        upserts=taken(together.upserts, [number for _, gone, number in left if not gone]),
        upsert_versions=[version for version, gone, _ in left if not gone],
        deletes=[together.deletes[number] for _, gone, number in left if gone],
        delete_versions=[version for version, gone, _ in left if gone],
    )


def _changes(parts: list[TargetChanges]) -> Iterable[tuple[int, int, Row, Row]]:
    for number, part in enumerate(parts):
        key_of = part.key
        for row, version in zip(part.upserts, part.upsert_versions, strict=True):
            yield version, number, tuple(row[i] for i in key_of), row
        for key, version in zip(part.deletes, part.delete_versions, strict=True):
            yield version, -1, key, key


def _complete(
    parts: list[TargetChanges], old_shape: int, old: Row, new_shape: int, new: Row
) -> tuple[int, Row]:
    """The newer row, completed from the older one where that one has more columns.

    A shape that both have together is added to the parts if it is not among them.
    """
    old_columns, new_columns = parts[old_shape].columns, parts[new_shape].columns
    if parts[new_shape].partial:
        shape = _shape_of_both(parts, old_shape, new_shape)
        known = {c.name: v for c, v in zip(old_columns, old, strict=True)}
        known.update((c.name, v) for c, v in zip(new_columns, new, strict=True))
        return shape, tuple(known[c.name] for c in parts[shape].columns)
    new_names = {c.name for c in new_columns}
    if old_columns == new_columns or all(c.name in new_names for c in old_columns):
        return new_shape, new
    if parts[new_shape].unlogged:
        return new_shape, new  # what the older row has there is not so any more
    values: dict[str, Value] = dict(zip((c.name for c in old_columns), old, strict=True))
    values.update(zip((c.name for c in new_columns), new, strict=True))
    if len(values) != len(old_columns):
        # Neither has all columns of the other: the table changed between the two records,
        # and the newer record is what the source holds now.
        return new_shape, new
    return old_shape, tuple(values[c.name] for c in old_columns)


def _shape_of_both(parts: list[TargetChanges], old: int, new: int) -> int:
    """Number of the shape that a row has behind an update which does not say all of it.

    The update leaves what it does not say as it was, but for what is unlogged.
    """
    before, update = parts[old], parts[new]
    stored = [c for c in before.columns if c.name not in update.unlogged]
    names = {c.name for c in stored}
    said = {c.name for c in update.columns}
    columns = (*stored, *(c for c in update.columns if c.name not in names))
    unlogged = (
        *update.unlogged,
        *(n for n in before.unlogged if n not in {*said, *update.unlogged}),
    )
    for number, part in enumerate(parts):
        same = part.columns == columns and part.unlogged == unlogged
        if same and part.partial == before.partial:
            return number
    positions = {c.name: n for n, c in enumerate(columns)}
    key = tuple(positions[before.columns[n].name] for n in before.key)
    shape = replace(before.without_rows(), columns=columns, key=key, unlogged=unlogged)
    parts.append(shape)
    return len(parts) - 1


def _by_shape(results: list[TargetChanges]) -> Iterable[TargetChanges]:
    shapes: dict[tuple[Any, ...], TargetChanges] = {}
    for result in results:
        shape = result.target, result.columns, result.unlogged, result.partial
        first = shapes.setdefault(shape, result)
        if first is not result:
            first.own_upserts.extend(result.upserts)
            first.upsert_versions.extend(result.upsert_versions)
            first.deletes.extend(result.deletes)
            first.delete_versions.extend(result.delete_versions)
    return shapes.values()
