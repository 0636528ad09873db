"""The command that spreads leaderships over the nodes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from arbiter import requests
from arbiter.arbiter import Arbiter
from arbiter.balancing import Move
from arbiter.errors import ArbiterError
from arbiter.requests import Refused
from arbiter.values import PipelineId, SignalKind
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    cluster_options,
    joined,
    output_option,
    requester,
    timeout_option,
)
from setl.cli.leadership.handing_over import carried_through, refusal
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.output import console, print_rows, print_value, to_stderr
from setl.node.cluster.rebalancing import Rebalance, leads_of, why_closed, why_stays
from setl.node.cluster.rebalancing import rebalance as planned
from setl.node.cluster.view import ClusterView, look_at
from setl.node.stored import preference_of
from setl.operate import units
from setl.operate.questions import before_rebalance

_COLUMNS = ("pipeline", "from", "to", "reason")
_DONE_COLUMNS = ("pipeline", "from", "to", "outcome", "leadership", "seconds", "redelivered")
_ON = "the cluster"


@dataclass(slots=True)
class _Step:
    """A move, and what became of it.

    Attributes:
        move: the move.
        outcome: planned, done, failed, or not done.
        leadership: number of the new leadership.
        epoch: likewise.
        seconds: from the request until the new leader worked.
        redelivered: rows that were applied again, None if that is not known.
    """

    move: Move
    outcome: str = "planned"
    leadership: int | None = None
    epoch: int | None = None
    seconds: float | None = None
    redelivered: int | None = None

    def row(self) -> dict[str, Any]:
        """It under stable names."""
        return {
            "pipeline": str(self.move.pipeline),
            "from": self.move.leader,
            "to": self.move.to,
            "reason": self.move.reason,
            "outcome": self.outcome,
            "leadership": self.leadership,
            "epoch": self.epoch,
            "seconds": self.seconds,
            "redelivered": self.redelivered,
        }


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be done, do nothing.")
@click.option(
    "--at-most", type=click.IntRange(min=1), metavar="N", help="Do no more than N switchovers."
)
@yes_option
@timeout_option
@cluster_options
@output_option
def rebalance(  # noqa: PLR0917 - click passes options by name
    dry_run: bool,
    at_most: int | None,
    yes: bool,
    timeout: float,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Spread the leaderships over the nodes again, in order.

    By the rules of take-over: preferred nodes first, then the least loaded. Switchovers are done
    one after another, and nothing is applied twice. A pipeline with a load, a cut-over or a
    switchover in hand stays, and so does one that is behind. The first switchover that fails ends
    it, with exit status 1. --timeout is for each of them.
    """
    with joined(zookeeper, root) as arbiter:
        plan = planned(arbiter, look_at(arbiter), at_most)
        steps = [_Step(move) for move in plan.moves]
        if output == "table":
            _show_plan(plan)
        if dry_run or not steps:
            if output != "table":
                _print(plan, steps, plan.after, output)
            return
        confirm(before_rebalance(len(steps)), yes=yes)
        try:
            with acting(arbiter, "rebalance", _ON) as entry:
                _carry_out(arbiter, steps, timeout)
                entry.outcome = units.count(len(steps), "switchover", "switchovers") + " done"
        finally:
            _show_steps(plan, steps, _leads_now(arbiter), output)


def _carry_out(arbiter: Arbiter, steps: Sequence[_Step], limit: float) -> None:
    """Do the switchovers one after another; the first that fails ends it.

    Raises:
        AnswerNo: one failed; says which, and what is not done.
    """
    for step in steps:
        step.outcome = "not done"
    for done, step in enumerate(steps):
        try:
            _hand_over(arbiter, step, limit)
        except (AnswerNo, ArbiterError) as error:
            step.outcome = "failed"
            why = error.message if isinstance(error, AnswerNo) else str(error)
            left = len(steps) - done - 1
            others = [
                units.count(done, "switchover is done", "switchovers are done"),
                *([units.count(left, "was not begun", "were not begun")] if left else []),
            ]
            raise AnswerNo(f"{why}; {', '.join(others)}") from error


def _hand_over(arbiter: Arbiter, step: _Step, limit: float) -> None:
    move = step.move
    why = _outdated(arbiter, look_at(arbiter), move)
    if why:
        raise refusal(move.pipeline, SignalKind.SWITCHOVER, why, "table")
    channel = arbiter.channels.one(move.pipeline.channel)
    preference = preference_of(channel, move.pipeline.pipeline)
    with acting(arbiter, "switchover", str(move.pipeline)) as entry:
        try:
            sent = requests.switchover(arbiter, move.pipeline, preference, requester(), to=move.to)
        except Refused as error:
            raise refusal(move.pipeline, SignalKind.SWITCHOVER, str(error), "table") from None
        outcome = carried_through(arbiter, move.pipeline, sent, limit)
        entry.outcome = f"done: {move.leader} → {outcome.to}, to rebalance"
    step.outcome, step.leadership, step.epoch = "done", outcome.leadership, outcome.epoch
    step.seconds, step.redelivered = outcome.seconds, outcome.redelivered


def _outdated(arbiter: Arbiter, view: ClusterView, move: Move) -> str:
    """Why a move that was planned is not to be done any more; "" if it is."""
    now = view.pipeline(move.pipeline)
    if now.leader != move.leader:
        return f"{now.leader or 'nobody'} leads it by now"
    why = why_stays(arbiter, now)
    closed = why_closed(view, move.to)
    return why or (f"node {move.to} {closed}" if closed else "")


def _show_plan(plan: Rebalance) -> None:
    for ident, why in sorted(plan.stays.items(), key=_by_name):
        console().print(f"{ident} stays where it is: {why}")
    for nid, why in sorted(plan.closed.items()):
        console().print(f"node {nid} gets nothing: it {why}")
    if not plan.moves:
        console().print(f"Nothing to do: {_counts(plan.before)}")
        return
    print_rows([_Step(move).row() for move in plan.moves], _COLUMNS, "table")
    console().print(f"now: {_counts(plan.before)}")
    console().print(f"then: {_counts(plan.after)}")


def _leads_now(arbiter: Arbiter) -> Mapping[str, int] | None:
    """How many pipelines each live node leads; None if ZooKeeper does not answer."""
    try:
        return leads_of(arbiter.facts())
    except ArbiterError:
        return None


def _show_steps(
    plan: Rebalance, steps: Sequence[_Step], now: Mapping[str, int] | None, output: str
) -> None:
    if output == "table":
        print_rows([step.row() for step in steps], _DONE_COLUMNS, output)
        if now is not None:
            console().print(f"now: {_counts(now)}")
    else:
        _print(plan, steps, now, output)
    if now is None or any(step.outcome != "done" for step in steps):
        return
    if any(now.get(nid) != count for nid, count in plan.after.items()):
        gone = sorted(plan.after.keys() - now.keys())
        left = f": {', '.join(gone)} left meanwhile" if gone else ""
        to_stderr(
            f"the nodes lead other numbers than planned{left}; `setl rebalance` once more"
            " plans again",
        )


def _print(
    plan: Rebalance, steps: Sequence[_Step], after: Mapping[str, int] | None, output: str
) -> None:
    value = {
        "moves": [step.row() for step in steps],
        "stays": [
            {"pipeline": str(ident), "reason": why}
            for ident, why in sorted(plan.stays.items(), key=_by_name)
        ],
        "closed": [{"node": nid, "reason": why} for nid, why in sorted(plan.closed.items())],
        "leads": dict(plan.before),
        "leads_after": None if after is None else dict(after),
    }
    print_value(value, output)


def _counts(leads: Mapping[str, int]) -> str:
    return ", ".join(f"{nid} leads {count}" for nid, count in leads.items()) or "no node lives"


def _by_name(item: tuple[PipelineId, str]) -> str:
    return str(item[0])
