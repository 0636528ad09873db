"""The epochs that targets know, beside those that ZooKeeper gives.

ZooKeeper counts from the beginning again when it was set up again; targets do not forget. What
they know is a lower bound for the next leadership's epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import LeaderLock
from setl.errors import SetlError
from setl.operate.positions.stored import read_stored

if TYPE_CHECKING:
    from setl.channel.file import Pipeline


@dataclass(frozen=True, slots=True)
class KnownEpoch:
    """The highest epoch that is known of a pipeline outside its leader lock.

    Attributes:
        epoch: 0 if nobody has led it yet.
        nid: the node that raised the target's fence to it, "" without a fence.
        problem: why it is not known, "" if it is.
    """

    epoch: int = 0
    nid: str = ""
    problem: str = ""


def known_epoch(pipeline: Pipeline, channel: str, arbiter: Arbiter) -> KnownEpoch:
    """Ask a pipeline's target, and whatever keeps its checkpoint, for the newest epoch.

    Args:
        pipeline: from a channel file with its references resolved.
        channel: the channel's name.
        arbiter: keeps the checkpoint of a target that cannot.
    """
    try:
        stored = read_stored(pipeline, channel, arbiter)
    except SetlError as error:
        return KnownEpoch(problem=str(error))
    fence = stored.fence or 0
    if (stored.by or 0) > fence:
        return KnownEpoch(stored.by or 0)
    return KnownEpoch(fence, stored.fenced_by)


def refuses(known: KnownEpoch, leads: LeaderLock) -> bool:
    """Whether a target refuses a leadership.

    Two of the same number are distinguished by the node.
    """
    if leads.epoch == known.epoch:
        return known.nid not in ("", leads.nid)
    return leads.epoch < known.epoch


def verdict(known: KnownEpoch, leads: LeaderLock | None, coming: int) -> str:
    """Whether leaderships of a pipeline are refused; "" if they are not.

    Args:
        known: what the target knows.
        leads: the present leadership, None if there is none.
        coming: a number below the epoch of every leadership that begins from now on.
    """
    if known.problem:
        return f"not known: {known.problem}"
    by = f"the target knows epoch {known.epoch}"
    if leads is not None and refuses(known, leads):
        return f"{by}: it refuses the present leader's, {leads.epoch}"
    if coming < known.epoch:
        return f"{by}: a leader elected now would be refused"
    return ""
