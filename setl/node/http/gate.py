"""Admits requests that change something only with the token."""

from __future__ import annotations

from setl.node.http.probes import TOO_MANY, Reply
from setl.node.http.token_guard import TokenGuard

UNAUTHORIZED = 401
FORBIDDEN = 403


class Gate:
    """Looks for the token in requests; it is never shown."""

    def __init__(self, guard: TokenGuard) -> None:
        """Without a token nobody gets in."""
        self._guard = guard

    def refusal(self, authorization: str | None, client: str) -> Reply | None:
        """What to answer instead of doing what is asked; None if it may be done.

        Args:
            authorization: the request's header of that name, as RFC 6750 has it:
                ``Bearer <token>``. Its characters stand for bytes (latin-1).
            client: the address that it comes from.
        """
        if not self._guard.is_set:
            error = "writing over HTTP is off: SETL_HTTP_TOKEN is not set"
            return Reply(FORBIDDEN, {"error": error})
        scheme, _, given = (authorization or "").partition(" ")
        given = given.strip()
        if scheme.lower() != "bearer" or not given:
            return Reply(UNAUTHORIZED, {"error": "the header `Authorization: Bearer …` is missing"})
        if wait := self._guard.wait(client):
            error = f"too many wrong tokens from {client}; try again in {wait} s"
            return Reply(TOO_MANY, {"error": error}, retry_after=wait)
        if not self._guard.is_known_to(client, given.encode("latin-1")):
            return Reply(UNAUTHORIZED, {"error": "the token is wrong"})
        return None
