"""Commands that change a channel's state: start, resume, pause, stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from arbiter import requests
from arbiter.arbiter import Arbiter
from arbiter.errors import Unreachable
from arbiter.values import Channel, ChannelState
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    channel_named,
    cluster_options,
    joined,
    output_option,
    timeout_option,
)
from setl.cli.channels.starting import refuse_unready
from setl.cli.terminal.completion import complete_channel
from setl.cli.terminal.output import console, print_value, to_stderr
from setl.cli.terminal.progress import busy
from setl.node.cluster.view import NO_ANSWER, ClusterView, look_at
from setl.node.stored import pipelines_of
from setl.waiting import polling

_POLL = 0.2
_OLD_FAILURE = 3.0
"""Seconds for which a pipeline that says "failed" may not have begun its next attempt yet."""

_STEADY = 3.0
"""Seconds for which a pipeline has to run until it counts as started."""

_NOTICE_AFTER = 2.0
"""Seconds until it is said that no process leads a pipeline: one may be starting just now."""

_NEVER_LEAVE_STOP = ("pause", "resume")
"""Commands that change a channel between START and PAUSE only, as over HTTP."""

_wait = click.option(
    "--wait/--no-wait", default=True, help="Wait until every pipeline follows. [default: wait]"
)


@dataclass(frozen=True, slots=True)
class _PipelineState:
    """How far a pipeline has followed its channel's state."""

    pipeline: str
    leader: str
    state: str
    error: str
    missing: str
    there: bool
    failed: bool
    epoch: int | None = None


def _state_command(name: str, state: ChannelState, text: str) -> click.Command:
    @click.command(name, help=text)
    @click.argument("channel", shell_complete=complete_channel)
    @_wait
    @timeout_option
    @cluster_options
    @output_option
    def command(  # noqa: PLR0917 - click passes options by name
        channel: str,
        wait: bool,
        timeout: float,
        zookeeper: str,
        root: str,
        output: str,
        checks: bool = False,
    ) -> None:
        with joined(zookeeper, root) as arbiter:
            found = channel_named(arbiter, channel)
            with acting(arbiter, name, channel):
                if checks and found.state is ChannelState.STOP:
                    refuse_unready(found, arbiter)
                if name in _NEVER_LEAVE_STOP:
                    stored = _unless_stopped(arbiter, channel, state)
                else:
                    stored = requests.change_state(arbiter, channel, state)
            states = None
            if wait:
                with busy(f"waiting until every pipeline of {channel} follows"):
                    states = _follow(arbiter, stored, timeout)
        _report(stored, states, timeout, output)

    if name == "start":
        command.params.insert(1, _checks())
    return command


def _checks() -> click.Option:
    return click.Option(
        ["--check/--no-check", "checks"],
        default=True,
        help="Look at the servers first if the channel is stopped. [default: check]",
    )


def _unless_stopped(arbiter: Arbiter, name: str, state: ChannelState) -> Channel:
    """Pause or resume; somebody may stop the channel at the same time."""
    try:
        return requests.pause_or_resume(arbiter, name, state)
    except requests.Refused:
        raise AnswerNo(f"channel {name} is stopped: `setl start {name}` starts it") from None


def _follow(arbiter: Arbiter, channel: Channel, limit: float) -> Sequence[_PipelineState]:
    """Wait until every pipeline is where the channel's state says, or for `limit` seconds."""
    began = time.monotonic()
    reported = False
    running: dict[str, tuple[tuple[str, int | None], float]] = {}
    states: list[_PipelineState] = []
    for left in polling(limit, _POLL):
        waited = time.monotonic() - began
        try:
            view = look_at(arbiter, channel.name)
        except Unreachable:
            if not left:
                raise
            continue
        states = [_pipeline_state(view, channel, p.pipeline) for p in pipelines_of(channel)]
        if not reported and waited >= _NOTICE_AFTER:
            reported = _report_missing(states)
        failed_again = waited >= _OLD_FAILURE
        states = [_once_steady(state, running, time.monotonic()) for state in states]
        if all(state.there or (state.failed and failed_again) for state in states):
            break
    return states


def _once_steady(
    state: _PipelineState, running: dict[str, tuple[tuple[str, int | None], float]], now: float
) -> _PipelineState:
    """A pipeline that runs is only there once it has for a while: it may fail at its first row.

    Args:
        state: the pipeline.
        running: which leadership of each pipeline runs, and since when it was seen to.
        now: monotonic time.
    """
    if state.state != "running":
        running.pop(state.pipeline, None)
        return state
    who = state.leader, state.epoch
    if state.pipeline not in running or running[state.pipeline][0] != who:
        running[state.pipeline] = who, now
    return replace(state, there=state.there and now - running[state.pipeline][1] >= _STEADY)


def _report_missing(states: Sequence[_PipelineState]) -> bool:
    """Whether there was something to say; whoever waits can fix it meanwhile."""
    missing = [state for state in states if state.missing and not state.there]
    for state in missing:
        to_stderr(f"waiting: {state.pipeline} {state.missing}")
    return bool(missing)


def _pipeline_state(view: ClusterView, channel: Channel, name: str) -> _PipelineState:
    seen = next(p for p in view.pipelines if p.ident.pipeline == name)
    failed = seen.state == "failed" or (not seen.leader and seen.hopeless)
    if channel.state is ChannelState.START:
        there = seen.state == "running"
    elif channel.state is ChannelState.PAUSE:
        # Who has failed, or is not there to lead, applies nothing either.
        there = seen.state in ("paused", "failed")
    else:
        there = not seen.leader and not _runs_anywhere(view, channel.name, name)
    return _PipelineState(
        str(seen.ident),
        seen.leader,
        seen.state,
        str(seen.figures.get("error", "")),
        seen.missing,
        there,
        failed and channel.state is ChannelState.START,
        seen.epoch,
    )


def _runs_anywhere(view: ClusterView, channel: str, pipeline: str) -> bool:
    idle = ("stopped", "standby", "failed")
    for answer in view.answers.values():
        for line in answer["pipelines"] if answer else ():
            mine = (line["channel"], line["pipeline"]) == (channel, pipeline)
            if mine and line["figures"]["state"] not in idle:
                return True
    return False


def _report(
    channel: Channel, states: Sequence[_PipelineState] | None, limit: float, output: str
) -> None:
    behind = [state for state in states or () if not state.there]
    if output != "table":
        value: dict[str, Any] = {"channel": channel.name, "state": channel.state.value}
        if states is not None:
            value["done"] = not behind
            value["pipelines"] = [
                {
                    "pipeline": p.pipeline,
                    "leader": p.leader,
                    "state": p.state,
                    "error": p.error,
                    "missing": p.missing,
                }
                for p in states
            ]
        print_value(value, output)
    if behind:
        lines = [f"  {p.pipeline}: {_why(p)}" for p in behind]
        begun = f"channel {channel.name} is set to {channel.state.value}, but"
        if all(state.failed for state in behind):
            raise AnswerNo("\n".join([f"{begun} failed:", *lines]))
        raise AnswerNo("\n".join([f"{begun} not everything followed in {limit:g} s:", *lines]))
    if output == "table":
        console().print(f"channel {channel.name}: {channel.state.value}")


def _why(state: _PipelineState) -> str:
    if state.state == NO_ANSWER:
        return f"its leader {state.leader} does not answer"
    leader = f" on {state.leader}" if state.leader else ""
    why = state.error or state.missing
    return f"{state.state}{leader}" + (f": {why}" if why else "")


start = _state_command(
    "start",
    ChannelState.START,
    "Start CHANNEL, or try again what failed in it.\n\nA stopped channel is checked first, as by"
    " `setl check` but for expressions, and not started if something must be fixed. A server that"
    " does not answer here is named, and keeps nothing from starting.",
)
resume = _state_command("resume", ChannelState.START, "Let a paused CHANNEL go on.")
pause = _state_command(
    "pause",
    ChannelState.PAUSE,
    "Pause CHANNEL: load no more, keep the leaders.\n\nWhat is loading is finished first. Nobody"
    " takes over while it lasts, unless `setl failover` asks for it. A stopped channel stays"
    " stopped.",
)
stop = _state_command(
    "stop",
    ChannelState.STOP,
    "Stop CHANNEL: load no more, give leaderships up.\n\nWhat is loading is finished first."
    " Nothing but `setl start` leaves this state.",
)
