"""Short texts about a pipeline, for people: its two ends, and how far a load of tables is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from arbiter.values import Channel
from setl.counting import count

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
    endpoints: Mapping[str, Any] = {}
    pipelines = channel.definition.get("pipelines")
    for raw in cast("list[Any]", pipelines) if isinstance(pipelines, list) else []:
        if isinstance(raw, Mapping) and cast("Mapping[str, Any]", raw).get("name") == pipeline:
            endpoints = cast("Mapping[str, Any]", raw)
    return _endpoint(endpoints.get("source"), environment), _endpoint(
        endpoints.get("target"), environment
    )


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
    if kind == "kafka":
        return f"{_first(address.get('brokers'))}/{address.get('topic', '?')}"
    return _first(address.get("hosts"))


def _first(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return str(cast("Sequence[Any]", value)[0])
    return "?"


_SHOWN_BYTES: Final = 50_000


def load_sentence(load: Mapping[str, Any]) -> str:
    """What the leader tells of a load, in one line.

    Args:
        load: `setl.run.measured.figures.TableLoadFigures` as JSON.
    """
    state, rows, expected = load["state"], load["rows"], load.get("rows_expected")
    done = count(rows, "row")
    if state == "catching up":
        return f"{done}, all that there were; the stream has to come to where they were read"
    if state != "reading":
        return f"{done}, {state}"
    if expected:
        done = _part(rows, expected)
    parts = [done, f"{load['rows_per_second']:,.0f} rows/s"]
    # Less would be shown as 0.0: mostly the server has not counted yet how large its tables are.
    if (load.get("bytes_per_second") or 0) >= _SHOWN_BYTES:
        parts.append(f"{load['bytes_per_second'] / 1e6:,.1f} MB/s")
    if load.get("seconds_left"):
        parts.append(f"{_duration(load['seconds_left'])} left")
    if load.get("table"):
        left = load.get("tables_left")
        # The estimate of one table may be less than it has; that of all is reported as well.
        here, whole = load.get("table_rows", 0), load.get("table_rows_expected")
        inside = f": {_part(here, max(here, whole))}" if whole else ""
        parts.append(f"now {load['table']}{inside}")
        parts += [] if left is None else [count(left, "table left", "tables left")]
    if load.get("throttle_count"):
        parts.append(f"was throttled {count(load['throttle_count'], 'time')}")
    if load.get("waits_for"):
        parts.append(f"waits: {load['waits_for']}")
    return ", ".join(parts)


def _part(rows: int, expected: int) -> str:
    return f"{rows:,} of about {count(expected, 'row')} ({100 * rows // expected} %)"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
