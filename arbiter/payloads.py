"""The payloads of znodes: JSON objects with a ``version``, and the values they stand for.

Reading takes the fields it knows, whatever the version says, so that nodes of two releases can
work side by side while a cluster is upgraded. What cannot be read at all is treated according
to what is at stake, as each reader says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from arbiter.errors import Invalid
from arbiter.fields import Fields
from arbiter.paths import is_name
from arbiter.values import (
    EVERYTHING,
    AlarmSender,
    Channel,
    ChannelState,
    HistoryItem,
    LeaderLock,
    LeaderLockStatus,
    NodeInfo,
    OperatorAction,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)

VERSION = 1

_REASON = 300  # characters of why a node cannot lead a pipeline
_REASONS = 500  # pipelines of which it is said

MAX_BASE = 1 << 62
"""Highest base of epochs: a target keeps an epoch in 64 bits, and zxids want room above it."""

MAX_BYTES = 1_000_000
"""Largest payload. ZooKeeper's own limit (``jute.maxbuffer``, 1,048,575 bytes a request) does not
answer with an error: it cuts the connection, and every retry cuts it again."""


def encode(what: str, payload: Mapping[str, Any]) -> bytes:
    """A payload as bytes.

    Raises:
        Invalid: it is too large, or holds something that JSON cannot; `what` names it.
    """
    try:
        text = json.dumps(
            {"version": VERSION, **payload},
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
        data = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{what} cannot be written as JSON: {error}") from error
    if len(data) > MAX_BYTES:
        raise Invalid(
            f"{what} takes {len(data):,} bytes, and ZooKeeper keeps at most {MAX_BYTES:,} in one"
            " place"
        )
    return data


def node_payload(node: NodeInfo) -> bytes:
    """A live node."""
    return encode(
        f"node {node.nid}",
        {
            "host": node.host,
            "pid": node.pid,
            "http": node.http,
            "started": node.started,
            "ready": node.ready,
            "serves": list(node.serves),
            "unable": _not_ready_payload(node.not_ready),
            "read_key": node.read_key,
        },
    )


def read_node(nid: str, data: bytes, wrong: list[str] | None = None) -> NodeInfo:
    """Inverse of `node_payload`. An unreadable node is alive all the same: its nid is kept.

    One that does not say what it serves is of a release whose nodes were all alike.

    Args:
        nid: its id.
        data: the payload.
        wrong: gets what is wrong with the payload; so with the other readers.
    """
    read = Fields(data)
    node = NodeInfo(
        nid=nid,
        host=read.text("host"),
        pid=read.whole("pid") or 0,
        http=read.text("http"),
        started=read.seconds("started") or 0.0,
        ready=read.flag("ready"),
        serves=read.names("serves", EVERYTHING),
        not_ready=_read_not_ready(read.texts("unable")),
        read_key=read.text("read_key"),
    )
    _note(read, wrong)
    return node


def _not_ready_payload(not_ready: Mapping[PipelineId, str]) -> dict[str, str]:
    """What a node lacks, cut so that a thousand pipelines of it fit into one znode."""
    return {
        str(ident): why[:_REASON] for ident, why in sorted(not_ready.items(), key=str)[:_REASONS]
    }


def _read_not_ready(reasons: Mapping[str, str]) -> dict[PipelineId, str]:
    found: dict[PipelineId, str] = {}
    for name, why in reasons.items():
        channel, _, pipeline = name.partition("/")
        if is_name(channel) and is_name(pipeline):
            found[PipelineId(channel, pipeline)] = why
    return found


def channel_payload(name: str, state: ChannelState, definition: Mapping[str, Any]) -> bytes:
    """A channel's state and definition."""
    return encode(f"channel {name}", {"state": state.value, "definition": dict(definition)})


def read_channel(name: str, data: bytes, revision: int) -> Channel:
    """Inverse of `channel_payload`.

    One unreadable channel must not hide the others, and nobody can say what was wanted of it:
    it counts as stopped and empty until somebody stores it again.
    """
    read = Fields(data)
    state, definition = read.member("state", ChannelState), read.mapping("definition")
    if state is None or definition is None:
        return Channel(name, ChannelState.STOP, revision=revision, damage="; ".join(read.wrong))
    return Channel(name, state, definition, revision)


def leader_lock_payload(
    nid: str, status: LeaderLockStatus, session: int, base: int, number: int
) -> bytes:
    """Who is active. Owner and creation zxid are facts of the znode; the session is for people.

    The epoch's base is written down with the leader lock, so that a base raised later leaves the
    epoch of this leadership as it is.
    """
    return encode(
        "mainstem",
        {
            "nid": nid,
            "status": status.value,
            "session": f"{session:#x}",
            "base": base,
            "leadership": number,
        },
    )


def read_leader_lock(
    data: bytes, *, created: int, owner: int, wrong: list[str] | None = None
) -> LeaderLock:
    """Inverse of `leader_lock_payload`, with what the znode's stat says of creation and owner.

    An unreadable leader lock is held by its owner like any other; only the name is unknown, and
    the epoch, which may have been another: it is not `LeaderLock.readable`.
    """
    read = Fields(data)
    nid, base = read.name("nid"), read.whole("base", MAX_BASE)
    readable = not read.wrong and bool(nid)
    number = read.whole("leadership") or 0
    status = read.member("status", LeaderLockStatus) or LeaderLockStatus.TAKING
    _note(read, wrong)
    epoch = created + (base or 0)
    return LeaderLock(nid or "?", status, epoch, owner, readable=readable, number=number)


def leaderships_payload(count: int) -> bytes:
    """How many leaderships a pipeline has had."""
    return encode("the number of leaderships", {"count": count})


def read_leaderships(data: bytes) -> int | None:
    """Inverse of `leaderships_payload`; None for what cannot be read, which is for people only."""
    return Fields(data).whole("count")


def epoch_payload(base: int) -> bytes:
    """The epoch's base."""
    return encode("the epoch's base", {"base": base})


def read_epoch(data: bytes) -> int:
    """Inverse of `epoch_payload`.

    Raises:
        Invalid: it cannot be read. Taking it for 0 would give leaders epochs that their targets
            know as past ones.
    """
    read = Fields(data)
    base = read.whole("base", MAX_BASE)
    if base is None:
        what = "".join(f": it {wrong}" for wrong in read.wrong)
        raise Invalid(f"the epoch's base cannot be read{what}; `setl epoch raise` writes it again")
    return base


def signal_payload(signal: Signal) -> bytes:
    """A request to a pipeline, and its answer."""
    return encode(
        "a signal",
        {
            "kind": signal.kind.value,
            "to": signal.to,
            "at": signal.at,
            "leader": signal.leader,
            "epoch": signal.epoch,
            "by": signal.by,
            "sent": signal.sent,
            "state": signal.state.value,
            "answer": signal.answer,
        },
    )


def read_signal(
    ident: str, data: bytes, revision: int, wrong: list[str] | None = None
) -> Signal | None:
    """Inverse of `signal_payload`; None for what cannot be read, which nobody can carry out.

    So it is if one field cannot be read: a time that is rubbish would be due at once.
    """
    read = Fields(data)
    kind, state = read.member("kind", SignalKind), read.member("state", SignalState)
    to, leader = read.name("to"), read.name("leader")
    at, sent = read.seconds("at"), read.seconds("sent")
    epoch = read.whole("epoch")
    by, answer = read.text("by"), read.text("answer")
    _note(read, wrong)
    if kind is None or state is None or read.wrong:
        return None
    return Signal(
        kind=kind,
        id=ident,
        to=to,
        at=at or 0.0,
        leader=leader,
        epoch=epoch or 0,
        by=by,
        sent=sent or 0.0,
        state=state,
        answer=answer,
        revision=revision,
    )


def position_payload(what: str, value: Mapping[str, Any]) -> bytes:
    """A stored position."""
    return encode(f"the position of {what}", {"position": dict(value)})


def read_position(what: str, data: bytes) -> dict[str, Any]:
    """Inverse of `position_payload`.

    Raises:
        Invalid: it cannot be read. Taking it for "none yet" would start the stream again.
    """
    read = Fields(data)
    position = read.mapping("position")
    if position is None:
        found = "; ".join(read.wrong)
        raise Invalid(f"the stored position of {what} cannot be read, it {found}; reset it")
    return position


def load_payload(value: Mapping[str, Any]) -> bytes:
    """A request to load tables."""
    return encode("a request to load tables", {"load": dict(value)})


def read_load(data: bytes, wrong: list[str] | None = None) -> dict[str, Any] | None:
    """Inverse of `load_payload`; None for what cannot be read, which nobody can carry out."""
    read = Fields(data)
    value = read.mapping("load")
    _note(read, wrong)
    return value


def cutover_payload(what: str, value: Mapping[str, Any]) -> bytes:
    """A cut-over."""
    return encode(f"the cut-over of {what}", {"cutover": dict(value)})


def read_cutover(what: str, data: bytes) -> dict[str, Any]:
    """Inverse of `cutover_payload`.

    Raises:
        Invalid: it cannot be read. Taking it for none would leave a source as it is for ever.
    """
    read = Fields(data)
    cutover = read.mapping("cutover")
    if cutover is None:
        raise Invalid(f"the cut-over of {what} cannot be read, it {'; '.join(read.wrong)}")
    return cutover


def verification_payload(what: str, value: Mapping[str, Any]) -> bytes:
    """How far standing verification is."""
    return encode(f"the verification of {what}", {"verification": dict(value)})


def read_verification(data: bytes) -> dict[str, Any]:
    """Inverse of `verification_payload`; empty for what cannot be read: it can restart."""
    return Fields(data).mapping("verification") or {}


def sender_payload(sender: AlarmSender) -> bytes:
    """Who sends alarms."""
    return encode("the sender of alarms", {"nid": sender.nid, "receivers": list(sender.receivers)})


def read_sender(data: bytes, owner: int) -> AlarmSender:
    """Inverse of `sender_payload`; one that cannot be read sends to nobody."""
    read = Fields(data)
    return AlarmSender(read.text("nid"), read.names("receivers", ()), owner)


def alarms_payload(what: str, value: Mapping[str, Any]) -> bytes:
    """What is kept of alarms or silences."""
    return encode(what, {"value": dict(value)})


def read_alarms(data: bytes) -> dict[str, Any]:
    """Inverse of `alarms_payload`; empty for what cannot be read: alarms are raised again."""
    return Fields(data).mapping("value") or {}


def history_payload(item: HistoryItem) -> bytes:
    """One past change of leadership."""
    known = {name: value for name, value in asdict(item).items() if value not in (None, "")}
    if number := known.pop("number"):
        known["leadership"] = number
    return encode("a history item", known)


def read_history(data: bytes, wrong: list[str] | None = None) -> HistoryItem | None:
    """Inverse of `history_payload`; None for what cannot be read, which people can do without."""
    read = Fields(data)
    epoch, at = read.whole("epoch"), read.seconds("at")
    item = None
    if epoch is not None and at is not None:
        item = HistoryItem(
            epoch,
            read.name("nid"),
            read.text("reason"),
            at,
            outage=read.seconds("outage"),
            redelivered=read.whole("redelivered"),
            error=read.text("error"),
            outage_least=read.seconds("outage_least"),
            applied_until=read.seconds("applied_until"),
            error_public=read.text("error_public"),
            number=read.whole("leadership") or 0,
        )
    elif not read.wrong:
        read.wrong.append("has no epoch or no time")
    _note(read, wrong)
    return item


def action_payload(action: OperatorAction) -> bytes:
    """Something that an operator did."""
    return encode(
        "an action",
        {
            "by": action.by,
            "what": action.what,
            "on": action.on,
            "at": action.at,
            "outcome": action.outcome,
            "ended": action.ended,
            "session": action.session,
        },
    )


def read_action(
    ident: str, data: bytes, revision: int, wrong: list[str] | None = None
) -> OperatorAction | None:
    """Inverse of `action_payload`; None for what cannot be read, which people can do without."""
    read = Fields(data)
    at = read.seconds("at")
    action = None
    if at is not None:
        action = OperatorAction(
            by=read.text("by"),
            what=read.text("what"),
            on=read.text("on"),
            at=at,
            outcome=read.text("outcome"),
            ended=read.seconds("ended") or 0.0,
            id=ident,
            revision=revision,
            session=read.whole("session") or 0,
        )
    elif not read.wrong:
        read.wrong.append("has no time")
    _note(read, wrong)
    return action


def _note(read: Fields, wrong: list[str] | None) -> None:
    if wrong is not None:
        wrong += read.wrong
