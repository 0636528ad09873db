"""A short text for the source and the target of a pipeline, from its stored definition."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from arbiter.values import Channel

_ADDRESS_KEYS = ("host", "port", "brokers", "topic", "hosts")
_LOGIN = re.compile(r"//[^/\s]*@")


def endpoints_of(
    channel: Channel, pipeline: str, environment: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Where a pipeline reads and writes, as its file says; "?" for what it does not say.

    Read without checking the file, whose references may have no values here.

    Args:
        channel: the channel.
        pipeline: of it.
        environment: gives references their values, as it gives them to a node; without it they
            are shown as they are written. Only addresses are read, and no login in one is shown.
    """
    found: Mapping[str, Any] = {}
    pipelines = channel.definition.get("pipelines")
    for raw in cast("list[Any]", pipelines) if isinstance(pipelines, list) else []:
        if isinstance(raw, Mapping) and cast("Mapping[str, Any]", raw).get("name") == pipeline:
            found = cast("Mapping[str, Any]", raw)
    return _endpoint(found.get("source"), environment), _endpoint(found.get("target"), environment)


def _endpoint(value: object, environment: Mapping[str, str] | None) -> str:
    if not isinstance(value, Mapping):
        return "?"
    endpoint = cast("Mapping[str, Any]", value)
    address = {name: endpoint[name] for name in _ADDRESS_KEYS if name in endpoint}
    if environment is not None:
        # Imported late: commands that give no values need not wait for it.
        from setl.channel.text.references import substitute_allowed  # noqa: PLC0415

        address, _ = substitute_allowed(address, environment)
    return _LOGIN.sub("//", _written(endpoint.get("type"), address))


def _written(kind: object, address: Mapping[str, Any]) -> str:
    if kind == "mysql":
        return f"{address.get('host', '?')}:{address.get('port', 3306)}"
    if kind == "dts":
        return f"{_first(address.get('brokers'))}/{address.get('topic', '?')}"
    return _first(address.get("hosts"))


def _first(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return str(cast("Sequence[Any]", value)[0])
    return "?"
