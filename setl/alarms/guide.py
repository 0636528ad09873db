"""Where the documentation says what to do about an alarm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SECTIONS: Final[Mapping[str, str]] = {
    "lag": "troubleshooting.md#lag-grows",
    "stopped": "troubleshooting.md#stopped",
    "no_leader": "troubleshooting.md#no-leader",
    "no_answer": "troubleshooting.md#alarms",
    "no_progress": "troubleshooting.md#stalls",
    "no_standby": "troubleshooting.md#no-leader",
    "dead_letters": "operate.md#faulty-rows",
    "echoes": "troubleshooting.md#echoes",
    "verification_differences": "troubleshooting.md#rows-differ",
    "verification_age": "troubleshooting.md#alarms",
    "position": "alarms.md#the-position",
    "position_lost": "troubleshooting.md#source-purged",
    "certificate": "alarms.md#zookeeper-certificates",
    "password": "operate.md#secrets",
    "target_disk": "alarms.md#target-disk",
    "disk": "troubleshooting.md#alarms",
    "cutover": "cutover.md#put-it-back",
    "channels_lost": "troubleshooting.md#epochs",
    "zookeeper_server": "alarms.md#zookeeper-server",
}
"""The section about each of `setl.alarms.rules.RULES`."""


def section_of(rule: str) -> str:
    """The section about a rule; "" for one that this release does not know."""
    return SECTIONS.get(rule, "")
