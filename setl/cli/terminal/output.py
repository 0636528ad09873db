"""Output of commands: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from setl.operate import units
from setl.printable import printable

if TYPE_CHECKING:
    # Imported late everywhere: help and refusals need no tables.
    from rich.console import Console
    from rich.table import Table

_WIDE = 400

FORMATS = ("table", "json", "yaml")


def console() -> Console:
    """Where results go: standard output, without colour or wrapping when it is no terminal."""
    from setl.cli.terminal.literal_console import LiteralConsole  # noqa: PLC0415

    if sys.stdout.isatty():
        return LiteralConsole()
    # A table is only as wide as its content; without a terminal nothing is cut to fit one.
    return LiteralConsole(soft_wrap=True, width=_WIDE)


def take_any_letter() -> None:
    """Have standard output write what the locale's encoding lacks by its number.

    Otherwise an arrow, or a letter of a row, ends the command in a terminal that is not UTF-8.
    """
    out: object = sys.stdout
    if isinstance(out, io.TextIOWrapper):  # a test may look at something else
        out.reconfigure(errors="backslashreplace")


def to_stderr(text: str) -> None:
    """A line beside the result, on standard error."""
    click.echo(printable(text), err=True)


def raise_all(errors: Sequence[Exception]) -> None:
    """Say why an answer is not whole: the last error is raised, the others are reported."""
    for error in errors[:-1]:
        to_stderr(f"Error: {error}")
    if errors:
        raise errors[-1]


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    output: str,
    title: str = "",
    *,
    dispensable: Sequence[str] = (),
    nothing: str = "",
) -> None:
    """Print rows of named values; columns choose and order what the table shows.

    JSON and YAML show every value of every row, under the same names.

    Args:
        rows: what is printed.
        columns: of the table.
        output: see `FORMATS`.
        title: stands above the table.
        dispensable: columns that a terminal too narrow for all goes without, the first first.
        nothing: a sentence in place of a table without rows.
    """
    if output != "table":
        print_value([dict(row) for row in rows], output)
        return
    terminal = console()
    if nothing and not rows:
        terminal.print(nothing)
        return
    left_out: list[str] = []
    table = _table(rows, columns, title)
    for column in dispensable:
        if _width(terminal, table) <= terminal.width:
            break
        left_out.append(column)
        table = _table(rows, [name for name in columns if name not in left_out], title)
    terminal.print(table)
    if left_out:
        names = ", ".join(_head(column) for column in left_out)
        terminal.print(f"A wider terminal shows: {names}")


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str) -> Table:
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        numeric = bool(rows) and all(isinstance(row.get(column), int | float) for row in rows)
        # What does not fit goes on in the next line: half a name is of no use.
        table.add_column(_head(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(column, row.get(column)) for column in columns))
    return table


def _width(terminal: Console, table: Table) -> int:
    from rich.measure import Measurement  # noqa: PLC0415

    # Asked of a terminal with room for everything, since this one's width is a limit.
    return Measurement.get(terminal, terminal.options.update(width=_WIDE), table).maximum


_HEADS = {"channel_state": "channel", "rows_per_second": "rows/s"}
_PLAIN = frozenset(
    {"epoch", "fence_epoch", "leadership", "pid", "target_epoch"}
)  # they count nothing
_SPANS = frozenset({"lag", "outage", "seconds"})


def _head(column: str) -> str:
    return _HEADS.get(column, column.replace("_", " "))


def _cell(column: str, value: Any) -> str:
    """A value of a table: with its unit, if its name says one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if column in _PLAIN:
            return str(value)
        if column in _SPANS:
            return units.duration(value)
        if column == "rows_per_second":
            return units.rate(value)
    return shown(value)


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
