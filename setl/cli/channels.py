"""Commands that change channels: check, apply, start, pause, stop."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from rich.markup import escape

from arbiter.port import Arbiter
from arbiter.values import Channel, ChannelState
from setl.cli.cluster import change_state, cluster_options, joined, node_status, output_option
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
_WAIT = click.option(
    "--wait/--no-wait", default=True, help="Wait until every node acts on it. [default: wait]"
)
_WAIT_LIMIT = 60.0


@click.command()
@_FILE
@click.option("--offline", is_flag=True, help="Check the file only; talk to no server.")
@output_option
def check(file: Path, offline: bool, output: str) -> None:
    """Check a channel FILE, and the servers it names; print what is missing and how to mend it."""
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
    """Store a channel FILE in the cluster; a new channel begins stopped.

    References such as ${PASSWORD} are stored as they are; each node resolves them from its own
    environment.
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


def _state_command(name: str, state: ChannelState, text: str) -> click.Command:
    @click.command(name, help=text)
    @click.argument("channel")
    @_WAIT
    @cluster_options
    def command(channel: str, wait: bool, zookeeper: str, root: str) -> None:
        with joined(zookeeper, root) as arbiter:
            stored = change_state(arbiter, channel, state)
            settled = _wait_until_settled(arbiter, stored) if wait else True
        if not settled:
            raise click.ClickException(
                f"channel {channel} is set to {state.value}, but not every pipeline got there in"
                f" {_WAIT_LIMIT:.0f} s; `setl status` says why"
            )
        console().print(f"channel {channel}: {state.value}")

    return command


_SETTLED = {
    ChannelState.START: {"running", "failed"},
    ChannelState.PAUSE: {"paused", "standby", "stopped", "failed"},
    ChannelState.STOP: {"stopped", "standby"},
}


def _wait_until_settled(arbiter: Arbiter, channel: Channel) -> bool:
    """Whether every pipeline of the channel got where its state says, within the limit."""
    names = {p["name"] for p in channel.definition.get("pipelines", [])}
    deadline = time.monotonic() + _WAIT_LIMIT
    while time.monotonic() < deadline:
        settled: set[str] = set()
        answers = [node_status(node) for node in arbiter.nodes()]
        lines = [line for answer in answers if answer for line in answer["pipelines"]]
        for name in names:
            mine = [x for x in lines if (x["channel"], x["pipeline"]) == (channel.name, name)]
            states = {x["figures"]["state"] for x in mine if x["mine"]}
            if channel.state is not ChannelState.START:
                states = {x["figures"]["state"] for x in mine} or {"stopped"}
            if states and states <= _SETTLED[channel.state]:
                settled.add(name)
        if settled == names:
            return True
        time.sleep(0.2)
    return False


start = _state_command(
    "start", ChannelState.START, "Start CHANNEL, or try again what failed in it."
)
pause = _state_command(
    "pause", ChannelState.PAUSE, "Pause CHANNEL: finish what is loading, keep the leadership."
)
stop = _state_command(
    "stop", ChannelState.STOP, "Stop CHANNEL: finish what is loading, give the leadership up."
)
