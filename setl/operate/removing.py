"""Removing a stopped channel from the cluster, and what targets keep of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arbiter.arbiter import Arbiter
from arbiter.errors import Conflict
from arbiter.requests import Refused
from arbiter.values import Channel, ChannelState, PipelineId

_BY_PIPELINE = (
    "setl_checkpoint", "setl_fence", "setl_writer", "setl_deadletter", "setl_ddl", "setl_applied",
    "setl_question", "setl_conflict",
)  # fmt: skip


def objection_to_remove(channel: Channel) -> str:
    """Why a channel cannot be removed now; "" if it can, as far as its definition says."""
    if channel.state is not ChannelState.STOP:
        return f"channel {channel.name} is not stopped: `setl stop {channel.name}` stops it"
    return ""


def remove(arbiter: Arbiter, channel: Channel) -> None:
    """Remove a channel with its definition, signals, history and positions, or nothing of it.

    Args:
        arbiter: a session.
        channel: as it was read when somebody decided to remove it.

    Raises:
        Refused: it is not stopped, somebody still leads, or it was changed meanwhile.
    """
    why = objection_to_remove(channel)
    if why:
        raise Refused(why)
    try:
        arbiter.channels.remove(channel)
    except Conflict as error:
        raise Refused(f"{error}; nothing was removed") from error


def left_in_targets(pipelines: Iterable[PipelineId]) -> Sequence[str]:
    """Statements that remove what MySQL targets keep of a channel's pipelines."""
    keys = ", ".join(f"'{pipeline}'" for pipeline in pipelines)
    if not keys:
        return ()
    return [f"DELETE FROM retl.{table} WHERE pipeline IN ({keys});" for table in _BY_PIPELINE]
