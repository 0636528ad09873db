"""Who is logged in to the console of one node. In memory: a restart logs everybody out."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from setl.clock import Clock

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
