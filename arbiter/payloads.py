"""What is written into znodes: JSON objects with a ``version``, and the values they stand for.

Reading takes the fields it knows, whatever the version says, so that nodes of two releases can
work side by side while a cluster is upgraded. What cannot be read at all is treated according
to what is at stake, as each reader says.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar, cast

from arbiter.port import Invalid
from arbiter.values import (
    EVERYTHING,
    Channel,
    ChannelState,
    HistoryItem,
    Mainstem,
    MainstemStatus,
    NodeInfo,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)

_log = logging.getLogger(__name__)

_E = TypeVar("_E", bound=Enum)

VERSION = 1

_REASON = 300  # characters of why a node cannot lead a pipeline
_REASONS = 500  # pipelines of which it is said

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


def decode(data: bytes) -> dict[str, Any] | None:
    """Inverse of `encode`; None if the bytes are no JSON object."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


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
            "unable": _unable_payload(node.unable),
        },
    )


def read_node(nid: str, data: bytes) -> NodeInfo:
    """Inverse of `node_payload`. An unreadable node is alive all the same: its nid is kept.

    One that does not say what it serves is of a release whose nodes were all alike.
    """
    payload = decode(data) or {}
    return NodeInfo(
        nid=nid,
        host=_text(payload, "host"),
        pid=int(_number(payload, "pid") or 0),
        http=_text(payload, "http"),
        started=_number(payload, "started") or 0.0,
        ready=payload.get("ready") is True,
        serves=_names(payload, "serves", EVERYTHING),
        unable=_read_unable(payload),
    )


def _unable_payload(unable: Mapping[PipelineId, str]) -> dict[str, str]:
    """What a node lacks, cut so that a thousand pipelines of it fit into one znode."""
    return {str(ident): why[:_REASON] for ident, why in sorted(unable.items(), key=str)[:_REASONS]}


def _read_unable(payload: Mapping[str, Any]) -> dict[PipelineId, str]:
    value = payload.get("unable")
    if not isinstance(value, dict):
        return {}
    found: dict[PipelineId, str] = {}
    for name, why in cast("dict[str, Any]", value).items():
        channel, slash, pipeline = name.partition("/")
        if slash and isinstance(why, str):
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
    payload = decode(data)
    state = _member(ChannelState, (payload or {}).get("state"))
    definition = (payload or {}).get("definition")
    if state is None or not isinstance(definition, dict):
        _log.warning(
            "channel cannot be read and counts as stopped", extra={"setl": {"channel": name}}
        )
        return Channel(name=name, state=ChannelState.STOP, revision=revision)
    return Channel(name, state, cast("dict[str, Any]", definition), revision)


def mainstem_payload(nid: str, status: MainstemStatus, session: int, base: int) -> bytes:
    """Who is active. Owner and creation zxid are facts of the znode; the session is for people.

    The epoch's base is written down with the mainstem, so that a base raised later leaves the
    epoch of this leadership as it is.
    """
    return encode(
        "mainstem",
        {"nid": nid, "status": status.value, "session": f"{session:#x}", "base": base},
    )


def read_mainstem(data: bytes, *, created: int, owner: int) -> Mainstem:
    """Inverse of `mainstem_payload`, with what the znode's stat says of creation and owner.

    An unreadable mainstem is held by its owner like any other; only the name is unknown.
    """
    payload = decode(data) or {}
    status = _member(MainstemStatus, payload.get("status")) or MainstemStatus.TAKING
    base = int(_number(payload, "base") or 0)
    return Mainstem(_text(payload, "nid") or "?", status, created + base, owner)


def epoch_payload(base: int) -> bytes:
    """The epoch's base."""
    return encode("the epoch's base", {"base": base})


def read_epoch(data: bytes) -> int:
    """Inverse of `epoch_payload`.

    Raises:
        Invalid: it cannot be read. Taking it for 0 would give leaders epochs that their targets
            know as past ones.
    """
    base = (decode(data) or {}).get("base")
    if not isinstance(base, int) or isinstance(base, bool) or base < 0:
        raise Invalid("the epoch's base cannot be read; `setl epoch raise` writes it anew")
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


def read_signal(ident: str, data: bytes, revision: int) -> Signal | None:
    """Inverse of `signal_payload`; None for what cannot be read, which nobody can carry out."""
    payload = decode(data) or {}
    kind = _member(SignalKind, payload.get("kind"))
    state = _member(SignalState, payload.get("state"))
    if kind is None or state is None:
        return None
    return Signal(
        kind=kind,
        id=ident,
        to=_text(payload, "to"),
        at=_number(payload, "at") or 0.0,
        leader=_text(payload, "leader"),
        epoch=int(_number(payload, "epoch") or 0),
        by=_text(payload, "by"),
        sent=_number(payload, "sent") or 0.0,
        state=state,
        answer=_text(payload, "answer"),
        revision=revision,
    )


def position_payload(what: str, value: Mapping[str, Any]) -> bytes:
    """A stored position."""
    return encode(f"the position of {what}", {"position": dict(value)})


def read_position(what: str, data: bytes) -> dict[str, Any]:
    """Inverse of `position_payload`.

    Raises:
        Invalid: it cannot be read. Taking it for "none yet" would start the stream anew.
    """
    position = (decode(data) or {}).get("position")
    if not isinstance(position, dict):
        raise Invalid(f"the stored position of {what} cannot be read; reset it")
    return cast("dict[str, Any]", position)


def history_payload(item: HistoryItem) -> bytes:
    """One past change of leadership."""
    return encode(
        "a history item",
        {
            "epoch": item.epoch,
            "nid": item.nid,
            "reason": item.reason,
            "at": item.at,
            "outage": item.outage,
            "redelivered": item.redelivered,
        },
    )


def read_history(data: bytes) -> HistoryItem | None:
    """Inverse of `history_payload`; None for what cannot be read, which people can do without."""
    payload = decode(data)
    if payload is None:
        return None
    epoch, at = _number(payload, "epoch"), _number(payload, "at")
    if epoch is None or at is None:
        return None
    redelivered = _number(payload, "redelivered")
    return HistoryItem(
        epoch=int(epoch),
        nid=_text(payload, "nid"),
        reason=_text(payload, "reason"),
        at=at,
        outage=_number(payload, "outage"),
        redelivered=None if redelivered is None else int(redelivered),
    )


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _names(payload: Mapping[str, Any], name: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    value = payload.get(name)
    if not isinstance(value, list):
        return otherwise
    return tuple(item for item in cast("list[Any]", value) if isinstance(item, str))


def _number(payload: Mapping[str, Any], name: str) -> float | None:
    value = payload.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return value


def _member(kind: type[_E], value: object) -> _E | None:
    try:
        return kind(value)
    except ValueError:
        return None
