"""Believes proxies that the configuration names what they say of their clients; and nobody else."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from setl.log import fields
from setl.node.http.exposure import Exposure, address_of

_log = logging.getLogger(__name__)
_SCHEMES = frozenset({"http", "https"})


class Forwarded:
    """Gives an application the client behind a proxy, and the scheme that it used."""

    def __init__(self, application: ASGIApp, exposure: Exposure) -> None:
        """For the proxies that `exposure` names."""
        self._application = application
        self._exposure = exposure
        self._logged = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            peer = scope["client"][0] if scope.get("client") else ""
            if self._exposure.is_proxy(peer):
                scope = {**scope, "client": (self._client(headers, peer), 0)}
                proto = ",".join(headers.getlist("x-forwarded-proto"))
                said = proto.rpartition(",")[2].strip().lower()
                if said in _SCHEMES:
                    scope["scheme"] = said
            elif "x-forwarded-for" in headers and not self._logged:
                self._logged = True
                _log.warning(
                    "requests come through a proxy that `behind` does not name: whoever guesses"
                    " tokens through it makes all its clients wait",
                    extra=fields(proxy=peer),
                )
        await self._application(scope, receive, send)

    def _client(self, headers: Headers, peer: str) -> str:
        """The last address that is not a proxy's. What stands before it, a client can invent."""
        said = ",".join(headers.getlist("x-forwarded-for")).split(",")
        client = peer
        for each in reversed(said):
            address = address_of(each)
            if address is None:
                return client
            client = str(address)
            if not self._exposure.is_proxy(client):
                return client
        return client
