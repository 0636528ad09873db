"""What a pipeline's figures say that is wrong, in words that alarms, commands and pages share.

Each is two nouns with their verbs, for `setl.counting.count`.
"""

from __future__ import annotations

from typing import Final

ECHOES: Final = (
    "transaction of this channel came back and was",
    "transactions of this channel came back and were",
)
"""Before "not dropped"."""

DIFFERENCES: Final = ("key of source and target differs", "keys of source and target differ")
