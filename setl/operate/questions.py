"""What an operator is asked before something that interrupts or cannot be undone."""

from __future__ import annotations

from arbiter.values import PipelineId


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


def before_failover(pipeline: PipelineId, leader: str, *, to: str = "") -> str:
    """Before a leadership is taken away; `leader` is "" if nobody leads."""
    begun = f"Are you sure you want to fail {pipeline} over to {to or 'the next node'}"
    if not leader:
        return f"{begun}?"
    return (
        f"{begun}, deposing current leader {leader}? What it has in flight will be applied again."
    )


def before_drop(pipeline: PipelineId, letters: int, waiting: int) -> str:
    """Before dead letters are dropped, of which some still wait for a decision."""
    return (
        f"Are you sure you want to drop {letters} dead letters of {pipeline}, {waiting} of them"
        " open?"
    )
