"""Who may do and read what over HTTP: the node's token, its read key, and a limit on guesses."""

from __future__ import annotations

import hmac
import ipaddress
import math
import secrets
import threading

from starlette.requests import Request

from setl.clock import Clock
from setl.node.cluster.answers import KEY_HEADER
from setl.node.http.probes import TOO_MANY, Reply

LONGEST_NAME = 64
"""Characters of a client's name that are kept; an address has fewer."""


def client_name(client: str) -> str:
    """The name under which a client is counted.

    Whoever has one address of IPv6 has 2^64 of them. Text that is no address stays, shortened.
    """
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:LONGEST_NAME]
    if address.version == 6:
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        bare = ipaddress.IPv6Address(int(address))  # without a zone, which a network cannot have
        return str(ipaddress.ip_network((bare, 64), strict=False))
    return str(address)


FREE_ATTEMPTS = 5
LONGEST_WAIT = 300.0
FORGOTTEN_AFTER = 3600.0
MOST_CLIENTS = 4096


class Attempts:
    """Counts wrong tokens by client address; from any thread.

    After a few of them a client waits, twice as long each time. Whoever has a whole network of
    IPv6 addresses counts as one client.
    """

    def __init__(self, clock: Clock, most: int = MOST_CLIENTS) -> None:
        """Nobody has tried yet.

        Args:
            clock: for the time that has passed.
            most: clients that are remembered. Guesses from more than that push out whoever has
                tried least: it is better to forget one of them than to let nobody else in.
        """
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._failed: dict[str, tuple[int, float]] = {}  # number, monotonic time of the last

    def wait(self, client: str) -> float:
        """Seconds until a client may try again; 0 if it may now."""
        now = self._clock.monotonic()
        with self._lock:
            self._forget_old(now)
            number, last = self._failed.get(client_name(client), (0, 0.0))
            return max(0.0, last + _pause(number) - now)

    def failed(self, client: str) -> None:
        """The client showed a wrong token."""
        now, name = self._clock.monotonic(), client_name(client)
        with self._lock:
            if name not in self._failed and len(self._failed) >= self._most:
                del self._failed[min(self._failed, key=self._failed.__getitem__)]
            self._failed[name] = (self._failed.get(name, (0, 0.0))[0] + 1, now)

    def succeeded(self, client: str) -> None:
        """The client showed the right one."""
        with self._lock:
            self._failed.pop(client_name(client), None)

    def _forget_old(self, now: float) -> None:
        for name, (_, last) in list(self._failed.items()):
            if now - last > FORGOTTEN_AFTER:
                del self._failed[name]


def _pause(number: int) -> float:
    if number < FREE_ATTEMPTS:
        return 0.0
    return min(LONGEST_WAIT, 2.0 ** min(number - FREE_ATTEMPTS, 16))


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
