"""Asks another node over HTTP, and takes no more from it than a node says.

Where nodes are stands in ZooKeeper. Whoever writes there may name any address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

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
