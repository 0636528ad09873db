"""Messages as receivers get them: a JSON body, and a text for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from setl.alarms.alarm_state import Event, Notice

_WORDS: Mapping[str, str] = {
    "firing": "ALARM",
    "repeated": "STILL",
    "recovered": "OVER",
    "restarted": "STARTED AGAIN",
    "test": "TEST",
}


def body_of(notice: Notice, cluster: str, node: str) -> dict[str, Any]:
    """The JSON body of a webhook; docs/pages/alarms.md describes it.

    Args:
        notice: the message.
        cluster: the cluster's name.
        node: the node that sends it.
    """
    return {
        "version": 1,
        "id": notice.id,
        "cluster": cluster,
        "node": node,
        "at": _moment(notice.at),
        "alarms": [_event_body(event) for event in notice.events],
    }


def subject_of(notice: Notice, cluster: str) -> str:
    """One line that says what it is about."""
    first = notice.events[0]
    more = len(notice.events) - 1
    rest = f" and {more} more" if more else ""
    return f"[setl {cluster}] {_WORDS[first.kind]} {first.key.rule} {first.key.about}{rest}"


def text_of(notice: Notice, cluster: str, node: str) -> str:
    """The text of an e-mail."""
    lines: list[str] = []
    for event in notice.events:
        about = f"{event.key.about}: " if event.key.about else ""
        lines.append(f"{_WORDS[event.kind]} ({event.severity}) {about}{event.text}")
        if event.hint and event.kind in ("firing", "repeated"):
            lines.append(f"    {event.hint}")
        lines.append(f"    rule {event.key.rule}, since {_moment(event.since)}")
        lines.append("")
    lines.append(f"Cluster {cluster}, sent by node {node}. `setl alarm list` shows all alarms.")
    return "\n".join(lines) + "\n"


def _event_body(event: Event) -> dict[str, Any]:
    return {
        "event": event.kind,
        "rule": event.key.rule,
        "severity": event.severity,
        "channel": event.key.channel,
        "pipeline": event.key.pipeline,
        "subject": event.key.subject,
        "text": event.text,
        "hint": event.hint,
        "since": _moment(event.since),
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
