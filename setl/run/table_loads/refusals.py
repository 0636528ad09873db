"""Tells errors of a load of tables that may pass from those that stay.

A load may read a table that is ahead of the stream. What the target refuses then, it may take when
the stream has come there. By then the table may have been altered once more, and be refused for
another reason. The same error a second time is about something else.
"""

from __future__ import annotations

from typing import Final

from setl.errors import ConfigurationError, DataError, SetlError

_MOST: Final = 20  # one after another, without a row that is loaded between them


class RefusedTables:
    """The errors since rows were loaded last."""

    def __init__(self) -> None:
        """Know none."""
        self._seen: set[tuple[object, str]] = set()

    def may_skip(self, error: SetlError) -> bool:
        """Whether the stream may bring what an error is about; the next time it may not."""
        reported = error.where.get("table"), error.message
        if not isinstance(error, (ConfigurationError, DataError)) or reported in self._seen:
            return False
        self._seen.add(reported)
        return len(self._seen) <= _MOST

    def forget(self) -> None:
        """Rows are loaded, or nothing is waited for any more."""
        self._seen.clear()
