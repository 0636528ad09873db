"""The command that says what applying a channel file would change."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from setl.cli.access.cluster import cluster_options, joined, output_option
from setl.cli.access.spark_options import make_importable, py_files_option
from setl.cli.channels.checking import route_check
from setl.cli.terminal.output import console, print_value
from setl.cli.terminal.progress import busy_with_servers

if TYPE_CHECKING:
    from setl.operate.plan import Plan


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--offline", is_flag=True, help="Compare the files only; ask no server.")
@py_files_option
@cluster_options
@output_option
def plan(  # noqa: PLR0917 - click passes options by name
    file: Path,
    offline: bool,
    py_files: tuple[Path, ...],
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Say what applying a channel FILE would change.

    Pipelines that restart, tables that are added or removed, loads that follow, tables and indexes
    that are created, and what must be fixed first. Nothing is changed. It ends with the revision
    of the stored file, for `setl apply --base`. Exit status 1: something must be fixed.
    """
    from setl.channel.partitions import read_expanded  # noqa: PLC0415
    from setl.channel.text.document import read_channel_definition  # noqa: PLC0415
    from setl.channel.text.references import refuse_hidden  # noqa: PLC0415
    from setl.operate.planning import make_plan  # noqa: PLC0415

    make_importable(py_files)
    read = read_channel_definition(file)
    refuse_hidden(read)
    definition, channel = read_expanded(read, os.environ)
    with (
        joined(zookeeper, root) as arbiter,
        busy_with_servers(channel.channel),
    ):
        found = make_plan(
            arbiter,
            definition,
            channel,
            os.environ,
            expressions=route_check(),
            ask_servers=not offline,
        )
    errors = [finding for finding in found.findings if finding.level == "error"]
    if output != "table":
        print_value(
            {
                "channel": found.channel,
                "new": found.new,
                "base": found.base,
                "changes": [asdict(change) for change in found.changes],
                "restarted": list(found.restarted),
                "created": [
                    {"where": f.where, "what": f.what, "statements": list(f.hint)}
                    for f in found.creations
                ],
                "errors": [
                    {"where": f.where, "what": f.what, "hint": list(f.hint)} for f in errors
                ],
            },
            output,
        )
    else:
        print_plan(found, f"`setl check {file} -o sql`")
        console().print(_base_sentence(found, file))
    if errors:
        sys.exit(1)


def _base_sentence(found: Plan, file: Path) -> str:
    """What the plan holds for, and how it is applied only as long as it does."""
    how = f"`setl apply {file} --base {found.base}` stores the file if"
    if found.new:
        return f"{how} there is no channel {found.channel} by then."
    return f"The stored file is revision {found.base}; {how} it still is."


def print_plan(found: Plan, sql: str) -> None:
    """Print what applying would change.

    Args:
        found: the plan.
        sql: what shows the statements that fix what must be fixed first.
    """
    from rich.text import Text  # noqa: PLC0415

    from setl.operate.starting import hints  # noqa: PLC0415

    out = console()
    for change in found.changes:
        sign = Text("!", "yellow") if change.warns else Text("+", "green")
        out.print(sign, f"{change.where}: {change.what}")
        if change.effect:
            out.print(f"    {change.effect}")
    for creation in found.creations:
        out.print(Text("+", "green"), f"{creation.where}: {creation.what}")
        for line in (*creation.hint, *creation.mapping_lines):
            out.print(f"    {line}")
    for finding in found.findings:
        if finding.level == "error":
            out.print(Text("✖", "red"), f"{finding.where}: {finding.what}")
            for line in hints(finding, sql):
                out.print(f"    {line}")
    if found.restarted:
        names = ", ".join(found.restarted)
        out.print(f"These pipelines stop cleanly and restart: {names}")
    if found.empty:
        out.print(f"channel {found.channel}: nothing would change.")
