"""Admits requests that change something only with the token."""

from __future__ import annotations

import hmac

from setl.node.http.probes import Reply

UNAUTHORIZED = 401
FORBIDDEN = 403


class Gate:
    """Compares the token of a request with the node's; neither is ever shown."""

    def __init__(self, token: str) -> None:
        """With an empty token nobody gets in."""
        self._token = token.encode()

    def refusal(self, authorization: str | None) -> Reply | None:
        """What to answer instead of doing what is asked; None if it may be done.

        Args:
            authorization: the request's header of that name, as RFC 6750 has it:
                ``Bearer <token>``. Its characters stand for bytes (latin-1).
        """
        if not self._token:
            error = "writing over HTTP is off: SETL_HTTP_TOKEN is not set"
            return Reply(FORBIDDEN, {"error": error})
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return Reply(UNAUTHORIZED, {"error": "the header `Authorization: Bearer …` is missing"})
        # Takes as long for a token that is nearly right as for one that is all wrong.
        if not hmac.compare_digest(given.strip().encode("latin-1"), self._token):
            return Reply(UNAUTHORIZED, {"error": "the token is wrong"})
        return None
