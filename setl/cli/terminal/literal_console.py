"""A console that prints text as it is, whoever wrote it."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from setl.printable import printable


class LiteralConsole(Console):
    """Prints rows, names and errors letter by letter; style is only in `Text`.

    rich takes brackets in a string for markup, which it leaves out or refuses, and words between
    colons for pictures. Keys and errors hold both. They may also hold what a terminal obeys.
    """

    def __init__(self, **options: Any) -> None:
        """Args: as those of rich's console."""
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Strings and cells of tables come by here."""
        return super().render_str(printable(text), **options)
