"""Reads answers up to a size, if they are whole and of Elasticsearch; their parts may be missing.

The client reads an answer whole, and undoes a compression that the server says it has, whether
anybody asked for it or not. So whoever answers at the address, or a broken proxy before it, could
take all memory of a node with one answer of a few kilobytes.

It also takes an answer without a body for nothing, and once it has seen that a server is
Elasticsearch, a page of HTML or a list for the object that was asked for. A connection that ends
behind the headers, and a proxy that asks people to log in, say no more than that there is no
answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from elastic_transport import NodeConfig, Urllib3HttpNode
from urllib3.exceptions import HTTPError

LARGEST: Final = 1024 * 1024 * 1024
"""Bytes that one answer may have. Pages of rows and bulk answers have some megabytes."""

_PIECE: Final = 1024 * 1024
_PRODUCT: Final = "x-elastic-product"  # is on every answer of Elasticsearch


class BoundedNode(Urllib3HttpNode):
    """One server, whose answers have a largest size; for `node_class` of the client."""

    def __init__(self, config: NodeConfig) -> None:
        """See `Urllib3HttpNode`."""
        super().__init__(config)
        self.pool: Any = _BoundedPool(self.pool, LARGEST)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Any
    data: bytes


class _BoundedPool:
    """Connections of urllib3, as far as a node of the client uses them."""

    def __init__(self, pool: Any, most: int) -> None:
        self._pool = pool
        self._most = most

    def urlopen(self, method: str, url: str, **more: Any) -> _Answer:
        """See `urllib3.HTTPConnectionPool.urlopen`; the body is read.

        Raises:
            HTTPError: the answer is too large or none, or the connection fails.
        """
        response = self._pool.urlopen(method, url, preload_content=False, **more)
        try:
            data = self._body(response)
        except BaseException:
            response.close()  # what is left of the answer would be taken for the next one
            raise
        response.release_conn()
        if 200 <= response.status < 300:
            self._check(method, response.headers, data)
        return _Answer(response.status, response.headers, data)

    def _check(self, method: str, headers: Any, data: bytes) -> None:
        if not data and method != "HEAD":
            raise HTTPError("the answer is empty")
        own = _PRODUCT in headers
        # All that is asked for is an object of JSON.
        if not own or (data and data.lstrip()[:1] != b"{"):
            kind = headers.get("content-type", "no content type")
            raise HTTPError(
                f"the answer is not one of Elasticsearch ({kind}); look at what stands at this"
                " address, such as a proxy"
            )

    def _body(self, response: Any) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while piece := response.read(_PIECE, decode_content=True):
            size += len(piece)
            if size > self._most:
                raise HTTPError(f"the answer has more than {self._most} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def part(value: object, name: str) -> dict[str, Any]:
    """The object under a name, empty if there is none."""
    found: object = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def each(value: object, name: str) -> Iterator[dict[str, Any]]:
    """The objects in the object under a name."""
    for item in part(value, name).values():
        if isinstance(item, dict):
            yield cast("dict[str, Any]", item)


def number(value: dict[str, Any], name: str) -> int:
    """The whole number under a name, 0 if there is none."""
    found: object = value.get(name)
    return int(found) if isinstance(found, (int, float)) else 0
