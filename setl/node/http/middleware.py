"""What every request passes first: trusted proxies, and the hosts that a node answers for.

A page of another site can have its own name turned to this node's address while somebody looks at
it (DNS rebinding). His browser takes the node for that site then, and shows the page all answers.
The name stays the page's, though.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
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


MISDIRECTED = 421
_LONGEST = 253  # characters of a host's name


class KnownHosts:
    """Refuses requests for other hosts. Who gives none is no browser, and is answered."""

    def __init__(self, application: ASGIApp, hosts: Iterable[str]) -> None:
        """Answers for `hosts`, for addresses, and for this machine's names.

        Args:
            application: what answers.
            hosts: further names; ``*.NAME`` for all below a name.
        """
        self._application = application
        names = {host.lower() for host in (*hosts, "localhost", socket.gethostname())}
        self._names = {name for name in names if not name.startswith("*.")}
        self._below = tuple(name[1:] for name in names if name.startswith("*."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""
        if scope["type"] == "http":
            host = _bare(Headers(scope=scope).get("host", ""))
            if host and not self._knows(host):
                text = (
                    f"this node does not answer for the host {host[:_LONGEST]!r}: name it in"
                    " `hosts` (--hosts, SETL_HTTP_HOSTS)"
                )
                refused = JSONResponse({"error": text}, MISDIRECTED, {"Cache-Control": "no-store"})
                await refused(scope, receive, send)
                return
        await self._application(scope, receive, send)

    def _knows(self, host: str) -> bool:
        if host in self._names or host.endswith(self._below):
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True


def _bare(host: str) -> str:
    """A host without its port, and without the dot that may end a name."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")
