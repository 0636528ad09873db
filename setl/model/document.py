"""What a document of a search index is made of besides the columns of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Geometry = Literal["base64", "wkt"]
"""How GEOMETRY is written: all of its bytes, or as well-known text."""


class DocumentOrigin(NamedTuple):
    """What ids of documents are made of: with something else, the same rows have other ids.

    Attributes:
        entry: tells the documents of one entry of a channel file, and of one table where that has
            a wildcard, from others of its pipeline.
        parts: the columns and how they are written, for people; equal for equal ids.
    """

    entry: str
    parts: str


@dataclass(frozen=True, slots=True)
class DocumentForm:
    """How the rows of one table become documents.

    A key here is a row's key as `TargetChanges` has it.

    Attributes:
        texts: fixed text of the id: before its first value, between two of them, and after the
            last; one more than `values`.
        values: for each value in the id, its index in the key.
        routing: index in the key of the value that says which shard a document is on; None
            leaves that to its id. A row that is routed again is another row to setl.
        no_dates_as_null: whether a date that no calendar has becomes null; else it is refused.
        geometry: how GEOMETRY is written.
    """

    texts: tuple[str, ...]
    values: tuple[int, ...]
    routing: int | None = None
    no_dates_as_null: bool = False
    geometry: Geometry = "base64"

    @classmethod
    def of_key(cls, columns: int) -> DocumentForm:
        """The form where a channel file says nothing: the id is the key, joined by commas."""
        return cls(("", *[","] * (columns - 1), ""), tuple(range(columns)))

    @property
    def separators(self) -> frozenset[str]:
        """Characters of the fixed text between values."""
        return frozenset("".join(self.texts[1:-1]))

    def distinguishes(self, other: DocumentForm) -> bool:
        """Whether no document of this form can have the id of one of the other form.

        Only fixed text before the first or after the last value is looked at: if neither text
        begins (or ends) with the other, no two ids agree there.
        """
        mine, theirs = self.texts, other.texts
        begin = not (mine[0].startswith(theirs[0]) or theirs[0].startswith(mine[0]))
        return begin or not (mine[-1].endswith(theirs[-1]) or theirs[-1].endswith(mine[-1]))
