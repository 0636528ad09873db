"""The two ends of a pipeline in a few words, from its stored definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from arbiter.values import Channel


def ends_of(channel: Channel, pipeline: str) -> tuple[str, str]:
    """Where a pipeline reads and writes, as its file says; "?" for what it does not say.

    Read without checking the file, whose references may have no values here.
    """
    found: Mapping[str, Any] = {}
    pipelines = channel.definition.get("pipelines")
    for raw in cast("list[Any]", pipelines) if isinstance(pipelines, list) else []:
        if isinstance(raw, Mapping) and cast("Mapping[str, Any]", raw).get("name") == pipeline:
            found = cast("Mapping[str, Any]", raw)
    return _end(found.get("source")), _end(found.get("target"))


def _end(value: object) -> str:
    if not isinstance(value, Mapping):
        return "?"
    end = cast("Mapping[str, Any]", value)
    if end.get("type") == "mysql":
        return f"{end.get('host', '?')}:{end.get('port', 3306)}"
    if end.get("type") == "dts":
        return f"{_first(end.get('brokers'))}/{end.get('topic', '?')}"
    return _first(end.get("hosts"))


def _first(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return str(cast("Sequence[Any]", value)[0])
    return "?"
