"""Foreign keys whose actions change rows of the child, as setl carries them out."""

from __future__ import annotations

from typing import NamedTuple

from setl.model.change import Row
from setl.model.schema import Column

Name = tuple[str, str]
"""Schema and table."""


class KeyAction(NamedTuple):
    """A foreign key of the target's tables.

    Attributes:
        name: of the constraint.
        child: the table that it is in.
        columns: of the child, in order.
        parent: the table that it refers to.
        parent_columns: columns of the parent, in order.
        on_delete: what becomes of child rows when their parent is deleted: ``CASCADE``,
            ``SET NULL``, or "" for nothing.
        on_update: the same when the parent's columns change.
    """

    name: str
    child: Name
    columns: tuple[str, ...]
    parent: Name
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str

    @property
    def id(self) -> tuple[str, str]:
        """What a checkpoint calls it: the child, and the constraint."""
        return ".".join(self.child), self.name


class KeyMove(NamedTuple):
    """A row of a parent whose referenced columns have changed.

    Attributes:
        target: the parent at the target.
        columns: these columns.
        old: their values before.
        new: their values afterwards.
    """

    target: Name
    columns: tuple[Column, ...]
    old: Row
    new: Row
