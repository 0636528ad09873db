"""What a node remembers of the leaderships of one pipeline, from one cycle to the next. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from arbiter.arbiter import Contact
from arbiter.values import Mainstem, NodeInfo


class Ending(Enum):
    """How this node's last leadership ended, as far as nobody has led since."""

    DISCONNECTED = "disconnected"  # its session ended
    RESIGNED = "gave up"  # by itself, so that another node might lead
    RELEASED = "had taken away"  # by an operator, while its session lived
    RENEWED = "renewed"  # given up only to have it again under another epoch
    STOPPED = "stopped"  # the channel was stopped, which is nobody's turn to take over


@dataclass(frozen=True, slots=True)
class Past:
    """What a node remembers of one pipeline from one cycle to the next.

    Attributes:
        held: the mainstem it held when it last looked.
        ending: how its last leadership ended; None once another has led, or if it never did.
        ended_at: monotonic time at which it saw that ending.
        vacant_since: monotonic time at which it first saw that nobody leads.
        leader: nid of the last leader it saw, "" if it saw none.
        leader_leaves: whether that node, while it still led, said that it would lead no more.
        leader_gone: whether that node itself was gone when the vacancy was seen, so that its
            session had expired rather than given the leadership up.
    """

    held: Mainstem | None = None
    ending: Ending | None = None
    ended_at: float = 0.0
    vacant_since: float | None = None
    leader: str = ""
    leader_leaves: bool = False
    leader_gone: bool = False


def owned(mainstem: Mainstem | None, session: int) -> bool:
    """Whether `mainstem` is held by `session`; session 0 is none and holds nothing."""
    return mainstem is not None and session != 0 and mainstem.session == session


def vacant_from(
    past: Past, session_timeout: float, still_since: float | None = None
) -> float | None:
    """Monotonic time since which nobody applied anything, as far as this node can tell; or None.

    A leader that died was there until its session began to be silent, so its vacancy is dated
    back by the session timeout, at most that much too far.

    Args:
        past: what the node remembers.
        session_timeout: seconds.
        still_since: when this node, as the last leader, was told to begin no load or to cancel
            what ran; None if it was not. A session may outlive a silence of hours, as it does
            when ZooKeeper has no quorum: the leadership is given up after it, and was of no use
            since its beginning.
    """
    if past.ending is not None:
        if past.ending is Ending.STOPPED:
            return None
        return past.ended_at if still_since is None else min(past.ended_at, still_since)
    if past.vacant_since is None or not past.leader:
        return None
    return past.vacant_since - (session_timeout if past.leader_gone else 0.0)


def after_look(
    past: Past,
    *,
    now: float,
    contact: Contact,
    session: int,
    mainstem: Mainstem | None,
    nodes: Mapping[str, NodeInfo] | None = None,
) -> Past:
    """What a node remembers after it has looked (with an answer) at a pipeline.

    A node that stops gives its leaderships up, and is gone a moment later. Who looks but after that
    would take it for one that died, if it had not said before that it leaves.
    """
    if contact is Contact.LOST:
        past = _after_loss(past, session=0, now=now)
        return replace(past, vacant_since=None)
    if mainstem is not None and owned(mainstem, session):
        return Past(held=mainstem, leader=mainstem.nid)
    past = _after_loss(past, session=session, now=now)
    if mainstem is not None:
        leads = None if nodes is None else nodes.get(mainstem.nid)
        return Past(leader=mainstem.nid, leader_leaves=leads is not None and not leads.ready)
    if past.vacant_since is not None:
        return past
    gone = nodes is not None and past.leader not in nodes and not past.leader_leaves
    return replace(past, vacant_since=now, leader_gone=gone)


def after_resignation(past: Past, ending: Ending, *, now: float) -> Past:
    """What a node remembers once it has given the leadership up."""
    return Past(ending=ending, ended_at=now, vacant_since=now, leader=past.leader)


def _after_loss(past: Past, *, session: int, now: float) -> Past:
    """Note how the leadership ended, if there was one."""
    if past.held is None:
        return past
    ending = Ending.RELEASED if past.held.session == session else Ending.DISCONNECTED
    return replace(past, held=None, ending=ending, ended_at=now)
