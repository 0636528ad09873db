"""Lines in which a command tells a program how far it is, on standard error.

The console of a node runs commands beside it, and shows how far they are.
"""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "SETL_PROGRESS_LINES"
"""With any value of it, progress is told in lines, in place of one that changes."""

_SIGN: Final = "… "


def progress_as_line(words: str) -> str:
    """How far something is, as a line."""
    return f"{_SIGN}{words}"


def progress_in(line: str) -> str | None:
    """What such a line says; None for any other line."""
    return line.removeprefix(_SIGN).strip() if line.startswith(_SIGN) else None
