"""The answers to health probes of load balancers, Kubernetes and people. Pure.

The codes are Patroni's: 200 yes, 503 no, and the body says why. Nothing here asks anybody: an
arbiter that hangs must not make a node look dead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from arbiter.errors import Contact
from arbiter.snapshot import Snapshot
from arbiter.values import Facts, PipelineId
from arbiter.znodes import Session
from setl.error_text import public
from setl.node.cluster.naming import known_pipelines, meant_by
from setl.node.cluster.view import public_facts
from setl.node.leading.watchdog import contact_at
from setl.node.public_form import public_status
from setl.node.status import NodeStatus, PipelineStatus
from setl.node.stored import preference_of
from setl.run.measured.figures import RunState

OK = 200
BAD_REQUEST = 400
NOT_FOUND = 404
AMBIGUOUS = 409
TOO_MANY = 429
SERVICE_UNAVAILABLE = 503

_APPLYING = frozenset({RunState.RUNNING, RunState.RETRYING})
_AS_WANTED = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.STOPPED})


class Reply(NamedTuple):
    """An HTTP status code, a JSON body, and in how many seconds it is worth trying again."""

    code: int
    body: dict[str, Any]
    retry_after: int = 1


NOT_LOOKED = Reply(SERVICE_UNAVAILABLE, {"error": "this node has not looked at the cluster yet"})


@dataclass(frozen=True, slots=True)
class Moment:
    """The facts from which probes are answered.

    Attributes:
        at: monotonic time.
        status: the node and its pipelines.
        contact: how well the arbiter is reached; LOST also from the moment at which the watchdog
            cancels what runs because nothing was heard for too long (I3).
        silent: seconds since the session was surely alive.
        session: id of the session, 0 without one.
        problem: why ZooKeeper is not reached, "" if it is, or if nobody knows.
        snapshot: the last look at the cluster, None before the first.
    """

    at: float
    status: NodeStatus
    contact: Contact
    silent: float
    session: int
    problem: str
    snapshot: Snapshot | None

    @property
    def facts(self) -> Facts:
        """What was seen in the last look; nothing before the first."""
        return self.snapshot.facts if self.snapshot else Facts()

    @property
    def age(self) -> float | None:
        """Seconds since the last look, None before the first."""
        return round(max(0.0, self.at - self.snapshot.taken), 3) if self.snapshot else None


def moment(at: float, status: NodeStatus, session: Session, snapshot: Snapshot | None) -> Moment:
    """Put together what is known at the monotonic time `at`."""
    return Moment(
        at=at,
        status=status,
        contact=contact_at(session, at),
        silent=max(0.0, at - session.last_contact()),
        session=session.session_id(),
        problem=session.problem(),
        snapshot=snapshot,
    )


def public_moment(now: Moment) -> Moment:
    """The same facts, as far as anybody may read them."""
    return replace(
        now,
        status=public_status(now.status),
        problem=public(now.problem),
        snapshot=now.snapshot and replace(now.snapshot, facts=public_facts(now.snapshot.facts)),
    )


def health(now: Moment) -> Reply:
    """Whether the node is warm and reaches the arbiter, so that it could lead."""
    why = _unfit(now)
    body = {"nid": now.status.nid, "contact": now.contact.value, "warm": now.status.warm}
    return _reply(why, body)


ENGINE_SILENCE = 30.0
"""Seconds without an answer after which what the runs need counts as hanging."""


def hangs(at: float, answered: float | None) -> str:
    """Why what the runs need counts as hanging, "" if it does not.

    Args:
        at: monotonic time.
        answered: see `setl.node.engines.engine.Engine.last_answer`.
    """
    age = 0.0 if answered is None else at - answered
    return f"Spark's JVM has not answered for {age:.0f} s" if age > ENGINE_SILENCE else ""


def liveness(
    nid: str, at: float, last_cycle: float | None, limit: float, answered: float | None
) -> Reply:
    """Whether the node's main loop turns, and its engine answers; else the process is to be killed.

    What a pipeline does has no part in it: a failed one is not fixed by killing the process.

    Args:
        nid: the node.
        at: monotonic time.
        last_cycle: when the loop completed a cycle last; None while it has not begun, since
            getting warm takes as long as it takes, or has ended.
        limit: seconds that a cycle may take.
        answered: see `setl.node.engines.engine.Engine.last_answer`.
    """
    if last_cycle is None:
        return _reply("", {"nid": nid, "cycle_age": None, "engine_age": None})
    age = max(0.0, at - last_cycle)
    why = f"no cycle was completed for {age:.1f} s, more than {limit:g} s" if age > limit else ""
    why = why or hangs(at, answered)
    silent = None if answered is None else round(max(0.0, at - answered), 3)
    return _reply(why, {"nid": nid, "cycle_age": round(age, 3), "engine_age": silent})


def readiness(now: Moment, lag: float | None, name: str = "") -> Reply:
    """Whether the node does all it should: a warm standby, or a leader that keeps up.

    Args:
        now: what is known.
        lag: seconds that a pipeline led here may be behind; None for any. A lag that is not
            known is too large, and a pipeline that stalls is behind for as long as it does.
        name: the only pipeline to look at; "" for all.
    """
    pipeline: PipelineId | None = None
    if name:
        found = find(name, now)
        if isinstance(found, Reply):
            return found
        pipeline = found
    led = [
        line
        for line in now.status.pipelines
        if line.mine and (pipeline is None or _is(line, pipeline))
    ]
    whys = [_unfit(now), *(_unready(line, lag) for line in led)]
    whys += [_not_ready_reason(now, pipeline)] if pipeline is not None and not led else []
    body: dict[str, Any] = {
        "nid": now.status.nid,
        "contact": now.contact.value,
        "warm": now.status.warm,
        "leads": [
            {
                "pipeline": f"{line.channel}/{line.pipeline}",
                "state": line.figures.state.value,
                "lag": line.figures.lag,
            }
            for line in led
        ],
    }
    return _reply("; ".join(filter(None, whys)), body)


def leader(now: Moment, name: str) -> Reply:
    """Whether this node leads a pipeline and applies its changes.

    A yes is true when it is given, and may be over when it arrives: the fence in the target, not
    this answer, keeps two nodes from writing (I2).
    """
    found = find(name, now)
    if isinstance(found, Reply):
        return found
    return _reply(_not_leading(now, found), _leadership_of(now, found))


def standby(now: Moment, name: str) -> Reply:
    """Whether this node could take a pipeline over that it does not lead."""
    ident = find(name, now)
    if isinstance(ident, Reply):
        return ident
    nid, line, why = now.status.nid, _line(now, ident), _unfit(now)
    if line is not None and line.mine:
        why = f"{nid} leads {ident}"
    elif channel := now.facts.channels.get(ident.channel):
        never = preference_of(channel, ident.pipeline).why_never(nid, now.status.serves)
        why = (
            f"{nid} never leads {ident}: {never}" if never else why or _not_ready_reason(now, ident)
        )
    return _reply(why, _leadership_of(now, ident))


def find(name: str, now: Moment) -> PipelineId | Reply:
    """The pipeline that is meant, or the answer if there is none or more than one."""
    if now.snapshot is None:
        return NOT_LOOKED
    return find_in(name, now.facts)


def find_in(name: str, facts: Facts) -> PipelineId | Reply:
    """As `find`, in facts of any origin."""
    meant = meant_by(name, facts)
    if len(meant) == 1:
        return meant[0]
    if meant:
        choices = [str(p) for p in meant]
        error = f"{name!r} may be {' or '.join(choices)}"
        return Reply(AMBIGUOUS, {"error": error, "choices": choices})
    known = [str(p) for p in known_pipelines(facts)]
    error = f"there is no pipeline {name!r}; known: {', '.join(known) or 'none'}"
    return Reply(NOT_FOUND, {"error": error, "choices": known})


def seconds(name: str, text: str | None, *, most: float = math.inf) -> float | Reply | None:
    """A number of seconds in a query; None if it is not given, and an answer if it is none."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 0 <= value <= most):
        upto = f" up to {most:g}" if math.isfinite(most) else ""
        error = f"{name} must be a number of seconds, 0 or more{upto}, not {text[:40]!r}"
        return Reply(BAD_REQUEST, {"error": error})
    return value


def _reply(why: str, body: dict[str, Any]) -> Reply:
    """200 if there is nothing to object, else 503 with the reason."""
    return Reply(SERVICE_UNAVAILABLE, {**body, "error": why}) if why else Reply(OK, body)


def _unfit(now: Moment) -> str:
    """Why the node could not lead anything; "" if it could."""
    whys: list[str] = []
    if not now.status.warm:
        whys.append("not warm yet")
    if now.contact is not Contact.CONNECTED:
        heard = f"last heard {now.silent:.1f} s ago" if math.isfinite(now.silent) else "never heard"
        why = f" ({now.problem})" if now.problem else ""
        whys.append(f"contact with ZooKeeper is {now.contact.value}, {heard}{why}")
    return "; ".join(whys)


def _not_ready_reason(now: Moment, pipeline: PipelineId) -> str:
    """What this node lacks to lead a pipeline; "" if nothing."""
    line = _line(now, pipeline)
    why = line.not_ready if line is not None else ""
    return f"{now.status.nid} cannot lead {pipeline}: {why}" if why else ""


def _unready(line: PipelineStatus, lag: float | None) -> str:
    """Why a pipeline that this node leads is not as it should be; "" if it is."""
    name, figures = f"{line.channel}/{line.pipeline}", line.figures
    if figures.state not in _AS_WANTED:
        return f"{name} is {figures.state.value}" + (f": {figures.error}" if figures.error else "")
    if lag is None:
        return ""
    if figures.lag is None:
        return f"the lag of {name} is not known"
    # The last heartbeat that arrived says nothing of those that are held up since.
    behind = max(figures.lag, figures.stalled_seconds)
    return f"{name} is {behind:.1f} s behind, more than {lag:g} s" if behind > lag else ""


def _not_leading(now: Moment, pipeline: PipelineId) -> str:
    """Why this node does not lead and apply; "" if it does."""
    line, seen = _line(now, pipeline), now.facts.leader_locks.get(pipeline)
    if line is None or not line.mine:
        who, *_ = _leader_of(now, pipeline)
        if who == now.status.nid:
            return f"an earlier session of {who} leads {pipeline}"
        return f"{who} leads {pipeline}" if who else f"no node leads {pipeline}"
    if now.contact is not Contact.CONNECTED:
        return f"leadership is in doubt: {_unfit(now)}"
    # A new session owns nothing of the old one, whatever was decided in that.
    if seen is None or seen.session != now.session or seen.epoch != line.epoch:
        return "leadership is in doubt: the last look at the cluster does not show it"
    if line.figures.state not in _APPLYING:
        error = f": {line.figures.error}" if line.figures.error else ""
        return f"{now.status.nid} leads {pipeline}, which is {line.figures.state.value}{error}"
    return ""


def _leadership_of(now: Moment, pipeline: PipelineId) -> dict[str, Any]:
    line, channel = _line(now, pipeline), now.facts.channels.get(pipeline.channel)
    leads, number, epoch = _leader_of(now, pipeline)
    return {
        "nid": now.status.nid,
        "pipeline": str(pipeline),
        "leader": leads,
        "leadership": number or None,
        "epoch": epoch,
        "state": line.figures.state.value if line else RunState.STANDBY.value,
        "channel_state": channel.state.value if channel else None,
        "contact": now.contact.value,
        "warm": now.status.warm,
    }


def _leader_of(now: Moment, pipeline: PipelineId) -> tuple[str, int, int]:
    """Who leads, and number and epoch of the leadership.

    Of a pipeline that this node does not serve, as it saw it last.
    """
    line = _line(now, pipeline)
    if line is not None:
        return line.leader, line.leadership, line.epoch
    seen = now.facts.leader_locks.get(pipeline)
    return (seen.nid, seen.number, seen.epoch) if seen else ("", 0, 0)


def _line(now: Moment, pipeline: PipelineId) -> PipelineStatus | None:
    return next((line for line in now.status.pipelines if _is(line, pipeline)), None)


def _is(line: PipelineStatus, pipeline: PipelineId) -> bool:
    return (line.channel, line.pipeline) == (pipeline.channel, pipeline.pipeline)
