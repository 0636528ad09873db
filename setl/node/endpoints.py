"""A short text for the source and the target of a pipeline, from its stored definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from arbiter.values import Channel


def endpoints_of(channel: Channel, pipeline: str) -> tuple[str, str]:
    """Where a pipeline reads and writes, as its file says; "?" for what it does not say.

    Read without checking the file, whose references may have no values here.
    """
    found: Mapping[str, Any] = {}
    pipelines = channel.definition.get("pipelines")
    for raw in cast("list[Any]", pipelines) if isinstance(pipelines, list) else []:
        if isinstance(raw, Mapping) and cast("Mapping[str, Any]", raw).get("name") == pipeline:
            found = cast("Mapping[str, Any]", raw)
    return _endpoint(found.get("source")), _endpoint(found.get("target"))


def _endpoint(value: object) -> str:
    if not isinstance(value, Mapping):
        return "?"
    endpoint = cast("Mapping[str, Any]", value)
    if endpoint.get("type") == "mysql":
        return f"{endpoint.get('host', '?')}:{endpoint.get('port', 3306)}"
    if endpoint.get("type") == "dts":
        return f"{_first(endpoint.get('brokers'))}/{endpoint.get('topic', '?')}"
    return _first(endpoint.get("hosts"))


def _first(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return str(cast("Sequence[Any]", value)[0])
    return "?"
