"""The port to a target that is read as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from setl.bulk.pairs import Pair, Shape


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
