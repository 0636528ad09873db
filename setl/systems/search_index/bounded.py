"""Reads answers up to a size, if they are whole and of the right product.

Clients read an answer whole, and undo a compression that the server says it has, whether anybody
asked for it or not. So whoever answers at the address, or a broken proxy before it, could take all
memory of a node with one answer of a few kilobytes.

They also take an answer without a body for nothing, and a page of HTML or a list for the object
that was asked for. A connection that ends behind the headers, and a proxy that asks people to log
in, say no more than that there is no answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from urllib3.exceptions import HTTPError

from setl.systems.search_index.answers import name_said

LARGEST: Final = 1024 * 1024 * 1024
"""Bytes that one answer may have. Pages of rows and bulk answers have some megabytes."""

_PIECE: Final = 1024 * 1024


class OtherProductError(HTTPError):
    """A server of another product answers; the channel file names the wrong one."""


def name_at(pool: Any, sent: Mapping[str, str]) -> str:
    """What the server behind a pool calls its product; "" if it does not say.

    Args:
        pool: of urllib3.
        sent: the headers of a request, of which the account is used again.
    """
    account = {name: value for name, value in sent.items() if name.lower() == "authorization"}
    try:
        return name_said(json.loads(pool.urlopen("GET", "/", headers=account).data))
    except (HTTPError, ValueError):
        return ""


@dataclass(frozen=True, slots=True)
class BoundedAnswer:
    """An answer as urllib3 gives it, as far as clients look at it."""

    status: int
    headers: Any
    data: bytes


class BoundedPool:
    """Connections of urllib3, as far as clients use them; answers have a largest size."""

    def __init__(
        self,
        pool: Any,
        whose: Callable[[BoundedAnswer, Any], str],
        product: str,
        most: int | None = None,
    ) -> None:
        """Take the place of a pool.

        Args:
            pool: of urllib3.
            whose: the product that an answer is of, given the headers of the request, too; "" for
                none that it knows. May raise OtherProductError.
            product: the product that is wanted.
            most: bytes of an answer.
        """
        self._pool = pool
        self._whose = whose
        self._product = product
        self._most = LARGEST if most is None else most

    def urlopen(self, method: str, url: str, body: Any = None, **more: Any) -> BoundedAnswer:
        """See `urllib3.HTTPConnectionPool.urlopen`; the body is read.

        Raises:
            HTTPError: the answer is too large or none, or the connection fails.
            OtherProductError: another product answers.
        """
        response = self._pool.urlopen(method, url, body, preload_content=False, **more)
        try:
            data = self._body(response)
        except BaseException:
            response.close()  # what is left of the answer would be taken for the next one
            raise
        response.release_conn()
        answer = BoundedAnswer(response.status, response.headers, data)
        self._check(method, answer, more.get("headers"))
        return answer

    def _check(self, method: str, answer: BoundedAnswer, sent: Any) -> None:
        own = self._whose(answer, sent) == self._product
        if not 200 <= answer.status < 300:
            return
        if not answer.data and method != "HEAD":
            raise HTTPError("the answer is empty")
        # All that is asked for is an object of JSON.
        if not own or (answer.data and not is_object(answer)):
            kind = answer.headers.get("content-type", "no content type")
            raise HTTPError(
                f"the answer is not one of {self._product} ({kind}); look at what stands at this"
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


def is_object(answer: BoundedAnswer) -> bool:
    """Whether an answer may be an object of JSON."""
    return answer.data.lstrip()[:1] == b"{"
