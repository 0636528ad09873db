"""Commands about channel files: check and apply."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from rich.markup import escape

from arbiter.values import ChannelState
from setl.cli.cluster import cluster_options, joined, output_option
from setl.cli.output import console, print_rows
from setl.config.channel import ChannelFile
from setl.config.preflight.check import check_channel
from setl.config.preflight.finding import Finding
from setl.config.reading import (
    definition_warnings,
    read_channel_definition,
    resolve_and_parse,
)
from setl.config.routing import Route
from setl.model.schema import RowSchema

_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command()
@_FILE
@click.option("--offline", is_flag=True, help="Check the file only; talk to no server.")
@output_option
def check(file: Path, offline: bool, output: str) -> None:
    """Check a channel FILE and the servers it names.

    Prints what is missing and how to mend it.
    """
    definition = read_channel_definition(file)
    channel = resolve_and_parse(definition, os.environ)
    findings = [
        Finding("warning", problem.message, problem.path)
        for problem in definition_warnings(definition)
    ]
    if not offline:
        findings += check_channel(channel, expressions=_expression_check(channel))
    if output != "table":
        rows = [
            {"level": f.level, "what": f.what, "where": f.where, "fix": list(f.fix)}
            for f in findings
        ]
        print_rows(rows, (), output)
    else:
        _print_findings(findings, offline=offline, name=channel.channel)
    if any(f.level == "error" for f in findings):
        sys.exit(1)


def _expression_check(channel: ChannelFile) -> Callable[[Route, RowSchema], object] | None:
    """How expressions are checked: by Spark itself; None if there are none."""
    tables = [table for pipeline in channel.pipelines for table in pipeline.tables]
    if not any(table.columns or table.where for table in tables):
        return None
    # Imported late: Spark takes seconds that a channel without expressions need not wait.
    from setl.pipeline.spark_session import SparkSettings, start_session  # noqa: PLC0415
    from setl.transform.expressions import analyse  # noqa: PLC0415

    return partial(analyse, start_session(SparkSettings(master="local[1]", name="setl check")))


def _print_findings(findings: list[Finding], *, offline: bool, name: str) -> None:
    out = console()
    signs = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}
    for finding in findings:
        # What was found may hold brackets, which would be taken for markup.
        out.print(f"{signs[finding.level]} {escape(f'{finding.where}: {finding.what}')}")
        for line in finding.fix:
            out.print(f"          {line}", markup=False)
    errors = sum(f.level == "error" for f in findings)
    if errors:
        out.print(f"\n{errors} to mend before channel {name} can start.")
    else:
        scope = "the file is right" if offline else "the file and the servers are right"
        out.print(f"channel {name}: {scope}.")


@click.command()
@_FILE
@cluster_options
def apply(file: Path, zookeeper: str, root: str) -> None:
    """Store a channel FILE in the cluster.

    A new channel begins stopped, another keeps its state. References such as ${PASSWORD} are
    stored as they are; each node resolves them from its own environment.
    """
    definition = read_channel_definition(file)
    channel = resolve_and_parse(definition, os.environ)
    for problem in definition_warnings(definition):
        click.echo(f"warning: {problem}", err=True)
    with joined(zookeeper, root) as arbiter:
        stored = arbiter.put_channel(channel.channel, definition)
    console().print(
        f"channel {stored.name} stored, state {stored.state.value}"
        + ("" if stored.state is ChannelState.START else f"; `setl start {stored.name}` starts it")
    )
