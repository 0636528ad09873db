"""What compaction leaves of changes, in groups of rows that have the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from setl.model.change import ABSENT, Row
from setl.model.schema import RowSchema


@dataclass(frozen=True, slots=True)
class Survivors:
    """What is left of the changes of one table: rows of one schema, none of them absent.

    Attributes:
        schema: the columns of `upserts`.
        key: indexes of the key columns in it, in key order.
        partial: whether rows lack columns that their table has, because no record mentioned
            them: the target must keep what it holds there.
        upserts: rows to insert or to replace, in the order of their last changes.
        upsert_versions: version of the last change of each.
        deletes: keys to delete (values of the key columns, in key order), ordered likewise.
        delete_versions: version of each delete.
        keyless: whether nothing was compacted, see `TargetChanges.keyless`.
    """

    schema: RowSchema
    key: tuple[int, ...]
    partial: bool = False
    upserts: Sequence[Row] = field(default_factory=list[Row])
    upsert_versions: list[int] = field(default_factory=list[int])
    deletes: list[Row] = field(default_factory=list[Row])
    delete_versions: list[int] = field(default_factory=list[int])
    keyless: bool = False

    @property
    def own_upserts(self) -> list[Row]:
        """`upserts` as a list to add to. Raises TypeError if they are no list, but columns."""
        if not isinstance(self.upserts, list):
            raise TypeError("rows that are columns cannot be added to")
        return self.upserts


class SurvivorGroups:
    """Survivors of one schema: the whole rows, and those that lack columns, by what they have.

    Attributes:
        whole: the deletes, and the rows that lack nothing.
    """

    def __init__(self, schema: RowSchema, key: tuple[int, ...]) -> None:
        """Nothing is left yet; `key` is of `schema`, as in `Survivors`."""
        self.whole = Survivors(schema, key)
        self._parts: dict[tuple[int, ...], Survivors] = {}

    def add_partial(self, row: Row, version: int) -> None:
        """Add a row that has absent values, of columns that are not of its key."""
        present = tuple(i for i, value in enumerate(row) if value is not ABSENT)
        group = self._parts.get(present)
        if group is None:
            group = self._parts[present] = self._part(present)
        group.own_upserts.append(tuple(row[i] for i in present))
        group.upsert_versions.append(version)

    def found(self) -> list[Survivors]:
        """The groups in which there is anything, the whole rows first."""
        return [g for g in (self.whole, *self._parts.values()) if g.upserts or g.deletes]

    def _part(self, present: tuple[int, ...]) -> Survivors:
        whole, positions = self.whole.schema, {source: i for i, source in enumerate(present)}
        schema = replace(
            whole,
            columns=tuple(whole.columns[i] for i in present),
            key=_moved(whole.key, positions) or (),
            unique=tuple(u for u in (_moved(u, positions) for u in whole.unique) if u),
        )
        return Survivors(schema, tuple(positions[i] for i in self.whole.key), partial=True)


def _moved(indexes: tuple[int, ...], positions: dict[int, int]) -> tuple[int, ...] | None:
    return tuple(positions[i] for i in indexes) if all(i in positions for i in indexes) else None
