"""The port to a comparison that goes through a table range by range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from setl.bulk.verdict import TableVerdict
from setl.model.change import Row


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """What was found in one range of a table.

    Attributes:
        last: the key up to which both sides were compared, of the source's columns by which the
            table is cut; None at the end of the table. It can be written as JSON:
            `setl.model.key_values.key_to_json`.
        rows: rows of the source in the range.
        verdict: how the two sides differ in the range, with the keys that differ for a repair, and
            with those that are undecided.
    """

    last: Row | None
    rows: int
    verdict: TableVerdict


class RangeComparer(Protocol):
    """Compares one target with the table that goes into it, one range of the key after another.

    Order: the ranges follow each other in the order of the source's key. The first one is open
    below and the last one open above, so ranges from None to None see every row of both sides,
    those beyond the source's ends included. Rows that are written meanwhile are seen in whichever
    range holds them when it is compared.

    Idempotence: a range can be compared any number of times; nothing is written on either side.

    Crash: nothing is kept. Whoever calls keeps `RangeOutcome.last` and goes on behind it; without
    it, the table is compared from its beginning again.

    A target that cannot be cut is compared as a whole: `last` is None then, whatever `rows` says.
    Not thread-safe; two comparers may be used at the same time.
    """

    @property
    def name(self) -> str:
        """The target table or index."""
        ...

    @property
    def table(self) -> str:
        """The source table, ``schema.table``; several are joined by commas."""
        ...

    @property
    def whole(self) -> str:
        """Why the target is compared as a whole, "" if it is not; known after the first range."""
        ...

    def compare(self, after: Row | None, rows: int) -> RangeOutcome:
        """Compare the next range.

        Args:
            after: the key behind which to begin, a `RangeOutcome.last`; None for the beginning.
                A key that is gone by now is as good as any.
            rows: about how many rows of the source the range is to have, at least one.

        Raises:
            ConfigurationError: a side has no such table any more, or lacks columns.
            SetlError: a side does not answer, or Spark failed; the range can be tried again.
        """
        ...
