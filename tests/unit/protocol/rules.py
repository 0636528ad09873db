"""What a node of the model decides: the real election, asked about a state of the model.

What a node remembers (`arbiter.election_memory.ElectionMemory`) only delays a decision, so the
model has none of it: every look is a node's first, and every delay has passed since.
"""

from __future__ import annotations

from functools import cache

from arbiter.election import Action, ElectionSettings, View, decide
from arbiter.election_memory import ElectionMemory, after_look
from arbiter.errors import Contact
from arbiter.values import ChannelState, LeaderLock, LeaderLockStatus

_SETTINGS = ElectionSettings()
_LONG_AGO, _NOW, _SESSION_TIMEOUT = 0.0, 1000.0, 10.0
_SESSION, _EARLIER_SESSION, _OTHER_SESSION = 101, 100, 200
_EPOCH = 7


@cache
def action(
    contact: Contact,
    *,
    late: bool = False,
    wanted: str = "START",
    holder: str = "",
    busy: bool = False,
    burnt_epoch: bool = False,
    trust_nid: bool = False,
    serves: bool = True,
) -> Action:
    """What the node ``n1`` does.

    Args:
        contact: what it knows of its session.
        late: whether the arbiter has been silent for longer than I3's deadline.
        wanted: the channel's state.
        holder: whose the leader lock is: ``own``, ``earlier`` (of a process of this node that is
            gone), ``other``, or "" for nobody's.
        busy: whether a run works here.
        burnt_epoch: whether a run was cancelled here under the leader lock's epoch.
        trust_nid: compare node ids instead of sessions, which the real rules do not.
        serves: whether the node serves this kind of pipeline.
    """
    sessions = {"own": _SESSION, "earlier": _EARLIER_SESSION, "other": _OTHER_SESSION}
    leader_lock = None
    if holder:
        nid = "n2" if holder == "other" else "n1"
        session = _SESSION if trust_nid and nid == "n1" else sessions[holder]
        leader_lock = LeaderLock(nid, LeaderLockStatus.OVERTAKE, _EPOCH, session)
    session = 0 if contact is Contact.LOST else _SESSION
    past = after_look(
        ElectionMemory(), now=_LONG_AGO, contact=contact, session=session, leader_lock=leader_lock
    )
    view = View(
        now=_NOW,
        contact=contact,
        last_contact=_LONG_AGO if late else _NOW,
        session_timeout=_SESSION_TIMEOUT,
        session=session,
        nid="n1",
        state=ChannelState(wanted),
        leader_lock=leader_lock,
        ready=True,
        busy=busy,
        past=past,
        burnt_epoch=_EPOCH if burnt_epoch else 0,
        rank=0 if serves else None,
    )
    return decide(view, _SETTINGS).action
