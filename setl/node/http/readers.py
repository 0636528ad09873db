"""Tells who may read whole errors: who shows the node's token, or the key of its own znode."""

from __future__ import annotations

import hmac
import secrets

from starlette.requests import Request

from setl.node.cluster.answers import KEY_HEADER
from setl.node.http.gate import Gate
from setl.node.http.probes import Reply
from setl.node.http.token_guard import TokenGuard, client_of


def new_read_key() -> str:
    """A key for a node's znode. Who may read that may read what the node says in whole."""
    return secrets.token_urlsafe(32)


class Readers:
    """Knows the key and the token of one node. Both only ever let somebody read more."""

    def __init__(self, guard: TokenGuard, read_key: str) -> None:
        """Of the node whose token `guard` knows; an empty key is known to nobody."""
        self._guard = guard
        self._gate = Gate(guard)
        self._key = read_key.encode()

    def admits(self, request: Request) -> bool:
        """Whether somebody may read everything."""
        return self._shows_key(request) or (
            self._shows_token(request) and self.wrong(request) is None
        )

    def wrong(self, request: Request) -> Reply | None:
        """The answer to a token that is wrong, or was tried too often; None to everything else."""
        if self._shows_key(request) or not self._shows_token(request):
            return None
        return self._gate.refusal(request.headers.get("authorization"), client_of(request))

    def _shows_key(self, request: Request) -> bool:
        """Whether the right key is shown.

        A wrong one counts as none: it cannot be guessed, and it is wrong after the node has
        started again, until whoever asks has looked at ZooKeeper again.
        """
        shown = request.headers.get(KEY_HEADER, "").encode()
        return bool(self._key) and hmac.compare_digest(shown, self._key)

    def _shows_token(self, request: Request) -> bool:
        """Whether a token is shown; a proxy may pass an `Authorization` of another scheme on."""
        authorization = request.headers.get("authorization", "")
        return self._guard.is_set and authorization.lower().startswith("bearer ")
