"""Indexes that setl keeps for itself, beside those that it writes rows to."""

from __future__ import annotations

from typing import Final

DEAD_LETTERS: Final = "setl-deadletter"
"""Faulty rows, see `setl.systems.elasticsearch.deadletters`."""
