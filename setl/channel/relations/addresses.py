"""Which server or topic an end of a pipeline is, over raw parts of channel files.

Servers are compared as they are written, host and port. One server under two names counts as two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from setl.channel.text.raw import Raw, items, part

Topic = tuple[frozenset[str], str]
"""Brokers, and a topic's name."""


def address(end: Raw) -> str:
    """Host and port of a MySQL server as they are written; a reference is the same as itself."""
    return f"{str(end.get('host')).lower()}:{end.get('port', 3306)}"


def tables_address(target: Raw) -> str:
    """Where the tables of a target are: its server, or its folder as it is written."""
    path = target.get("path")
    return address(target) if path is None else str(path).rstrip("/")


def topic_of(end: Raw) -> Topic:
    """The topic of a subscription, or of a relay's target."""
    return frozenset(map(str, items(end.get("brokers")))), str(end.get("topic"))


def relayed_topics(definitions: Iterable[Raw]) -> dict[Topic, str]:
    """The server whose changes each topic holds that a relay writes."""
    found: dict[Topic, str] = {}
    for definition in definitions:
        for pipeline in map(part, items(definition.get("pipelines"))):
            source, target = part(pipeline.get("source")), part(pipeline.get("target"))
            if target.get("type") == "kafka" and source.get("type") == "mysql":
                found[topic_of(target)] = address(source)
    return found


def server_read(source: Raw, topics: Mapping[Topic, str]) -> str:
    """The MySQL server whose changes a source has; "" if it is not known.

    Args:
        source: of a pipeline.
        topics: see `relayed_topics`.
    """
    if source.get("type") == "mysql":
        return address(source)
    database = part(source.get("database"))
    return address(database) if database else topics.get(topic_of(source), "")
