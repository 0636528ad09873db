"""Asks the other nodes for what they recorded of a pipeline while they led it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any, cast

from arbiter.values import NodeInfo, PipelineId
from setl.node.cluster.asking import asked
from setl.node.console.figures.series import Point, of_columns
from setl.node.console.links import series_link

TIMEOUT = 1.5
_AT_ONCE = 16
_MOST_BYTES = 1 << 20


def recorded_elsewhere(
    nodes: Iterable[NodeInfo], pipeline: PipelineId, since: float
) -> list[list[Point]]:
    """What each node recorded after a time; empty for one that does not answer in time.

    Args:
        nodes: whom to ask, side by side.
        pipeline: the pipeline.
        since: seconds since 1970 UTC.
    """
    others: list[NodeInfo] = [node for node in nodes if node.http.startswith("http")]
    if not others:
        return []
    with ThreadPoolExecutor(min(len(others), _AT_ONCE)) as pool:
        addresses = [f"{n.http}{series_link(pipeline)}?since={since}&own=yes" for n in others]
        return list(pool.map(_recorded, addresses))


def _recorded(address: str) -> list[Point]:
    try:
        value = asked(address, TIMEOUT, _MOST_BYTES)
        return of_columns(cast("dict[str, Any]", value)) if isinstance(value, dict) else []
    except (OSError, HTTPException, ValueError, TypeError):
        return []
