"""What a node remembers of the leaderships of one pipeline, from one cycle to the next. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from arbiter.errors import Contact
from arbiter.values import LeaderLock, NodeInfo

UNWATCHED = 3.0
"""Seconds between two looks with an answer after which much may have gone by unseen."""


CLOCKS_DIFFER = 1.0
"""Seconds by which the clocks of two machines may differ."""


class Ending(Enum):
    """How this node's last leadership ended, as far as nobody has led since."""

    DISCONNECTED = "disconnected"  # its session ended
    STEPPED_DOWN = "gave up"  # by itself, so that another node might lead
    DEPOSED = "had taken away"  # by an operator, while its session lived
    RENEWED = "renewed"  # given up only to have it again under another epoch
    STOPPED = "stopped"  # the channel was stopped, which is nobody's turn to take over


@dataclass(frozen=True, slots=True)
class ElectionMemory:
    """What a node remembers of one pipeline from one cycle to the next.

    Attributes:
        own_lock: the leader lock it held when it last looked.
        ending: how its last leadership ended; None once another has led, or if it never did.
        ended_at: monotonic time at which it saw that ending.
        vacant_since: monotonic time at which it first saw that no node leads.
        leader: nid of the last leader it saw, "" if it saw none.
        leader_leaves: whether that node, while it still led, said that it would lead no more.
        leader_gone: whether that node itself was gone when the vacancy was seen, so that its
            session had expired rather than given the leadership up.
        led_until: monotonic time at which this node last knew that leader to lead, if that was
            long before it saw the end: it was frozen, or heard nothing of the cluster, meanwhile.
    """

    own_lock: LeaderLock | None = None
    ending: Ending | None = None
    ended_at: float = 0.0
    vacant_since: float | None = None
    leader: str = ""
    leader_leaves: bool = False
    leader_gone: bool = False
    led_until: float | None = None


@dataclass(frozen=True, slots=True)
class Vacancy:
    """Since when nobody applied anything, as far as is known.

    Attributes:
        earliest: not before that.
        latest: not after that; the same, or little more, for who watched it happen.
        noticed: when the leader was seen to be gone, if it did not say itself when it ended: it may
            have hung long before its session fell silent, or have applied changes after. None if
            the end is known.
    """

    earliest: float
    latest: float
    noticed: float | None = None

    def later_by(self, seconds: float) -> Vacancy:
        """The same by another clock."""
        noticed = None if self.noticed is None else self.noticed + seconds
        return Vacancy(self.earliest + seconds, self.latest + seconds, noticed)

    def after(self, sign: float | None) -> Vacancy:
        """The same, as the leader stored its last checkpoint at the time `sign`, None if unknown.

        What was stored after the leader was seen to be gone was not stored by it.
        """
        if sign is None or self.noticed is None or sign > self.noticed + CLOCKS_DIFFER:
            return self
        sign = min(sign, self.noticed)
        return Vacancy(sign, max(sign, self.latest), self.noticed)


def owned(leader_lock: LeaderLock | None, session: int) -> bool:
    """Whether `leader_lock` is held by `session`; session 0 is none and holds nothing."""
    return leader_lock is not None and session != 0 and leader_lock.session == session


def vacancy_of(
    past: ElectionMemory, session_timeout: float, still_since: float | None = None
) -> Vacancy | None:
    """Since when nobody applied anything, as far as this node can tell, monotonic; or None.

    A leader that died was there until its session began to be silent, so its vacancy is dated
    back by the session timeout, at most that much too far. Who saw nothing of the cluster for a
    while does not know when in that time another leader ended. What led here did so until then:
    a process that stood still applied nothing.

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
        known = (past.ended_at, still_since, past.led_until)
        began = min(each for each in known if each is not None)
        return Vacancy(began, began)
    if past.vacant_since is None or not past.leader:
        return None
    latest = past.vacant_since - (session_timeout if past.leader_gone else 0.0)
    earliest = latest if past.led_until is None else min(latest, past.led_until)
    return Vacancy(earliest, latest, past.vacant_since)


def after_look(
    past: ElectionMemory,
    *,
    now: float,
    contact: Contact,
    session: int,
    leader_lock: LeaderLock | None,
    nodes: Mapping[str, NodeInfo] | None = None,
    heard_before: float | None = None,
) -> ElectionMemory:
    """What a node remembers after it has looked (with an answer) at a pipeline.

    `heard_before` is as in `arbiter.snapshot.Snapshot`.

    A node that stops gives its leaderships up, and is gone a moment later. Who looks but after that
    would take it for one that died, if it had not said before that it leaves.
    """
    if contact is Contact.LOST:
        past = _after_loss(past, session=0, now=now, heard_before=heard_before)
        led_until = past.vacant_since if past.led_until is None else past.led_until
        return replace(past, vacant_since=None, led_until=led_until)
    if leader_lock is not None and owned(leader_lock, session):
        return ElectionMemory(own_lock=leader_lock, leader=leader_lock.nid)
    past = _after_loss(past, session=session, now=now, heard_before=heard_before)
    if leader_lock is not None:
        leads = None if nodes is None else nodes.get(leader_lock.nid)
        return ElectionMemory(
            leader=leader_lock.nid, leader_leaves=leads is not None and not leads.ready
        )
    if past.vacant_since is not None:
        return past
    gone = nodes is not None and past.leader not in nodes and not past.leader_leaves
    led_until = past.led_until
    if led_until is None:
        led_until = unwatched_since(heard_before, now)
    return replace(past, vacant_since=now, leader_gone=gone, led_until=led_until)


def after_stepping_down(past: ElectionMemory, ending: Ending, *, now: float) -> ElectionMemory:
    """What a node remembers once it has given the leadership up."""
    return ElectionMemory(ending=ending, ended_at=now, vacant_since=now, leader=past.leader)


def _after_loss(
    past: ElectionMemory, *, session: int, now: float, heard_before: float | None
) -> ElectionMemory:
    """Note how the leadership ended, if there was one."""
    if past.own_lock is None:
        return past
    ending = Ending.DEPOSED if past.own_lock.session == session else Ending.DISCONNECTED
    unwatched = unwatched_since(heard_before, now)
    return replace(past, own_lock=None, ending=ending, ended_at=now, led_until=unwatched)


def unwatched_since(heard_before: float | None, now: float) -> float | None:
    """When a time began in which nothing was heard of the cluster; None if it was short."""
    if heard_before is None or now - heard_before <= UNWATCHED:
        return None
    return heard_before
