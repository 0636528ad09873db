"""Output of commands: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Imported late everywhere: help and refusals need no tables.
    from rich.console import Console

_WIDE = 400

FORMATS = ("table", "json", "yaml")


def console() -> Console:
    """Where results go: standard output, without colour or wrapping when it is no terminal."""
    from rich.console import Console  # noqa: PLC0415

    if sys.stdout.isatty():
        return Console(highlight=False)
    # A table is only as wide as its content; without a terminal nothing is cut to fit one.
    return Console(soft_wrap=True, highlight=False, width=_WIDE)


def print_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: str, title: str = ""
) -> None:
    """Print rows of named values; columns choose and order what the table shows.

    JSON and YAML show every value of every row, under the same names.
    """
    if output != "table":
        print_value([dict(row) for row in rows], output)
        return
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        numeric = bool(rows) and all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(shown(row.get(column)) for column in columns))
    console().print(table)


def print_value(value: Any, output: str) -> None:
    """Print a value for programs; `output` is json or yaml."""
    if output == "json":
        print(json.dumps(value, indent=2, default=str), flush=True)
    else:
        import yaml  # noqa: PLC0415

        print(yaml.safe_dump(value, sort_keys=False), end="", flush=True)


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
