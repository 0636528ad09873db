"""Which rows of a load repeat what was applied before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setl.extract.extractor import RoutedRows
from setl.model.position import Position


def repeated_through(
    rows: Sequence[RoutedRows], seconds: float, version_of: Callable[[Position], int]
) -> int:
    """The version up to which rows repeat what was applied under a lower generation.

    Their positions say nothing, since they are of another server; their commit times do. A time has
    whole seconds at some sources, so rows that are new in its last second count as repeated.

    Args:
        rows: in the order of the source.
        seconds: commit time up to which the stream repeats, seconds since 1970.
        version_of: the version of a row at a position, see `Checkpoint.version_of`.

    Returns:
        The version of the last row that repeats, 0 if none does.
    """
    for row in reversed(rows):
        if 0 < row.entry.timestamp <= seconds:
            return version_of(row.entry.position)
    return 0
