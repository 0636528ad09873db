"""Who sends a request to the console, who is logged in, and what form comes with a request."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from setl.clock import Clock
from setl.log import fields
from setl.node.http.authentication import TokenGuard, client_of

IDLE_SECONDS = 3600.0
LIFE_SECONDS = 12 * 3600.0
MOST_SESSIONS = 64
_MOST_NOTES = 10


@dataclass(slots=True)
class Session:
    """Somebody who showed the token.

    Attributes:
        who: for the audit log: the name that he gave, and where he came from.
        csrf: what each of his forms carries, so that no other site can send one for him.
        began: monotonic time of the log-in.
        used: monotonic time of the last request that somebody made himself.
        notes: what the next page tells him, once: level and text.
    """

    who: str
    csrf: str
    began: float
    used: float
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def note(self, level: str, text: str) -> None:
        """Tell something on the next page."""
        self.notes.append((level, text))
        del self.notes[:-_MOST_NOTES]

    def take_notes(self) -> list[tuple[str, str]]:
        """What there is to tell; it is reported once."""
        notes, self.notes = self.notes, []
        return notes

    def sent(self, csrf: str) -> bool:
        """Whether a form with this token came from a page of this session."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


class Sessions:
    """The open sessions; from any thread."""

    def __init__(
        self,
        clock: Clock,
        draw: Callable[[], str] = secrets.token_urlsafe,
        *,
        idle: float = IDLE_SECONDS,
        life: float = LIFE_SECONDS,
        most: int = MOST_SESSIONS,
    ) -> None:
        """Nobody is logged in.

        Args:
            clock: for the age of sessions.
            draw: makes a secret that nobody can guess.
            idle: seconds without a request after which a session ends.
            life: seconds after which it ends in any case.
            most: sessions at a time; the one that was not used for the longest time is throttled.
        """
        self._clock = clock
        self._draw = draw
        self._idle = idle
        self._life = life
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[bytes, Session] = {}

    def open(self, who: str) -> tuple[str, Session]:
        """Log somebody in; returns the cookie's value, which is kept nowhere else."""
        now, ident = self._clock.monotonic(), self._draw()
        session = Session(who, self._draw(), now, now)
        with self._lock:
            self._forget_old(now)
            while len(self._open) >= self._most:
                del self._open[min(self._open, key=lambda key: self._open[key].used)]
            self._open[_key(ident)] = session
        return ident, session

    def find(self, ident: str, *, touch: bool = True) -> Session | None:
        """The session of a cookie; None if there is none (any more).

        Args:
            ident: the cookie's value.
            touch: whether somebody does something, which keeps the session alive. A page that is
                left open asks again and again by itself.
        """
        now = self._clock.monotonic()
        with self._lock:
            self._forget_old(now)
            session = self._open.get(_key(ident))
            if session is not None and touch:
                session.used = now
            return session

    def close(self, ident: str) -> None:
        """Log out."""
        with self._lock:
            self._open.pop(_key(ident), None)

    def _forget_old(self, now: float) -> None:
        for key, session in list(self._open.items()):
            if now - session.used > self._idle or now - session.began > self._life:
                del self._open[key]


def _key(ident: str) -> bytes:
    # What is compared is not the secret: how long a look-up takes tells nothing about it.
    return hashlib.sha256(ident.encode()).digest()


_log = logging.getLogger(__name__)

FORM_BYTES = 1 << 20
FORM_SECONDS = 10.0
_MOST_FIELDS = 100
_OWN_SITE = frozenset({"same-origin", "none"})


class HttpError(Exception):
    """A request that is not carried out.

    Attributes:
        code: HTTP status code.
        title: of the page that says so.
    """

    def __init__(self, code: int, title: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.title = title


class LoggedIn(NamedTuple):
    """Somebody who has just logged in: what the cookie is to hold, and the session."""

    cookie: str
    session: Session


class Authenticator:
    """Lets people in who know the token, and knows them again."""

    def __init__(self, nid: str, guard: TokenGuard, clock: Clock) -> None:
        """Nobody is in.

        Args:
            nid: the node, after which its cookie is named: two nodes of one machine share a host,
                and browsers give each of them the cookies of both.
            guard: knows the token that lets in; without one nobody gets in.
            clock: for the age of sessions.
        """
        self._cookie = f"setl_{nid}"
        self._guard = guard
        self._sessions = Sessions(clock)

    @property
    def opens(self) -> bool:
        """Whether there is a token at all."""
        return self._guard.is_set

    def session(self, request: Request, *, touch: bool = True) -> Session | None:
        """The session of whoever sends a request.

        Args:
            request: what is sent.
            touch: whether it keeps the session alive; see `Sessions.find`.
        """
        ident = request.cookies.get(self._cookie)
        if not ident or not self._guard.is_set:
            return None
        return self._sessions.find(ident, touch=touch)

    def let_in(self, request: Request, name: str, token: str) -> LoggedIn:
        """Log somebody in.

        Raises:
            HttpError: the token is wrong, or too many were.
        """
        if not self._guard.is_set:
            text = "Changing anything is off: SETL_HTTP_TOKEN is not set on this node."
            raise HttpError(403, "Read-only", text)
        client = client_of(request)
        if wait := self._guard.wait(client):
            text = f"Too many wrong tokens from {client}. Try again in {wait} s."
            raise HttpError(429, "Wait", text)
        if not self._guard.is_known_to(client, token.strip().encode()):
            # Not in the log of actions: whoever guesses would push out what was done.
            _log.warning("wrong token at the console", extra=fields(client=client))
            raise HttpError(401, "Wrong token", "The token is wrong.")
        shown = " ".join(name.split())[:64]
        return LoggedIn(*self._sessions.open(f"{shown} ({client})" if shown else client))

    def give_cookie(self, response: Response, request: Request, cookie: str) -> None:
        """Have the browser remember the session, and show it to nobody else."""
        response.set_cookie(
            self._cookie,
            cookie,
            max_age=int(LIFE_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def let_out(self, request: Request, response: Response) -> None:
        """Log out."""
        self._sessions.close(request.cookies.get(self._cookie, ""))
        response.delete_cookie(self._cookie, path="/", httponly=True, samesite="strict")


def refuse_other_sites(request: Request) -> None:
    """Browsers say from which page a form comes; only our own may send one.

    Raises:
        HttpError: it comes from elsewhere.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    other = site is not None and site not in _OWN_SITE
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        other = True
    if other:
        raise HttpError(403, "Refused", "This form was sent by a page of another site.")


async def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form, within limits of size and time.

    Raises:
        HttpError: it is too large, too slow or no form; or another site has sent it.
    """
    refuse_other_sites(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise HttpError(415, "Not a form", "What was sent is not a form.")
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > FORM_BYTES:
                    raise HttpError(413, "Too large", f"A form has at most {FORM_BYTES:,} bytes.")
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except TimeoutError:
        raise HttpError(408, "Too slow", "The form did not arrive in time.") from None
    except (ClientDisconnect, ValueError):
        raise HttpError(400, "Not a form", "What was sent cannot be read.") from None
    return dict(fields)
