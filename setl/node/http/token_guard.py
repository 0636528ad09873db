"""Tells who knows the node's token. Pages and requests ask the same one."""

from __future__ import annotations

import hmac
import math

from starlette.requests import Request

from setl.clock import Clock
from setl.node.http.addresses import LONGEST_NAME
from setl.node.http.attempts import Attempts


class TokenGuard:
    """Compares tokens with the node's, which is never shown, and slows down who guesses."""

    def __init__(self, token: str, clock: Clock) -> None:
        """Nobody has tried yet; an empty token is known to nobody."""
        self._token = token.encode()
        self._attempts = Attempts(clock)

    @property
    def is_set(self) -> bool:
        """Whether there is a token at all."""
        return bool(self._token)

    def wait(self, client: str) -> int:
        """Whole seconds until a client may try again; 0 if it may now."""
        return math.ceil(self._attempts.wait(client))

    def is_known_to(self, client: str, shown: bytes) -> bool:
        """Whether a client has shown the token. If it has not, that counts as an attempt."""
        # Takes as long for a token that is nearly right as for one that is all wrong.
        if self._token and hmac.compare_digest(shown, self._token):
            self._attempts.succeeded(client)
            return True
        self._attempts.failed(client)
        return False


def client_of(request: Request) -> str:
    """The address that a request comes from; that of a proxy's client if the proxy is known."""
    return request.client.host[:LONGEST_NAME] if request.client else "somebody"
