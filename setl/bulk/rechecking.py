"""Reads differing keys again, because both sides are still being written.

Both sides of a working pipeline are never read at the same instant, so a row that changes
while it is verified looks different. Such keys are read again, a few times, and count only if
they do not come to agree.
"""

from __future__ import annotations

from collections.abc import Iterable

from setl.bulk.comparison import Difference


class Rechecking:
    """Follows keys that differ through one reading after another.

    A key is done when a reading finds no difference. A row that changes faster than it can
    be read may never be found equal; it is taken for following the source if the source
    changed once more before the last reading, and what the target then had is what the source
    had in one of the readings before.
    """

    def __init__(self, differences: Iterable[Difference]) -> None:
        self._pending = {difference.key: difference for difference in differences}
        self._seen = {key: {d.source} for key, d in self._pending.items()}
        self._changed: set[str] = set()

    @property
    def pending(self) -> list[Difference]:
        """The keys that have to be read again, as they were last."""
        return list(self._pending.values())

    def look(self, differences: Iterable[Difference]) -> None:
        """Take in what another reading of the pending keys found to differ."""
        latest = {difference.key: difference for difference in differences}
        self._changed = {
            key for key, d in latest.items() if key in self._pending and self._source_moved(d)
        }
        for key in latest.keys() & self._pending.keys():
            self._seen[key].add(latest[key].source)
        self._pending = {key: d for key, d in latest.items() if key in self._pending}

    def still_different(self) -> list[Difference]:
        """The keys that differ after the last reading."""
        return [d for d in self._pending.values() if not self._follows(d)]

    def _source_moved(self, latest: Difference) -> bool:
        return latest.source != self._pending[latest.key].source

    def _follows(self, difference: Difference) -> bool:
        earlier = self._seen[difference.key] - {difference.source}
        return difference.key in self._changed and any(
            difference.target == source or (difference.target and difference.target <= source)
            for source in earlier
        )
