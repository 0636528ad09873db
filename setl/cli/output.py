"""What commands print: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

FORMATS = ("table", "json", "yaml")


def console() -> Console:
    """Where results go: standard output, without colour or wrapping when it is no terminal."""
    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False)


def print_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: str, title: str = ""
) -> None:
    """Print rows of named values; columns choose and order what the table shows.

    JSON and YAML show every value of every row, under the same names.
    """
    if output == "json":
        print(json.dumps(list(rows), indent=2, default=str))
        return
    if output == "yaml":
        print(yaml.safe_dump([dict(row) for row in rows], sort_keys=False), end="")
        return
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        numeric = bool(rows) and all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(shown(row.get(column)) for column in columns))
    console().print(table)


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
