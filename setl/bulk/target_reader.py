"""The port to a target that is read as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from setl.bulk.chunks import Chunk
from setl.bulk.pairs import Pair, Shape
from setl.model.schema import Column


class TargetReader(Protocol):
    """Reads one target table or index. Picklable: tasks call `read`, the driver all else."""

    @property
    def name(self) -> str:
        """The table or index, for messages."""
        ...

    @property
    def shape(self) -> Shape:
        """How its rows are compared."""
        ...

    def parts(self, rows_per_part: int) -> Sequence[Any]:
        """Picklable parts of about so many rows; together they hold each row once.

        Raises:
            SetlError: the target cannot be read.
        """
        ...

    def parts_of_keys(self, keys: Sequence[str]) -> Sequence[Any]:
        """Parts that hold the rows with these keys, as `Pair.key` has them."""
        ...

    def read(self, part: Any) -> Iterator[list[Pair]]:
        """The rows of a part, some thousand at a time.

        Raises:
            SetlError: the target cannot be read.
        """
        ...

    def close(self) -> None:
        """Give back what `parts` holds open in the target. Safe to call twice."""
        ...


@runtime_checkable
class RangedTarget(TargetReader, Protocol):
    """A target that can also be asked for ranges of its source's key.

    Ranges whose limits follow each other from None to None hold each row of the target once at
    least. Rows that are written while they are read may be in any of them, or in none.
    """

    def part(self, columns: Sequence[Column], chunk: Chunk) -> Any:
        """What `read` takes to read a range.

        Args:
            columns: the target's columns that hold the values of the limits.
            chunk: the limits, of values of the source's columns.
        """
        ...


@runtime_checkable
class OrderedTarget(RangedTarget, Protocol):
    """One that knows itself which of the source's keys it has in order."""

    def ordered(self, columns: Sequence[tuple[Column, str]]) -> Sequence[Column]:
        """The first of some columns by whose order its rows lie as those of the source do.

        Args:
            columns: the source's columns, in the order in which they sort; each with the name of
                the target's column that it fills.

        Returns:
            The target's columns for the first so many of them; none if it has no such order.

        Raises:
            SetlError: the target cannot be asked.
        """
        ...
