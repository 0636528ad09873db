"""Commands about rows that both sites have changed: list what was decided, and trim the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.cli.access.cluster import (
    cluster_options,
    joined,
    output_option,
    pipeline_config,
    pipelines_named,
)
from setl.cli.terminal.completion import complete_name
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.output import console, print_rows, print_value
from setl.counting import count
from setl.node.cluster.view import moment
from setl.systems.conflicts import MAX_CONFLICTS, Conflict, ConflictList
from setl.systems.registry import system_of

_COLUMNS = ("pipeline", "found_at", "table", "key", "winner", "incoming", "held", "result")


@click.group()
def conflicts() -> None:
    """Show rows that both sites have changed (list, trim)."""


@conflicts.command("list")
@click.argument("name", shell_complete=complete_name, metavar="CHANNEL|PIPELINE")
@click.option("--table", default="", help="Only this table of the target, schema.table.")
@click.option(
    "-n",
    "--number",
    default=20,
    show_default=True,
    help="How many of each pipeline, the newest first.",
)
@cluster_options
@output_option
def list_(  # noqa: PLR0917 - click passes options by name
    name: str, table: str, number: int, zookeeper: str, root: str, output: str
) -> None:
    """List conflicts: what arrived, what the target held, and what stayed.

    Each target lists the conflicts found there, so look at both pipelines of a channel. The
    channel's secrets must be in this environment, as on a node.
    """
    rows: list[dict[str, Any]] = []
    with joined(zookeeper, root) as arbiter:
        for ident, listed in _deciding(arbiter, name):
            found = listed.newest(str(ident), table=table, limit=number)
            rows += [_values(ident, conflict) for conflict in found]
    if output == "table":
        rows = [{**row, **{n: _words(row[n]) for n in ("key", *_COLUMNS[5:])}} for row in rows]
    print_rows(rows, _COLUMNS, output, nothing="There is no conflict.")


@conflicts.command()
@click.argument("name", shell_complete=complete_name, metavar="CHANNEL|PIPELINE")
@click.option(
    "--keep", default=MAX_CONFLICTS, show_default=True, type=click.IntRange(min=0),
    help="How many of each pipeline to keep, the newest.",
)  # fmt: skip
@yes_option
@cluster_options
@output_option
def trim(  # noqa: PLR0917 - click passes options by name
    name: str, keep: int, yes: bool, zookeeper: str, root: str, output: str
) -> None:
    """Delete old conflicts from the list; setl itself keeps the newest ten thousand.

    Only the list gets shorter. Rows stay as they were decided.
    """
    with joined(zookeeper, root) as arbiter:
        deciding = _deciding(arbiter, name)
        names = ", ".join(str(ident) for ident, _ in deciding)
        confirm(f"Delete all but the newest {count(keep, 'conflict')} of {names}?", yes=yes)
        deleted = {str(i): listed.trim(str(i), keep) for i, listed in deciding}
    if output != "table":
        print_value(deleted, output)
        return
    for pipeline, number in deleted.items():
        console().print(f"{pipeline}: {number} deleted")


def _deciding(arbiter: Arbiter, name: str) -> list[tuple[PipelineId, ConflictList]]:
    """The pipelines that are meant and have conflict policies, with their targets."""
    facts = arbiter.facts()
    named = pipelines_named(facts, name)
    # Imported late: a name that nobody knows is refused before.
    from setl.channel.routes.routing import Router  # noqa: PLC0415

    found: list[tuple[PipelineId, ConflictList]] = []
    for ident in named:
        config = pipeline_config(facts.channels[ident.channel], ident)
        listed = system_of(config.target).conflicts() if Router(config).decides else None
        if listed is not None:
            found.append((ident, listed))
    if not found:
        raise click.UsageError(f"no table of {name} has a conflict policy")
    return found


def _values(ident: PipelineId, conflict: Conflict) -> dict[str, Any]:
    values = {"pipeline": str(ident), **asdict(conflict), "found_at": moment(conflict.found_at)}
    return {name: _as_json(value) for name, value in values.items()}


def _as_json(value: Any) -> Any:
    """A value as JSON can say it: bytes in hexadecimal."""
    if isinstance(value, Mapping):
        return {str(k): _as_json(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value.hex() if isinstance(value, bytes) else value


def _words(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "no row"
    return ", ".join(f"{name} {value}" for name, value in row.items())
