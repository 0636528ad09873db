"""What an operator is asked before something that interrupts or cannot be undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arbiter.values import PipelineId
from setl.counting import count
from setl.model.position import Position


def before_switchover(pipeline: PipelineId, leader: str, *, to: str = "", when: str = "") -> str:
    """Before a leader is asked to hand over.

    Args:
        pipeline: the pipeline.
        leader: who leads.
        to: who is to lead, "" for the next.
        when: the time it is scheduled for, "" for now.
    """
    at = f" at {when}" if when else ""
    return (
        f"Are you sure you want to switch {pipeline} over to {to or 'the next node'}{at},"
        f" demoting current leader {leader}?"
    )


def before_rebalance(moves: int) -> str:
    """Before leaderships are handed over one after another, to spread the load."""
    if moves == 1:
        return "Are you sure you want to do this switchover?"
    return f"Are you sure you want to do these {moves} switchovers, one after another?"


def before_overwriting(tables: Sequence[str]) -> str:
    """Before rows are sent that may replace newer ones of the target."""
    return (
        f"Clients of the target must not write to {', '.join(tables)} until this is done: newer"
        " rows would be replaced."
    )


def before_failover(pipeline: PipelineId, leader: str, *, to: str = "") -> str:
    """Before a leadership is taken away; `leader` is "" if no node leads."""
    begun = f"Are you sure you want to fail {pipeline} over to {to or 'the next node'}"
    if not leader:
        return f"{begun}?"
    return (
        f"{begun}, deposing current leader {leader}? What it has in flight will be applied again."
    )


def before_drop(pipeline: PipelineId, letters: int, waiting: int) -> str:
    """Before dead letters are dropped, of which some still wait for a decision."""
    open_ = "which is open" if letters == waiting == 1 else f"{waiting} of them open"
    if waiting == 0:
        open_ = "of which none is open" if letters != 1 else "which is not open"
    return f"Are you sure you want to drop {count(letters, 'dead letter')} of {pipeline}, {open_}?"


def before_apply(channel: str, revision: str) -> str:
    """Before a channel's file is replaced, whose revision is given."""
    return f"Store this file as channel {channel}, in place of revision {revision}?"


def before_remove(channel: str, pipelines: Iterable[str]) -> str:
    """Before a channel is removed, with the names of its pipelines."""
    return f"Remove channel {channel} ({', '.join(pipelines)}) with its history and positions?"


def before_move(pipeline: PipelineId, position: Position) -> str:
    """Before a stopped pipeline is moved to another position of its source."""
    return f"Are you sure you want to move {pipeline} to {position}?"


def before_cutover(pipeline: PipelineId, step: str = "") -> str:
    """Before a cut-over is begun, or carried on at a step."""
    if not step:
        return f"Are you sure you want to make the source of {pipeline} read-only?"
    return f"Go on with the cut-over of {pipeline} at step `{step}`?"


def before_abort(pipeline: PipelineId) -> str:
    """Before a cut-over is put back whose last step is done."""
    return (
        f"The application may write to the target of {pipeline} by now. Let its source take"
        " writes again?"
    )


def before_early_abort(pipeline: PipelineId) -> str:
    """Before a cut-over is put back that is under way or was broken off."""
    return (
        f"Put back what the cut-over of {pipeline} has changed? Whoever carries it on is stopped,"
        " and its source takes writes as before."
    )
