"""Asks all nodes for their status at once, and takes no more from one than a node says.

Where nodes are stands in ZooKeeper. Whoever writes there may name any address.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from arbiter.values import NodeInfo, PipelineId

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

MOST_BYTES = 16 << 20


class TooLargeError(ValueError):
    """An answer is larger than one of a node can be."""


def asked(
    address: str,
    timeout: float,
    most: int = MOST_BYTES,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> object:
    """The JSON that a node answers.

    Args:
        address: what is asked for.
        timeout: seconds that it may be silent.
        most: bytes of its answer.
        headers: what the request shows.

    Raises:
        OSError: it does not answer, or with an error, or leads elsewhere.
        http.client.HTTPException: its answer breaks off.
        ValueError: its answer is too large, or no JSON.
    """
    # Imported late, as below.
    from urllib.request import Request  # noqa: PLC0415

    request = Request(address, headers=dict(headers))  # noqa: S310 - of a node
    with _opener().open(request, timeout=timeout) as answer:
        text = answer.read(most + 1)
    if len(text) > most:
        raise TooLargeError(f"more than {most} bytes")
    return json.loads(text)


@cache
def _opener() -> OpenerDirector:
    """Straight to the node: by no proxy of the environment, and nowhere else from there."""
    # Imported late: TLS comes with it, and most commands say what they have to without a node.
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener  # noqa: PLC0415

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_args: object, **_named: object) -> None:
            return None

    return build_opener(ProxyHandler({}), Stay)


KEY_HEADER = "Setl-Read-Key"
"""The header that shows a node the key of its znode, see `arbiter.values.NodeInfo.read_key`."""

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_TIMEOUT = 2.0
_AT_ONCE = 32


def ask_nodes(
    nodes: Iterable[NodeInfo], timeout: float = _TIMEOUT, *, whole: bool = True
) -> dict[str, dict[str, Any] | None]:
    """Every node's status by nid; None for one that does not answer.

    Nodes are asked side by side, so that several dead ones cost no more time than one.

    Args:
        nodes: whom to ask.
        timeout: seconds that a node may be silent.
        whole: whether to ask for all, and not only for what anybody may read.
    """
    those: list[NodeInfo] = list(nodes)
    if not those:
        return {}
    with ThreadPoolExecutor(min(len(those), _AT_ONCE)) as pool:
        answers = pool.map(partial(node_status, whole=whole), those, repeat(timeout))
        return {node.nid: answer for node, answer in zip(those, answers, strict=True)}


def node_status(
    node: NodeInfo, timeout: float = _TIMEOUT, *, whole: bool = True
) -> dict[str, Any] | None:
    """What a node says of itself; None if it does not answer in time. For the rest see above."""
    return status_at(node.http, timeout, {KEY_HEADER: node.read_key} if whole else {})


def status_at(
    address: str, timeout: float = _TIMEOUT, headers: Mapping[str, str] = _NO_HEADERS
) -> dict[str, Any] | None:
    """What the node at an address says of itself; None if it does not answer in time, or not whole.

    Nodes are killed and frozen at any moment, in the middle of an answer too.

    Args:
        address: of its HTTP interface, ``http://host:port``.
        timeout: seconds that it may be silent.
        headers: what the request shows: a key, or a token; nothing for what anybody may read.
    """
    if not address.startswith("http"):
        return None
    # Imported late: TLS comes with it, and most commands say what they have to without a node.
    from http.client import HTTPException  # noqa: PLC0415

    try:
        status = asked(f"{address}/status", timeout, headers=headers)
    # HTTPException is no OSError: it is what half an answer raises.
    except (OSError, HTTPException, ValueError):
        return None
    return status if _is_status(status) else None


def _is_status(answer: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(answer, dict) and "pipelines" in answer


def node_report(answer: Mapping[str, Any] | None, ident: PipelineId) -> dict[str, Any]:
    """What a node's status says of one pipeline; empty if it says nothing."""
    return reports_of(answer).get((ident.channel, ident.pipeline), {})


def reports_of(answer: Mapping[str, Any] | None) -> dict[tuple[str, str], dict[str, Any]]:
    """What a node's status says of each pipeline, by channel and name."""
    lines: list[dict[str, Any]] = answer["pipelines"] if answer else []
    return {(str(line.get("channel")), str(line.get("pipeline"))): line for line in lines}
