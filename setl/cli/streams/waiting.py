"""The command that waits until a target has everything up to a position of its source."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import ChannelState, PipelineId
from setl.cli.access.cluster import (
    cluster_options,
    joined,
    output_option,
    pipeline_config,
    pipeline_named,
    stored_file,
    timeout_option,
)
from setl.cli.streams.positions import own_nid
from setl.cli.terminal.completion import complete_name
from setl.cli.terminal.output import console, print_value, to_stderr
from setl.clock import SystemClock
from setl.errors import ConfigurationError
from setl.model.position import Position
from setl.model.stream_end import StreamEnd
from setl.node.cluster.view import look_at
from setl.node.stored import pipelines_of
from setl.operate.positions.position import position_text
from setl.operate.waiting import Health, Verdict, WaitContext, Waited, wait_for
from setl.systems.registry import system_of

_EXIT_NO = 1
_REPORT_EVERY = 1.0


@click.command()
@click.argument("name", shell_complete=complete_name, metavar="CHANNEL[/PIPELINE]")
@click.option(
    "--for", "position", default="now", show_default=True, metavar="POSITION",
    help="now (the end of the source's stream at this moment), GTIDs, FILE:OFFSET, or a Kafka"
    " offset.",
)  # fmt: skip
@timeout_option
@cluster_options
@output_option
def wait(  # noqa: PLR0917 - click passes options by name
    name: str, position: str, timeout: float, zookeeper: str, root: str, output: str
) -> None:
    """Wait until the target has all up to a position of the source.

    With a channel's name and `--for now`, all its pipelines are waited for. Exit status 0: it is
    all there; 1: not within --timeout, or the pipeline is stopped, paused or has failed. Rows kept
    as dead letters count as done. The channel's secrets must be in this environment.
    """
    clock = SystemClock()
    with joined(zookeeper, root) as arbiter:
        idents = _meant(arbiter, name, position)
        nid, found = own_nid("wait"), arbiter.facts().channels
        configs = {ident: pipeline_config(found[ident.channel], ident) for ident in idents}
        ends: dict[PipelineId, Position] = {}
        for ident, config in configs.items():
            source = system_of(config.source)
            try:
                ends[ident] = source.position_to_reach(config, ident.channel, nid, position)
            except ConfigurationError as error:
                raise click.UsageError(str(error)) from None
        deadline = clock.monotonic() + timeout
        context = WaitContext(arbiter, partial(seen_health, arbiter), clock, time.sleep)
        outcomes: dict[PipelineId, Waited] = {}
        for ident, config in configs.items():
            left = max(0.0, deadline - clock.monotonic())
            end, progress = StreamEnd(ends[ident], 0.0), ProgressLine(ident)
            outcomes[ident] = wait_for(config, ident, end, context, timeout=left, progress=progress)
    _print(outcomes, output)
    if any(waited.verdict is not Verdict.PASSED for waited in outcomes.values()):
        sys.exit(_EXIT_NO)


def _meant(arbiter: Arbiter, name: str, position: str) -> list[PipelineId]:
    facts = arbiter.facts()
    if position.strip() == "now" and name in facts.channels:
        stored_file(facts.channels[name])
        return list(pipelines_of(facts.channels[name]))
    return [pipeline_named(facts, name)]


def seen_health(arbiter: Arbiter, ident: PipelineId) -> Health:
    """How a pipeline does, as its channel and its leader say."""
    view = look_at(arbiter, ident.channel).pipeline(ident)
    failed = view.state == "failed" or (not view.leader and view.hopeless)
    error = str(view.figures.get("error", "")) or (view.missing if not view.leader else "")
    wanted = view.channel_state
    return Health(wanted, failed and wanted is ChannelState.START, error)


class ProgressLine:
    """Says on standard error how far a wait is, about once a second."""

    def __init__(self, ident: PipelineId) -> None:
        """Nothing is said yet."""
        self._ident = ident
        self._last_line_at = 0.0

    def __call__(self, waited: Waited) -> None:
        """Say it, if the last time was long enough ago."""
        if waited.seconds - self._last_line_at < _REPORT_EVERY:
            return
        self._last_line_at = waited.seconds
        line = f"{self._ident}: waiting for {waited.position_text}, {waited.why}"
        to_stderr(f"{line}, {waited.seconds:.0f} s")


def _print(outcomes: dict[PipelineId, Waited], output: str) -> None:
    if output != "table":
        print_value([_row(ident, waited) for ident, waited in outcomes.items()], output)
        return
    for ident, waited in outcomes.items():
        if waited.verdict is Verdict.PASSED:
            text = f"has everything up to {waited.position_text}, after {waited.seconds:.1f} s"
        else:
            how = "not within the time limit" if waited.verdict is Verdict.TIMEOUT else "stopped"
            text = f"{how}: waited for {waited.position_text}, {waited.why}"
        console().print(f"{ident}: {text}")


def _row(ident: PipelineId, waited: Waited) -> dict[str, Any]:
    return {
        "pipeline": str(ident),
        "outcome": waited.verdict.value,
        "position": waited.position_text,
        "reached": position_text(waited.reached),
        "behind": waited.behind,
        "unit": waited.unit,
        "why": waited.why,
        "seconds": round(waited.seconds, 3),
    }
