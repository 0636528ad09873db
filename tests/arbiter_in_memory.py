"""An arbiter in memory, whose time and faults a test decides exactly.

cluster = MemoryCluster()
a, b = MemoryArbiter(cluster), MemoryArbiter(cluster)
a.link.suspend()
cluster.advance(11)  # longer than a's session may be silent: its znodes are gone
a.link.resume()      # and now a knows: contact LOST, a new session
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from arbiter.arbiter import Arbiter
from arbiter.errors import Contact, Unreachable
from arbiter.session.session_state import SessionState
from arbiter.znodes import Changed, Exists, Missing, Znode

_T = TypeVar("_T")


class ManualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """The same for everybody."""
        return self._now

    def now(self) -> float:
        """Counts from the same start, which is all that tests need of it."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._now += seconds


class MemoryCluster:
    """What a ZooKeeper ensemble keeps: znodes, and sessions that end when they are silent."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.lock = threading.RLock()
        self._znodes: dict[str, Znode] = {}
        self._counters: dict[str, int] = {}
        self._zxid = 0
        self._last_session = 0
        self._links: dict[int, MemoryLink] = {}
        self._listening: set[MemoryLink] = set()

    def advance(self, seconds: float) -> None:
        """Let time pass, and sessions expire that were silent for too long."""
        with self.lock:
            self.clock.advance(seconds)
            for session, link in list(self._links.items()):
                if link.silence() >= link.session_timeout:
                    self.end_session(session)
        self.tell_all()

    def tell_all(self) -> None:
        """Wake all who watch; called without the lock, since they may call back."""
        for link in tuple(self._listening):
            link.notice()

    # -- the rest is for MemoryLink, which holds the lock -----------------------------------

    def open_session(self, link: MemoryLink) -> int:
        """A session with an id that was never used before."""
        self._last_session += 1
        self._links[self._last_session] = link
        self._listening.add(link)
        return self._last_session

    def end_session(self, session: int) -> None:
        """Remove a session and every znode that ends with it."""
        self._links.pop(session, None)
        for path in [p for p, z in self._znodes.items() if z.owner == session]:
            self._zxid += 1
            del self._znodes[path]

    def forget(self, link: MemoryLink) -> None:
        """Tell a link nothing any more."""
        self._listening.discard(link)

    def lives(self, session: int) -> bool:
        """Whether a session is still alive."""
        return session in self._links

    @property
    def zxid(self) -> int:
        """That of the last change."""
        return self._zxid

    def read(self, path: str) -> Znode | None:
        """A znode, None if there is none."""
        return self._znodes.get(path)

    def children(self, path: str) -> list[str]:
        """Names of the znodes right below `path`."""
        start = f"{path}/"
        below = (p.removeprefix(start) for p in self._znodes if p.startswith(start))
        return sorted(name for name in below if "/" not in name)

    def append(self, path: str, data: bytes) -> str:
        """Create a numbered znode; see `arbiter.znodes.Znodes.append`."""
        above, _, prefix = path.rpartition("/")
        number = self._counters.get(above, 0)
        self.create(f"{path}{number:010d}", data, owner=0)
        self._counters[above] = number + 1
        return f"{prefix}{number:010d}"

    def create(self, path: str, data: bytes, *, owner: int) -> Znode:
        """Create a znode; see `arbiter.znodes.Znodes.create`."""
        above = path.rpartition("/")[0]
        if above and above not in self._znodes:
            raise Missing(f"nothing above {path}")
        if path in self._znodes:
            raise Exists(path)
        self._zxid += 1
        made = Znode(data, 0, self._zxid, owner, self.clock.now())
        self._znodes[path] = made
        return made

    def create_and_write(
        self, path: str, data: bytes, other: tuple[str, bytes, int], *, owner: int
    ) -> Znode:
        """Both or neither, at one zxid; see `arbiter.znodes.Znodes.create_and_write`."""
        made = self.create(path, data, owner=owner)
        try:
            self.write(*other)
        except (Missing, Changed):
            del self._znodes[path]
            raise
        self._zxid = made.created
        return made

    def write(self, path: str, data: bytes, version: int) -> int:
        """Replace a znode's content; see `arbiter.znodes.Znodes.write`."""
        found = self._expect(path, version)
        self._zxid += 1
        now = self.clock.now()
        self._znodes[path] = Znode(data, version + 1, found.created, found.owner, now)
        return version + 1

    def delete(self, path: str, version: int) -> None:
        """Delete a znode; see `arbiter.znodes.Znodes.delete`."""
        self._expect(path, version)
        self._zxid += 1
        del self._znodes[path]

    def delete_all(self, expected: Sequence[tuple[str, int]]) -> None:
        """Delete all or none; see `arbiter.znodes.Znodes.delete_all`."""
        gone = {path for path, _ in expected}
        for path, version in expected:
            found = self._znodes.get(path)
            if found is None or found.version != version:
                raise Changed(path)
            if any(f"{path}/{name}" not in gone for name in self.children(path)):
                raise Changed(path)
        self._zxid += 1
        for path in gone:
            del self._znodes[path]

    def remove(self, path: str) -> None:
        """Delete a znode whatever its version, as an operator's own client can."""
        with self.lock:
            self._zxid += 1
            del self._znodes[path]
        self.tell_all()

    def put(self, path: str, data: bytes) -> None:
        """Replace a znode's content whatever it is, as an operator's own client can."""
        with self.lock:
            self.write(path, data, self._znodes[path].version)
        self.tell_all()

    def _expect(self, path: str, version: int) -> Znode:
        found = self._znodes.get(path)
        if found is None:
            raise Missing(path)
        if found.version != version:
            raise Changed(path)
        return found


class MemoryLink:
    """One process's connection to a cluster, with switches for what can go wrong on it."""

    def __init__(self, cluster: MemoryCluster, session_timeout: float) -> None:
        self._cluster = cluster
        self._timeout = session_timeout
        self._life = SessionState()
        self._up = False
        self._closed = False
        self._heard = cluster.clock.monotonic()
        self._session = 0
        self._refusals = 0
        self._lost_replies = 0
        self.has_new_writes = True
        """Whether it says when something has changed; else everything is read every time."""
        self.has_changes = False
        """Whether it says what the last change of all was."""
        self.calls = 0
        """How many requests were made, refused ones included."""

    # -- switches -------------------------------------------------------------------------

    def suspend(self) -> None:
        """The connection breaks, and the process notices."""
        self.cut()
        self._life.on_suspended()

    def cut(self) -> None:
        """The connection goes dead without the process noticing: nothing is answered."""
        self._heard = self._cluster.clock.monotonic()
        self._up = False

    def resume(self) -> None:
        """The connection works again, with a new session if the old one was given up."""
        if self._closed:
            raise ValueError("the link is closed")
        with self._cluster.lock:
            lost = self._session != 0 and not self._cluster.lives(self._session)
            if lost:
                self._life.on_lost()
            if not self._cluster.lives(self._session):
                self._session = self._cluster.open_session(self)
            self._up = True
        self._life.on_connected(self._session)

    def expire(self) -> None:
        """The cluster declares the session dead; the process notices if it is connected."""
        with self._cluster.lock:
            self._cluster.end_session(self._session)
        self._cluster.tell_all()
        if self._up:
            self._up = False
            self.resume()

    def refuse(self, calls: int = 1) -> None:
        """The next requests fail and have no effect."""
        self._refusals = calls

    def drop_reply(self, writes: int = 1) -> None:
        """The next writing requests take effect, and fail for their caller all the same."""
        self._lost_replies = writes

    # -- arbiter.znodes.Znodes ------------------------------------------------------------

    @property
    def session_timeout(self) -> float:
        """See `arbiter.znodes.Znodes.session_timeout`."""
        return self._timeout

    def contact(self) -> Contact:
        """See `arbiter.znodes.Znodes.contact`."""
        return self._life.contact()

    def last_contact(self) -> float:
        """Now, while the connection works; then the moment it was cut."""
        heard = self._cluster.clock.monotonic() if self._up else self._heard
        self._life.on_answer(self._session, heard)
        return self._life.last_contact()

    def problem(self) -> str:
        """See `arbiter.znodes.Znodes.problem`; nothing is known here."""
        return ""

    def session_id(self) -> int:
        """See `arbiter.znodes.Znodes.session_id`."""
        return self._life.session_id()

    def watch(self, wake: Callable[[], None]) -> None:
        """Wakes at every change of the cluster, which is more often than is promised."""
        self._life.watch(wake)

    def rejoined(self, session: int) -> None:
        """See `arbiter.znodes.Znodes.rejoined`."""
        self._life.rejoined(session)

    def create(
        self,
        path: str,
        data: bytes,
        *,
        ephemeral: bool = False,
        session: int = 0,
    ) -> Znode:
        """See `arbiter.znodes.Znodes.create`."""

        def effect() -> Znode:
            return self._cluster.create(path, data, owner=self._session if ephemeral else 0)

        return self._change(effect, session)

    def create_and_write(
        self, path: str, data: bytes, other: tuple[str, bytes, int], *, session: int
    ) -> Znode:
        """See `arbiter.znodes.Znodes.create_and_write`."""

        def effect() -> Znode:
            return self._cluster.create_and_write(path, data, other, owner=self._session)

        return self._change(effect, session)

    def append(self, path: str, data: bytes) -> str:
        """See `arbiter.znodes.Znodes.append`."""
        return self._change(lambda: self._cluster.append(path, data), 0)

    def read(self, path: str) -> Znode | None:
        """See `arbiter.znodes.Znodes.read`."""
        return self._ask(lambda: self._cluster.read(path))

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """See `arbiter.znodes.Znodes.read_all`."""
        return [self.read(path) for path in paths]

    def children(self, path: str) -> list[str]:
        """See `arbiter.znodes.Znodes.children`."""
        return self._ask(lambda: self._cluster.children(path))

    def children_all(self, paths: Sequence[str]) -> list[list[str]]:
        """See `arbiter.znodes.Znodes.children_all`."""
        return [self.children(path) for path in paths]

    def write(self, path: str, data: bytes, version: int, *, session: int = 0) -> int:
        """See `arbiter.znodes.Znodes.write`."""
        return self._change(lambda: self._cluster.write(path, data, version), session)

    def delete(self, path: str, version: int, *, session: int = 0) -> None:
        """See `arbiter.znodes.Znodes.delete`."""
        self._change(lambda: self._cluster.delete(path, version), session)

    def delete_all(self, expected: Sequence[tuple[str, int]]) -> None:
        """See `arbiter.znodes.Znodes.delete_all`."""
        self._change(lambda: self._cluster.delete_all(expected), 0)

    def close(self) -> None:
        """See `arbiter.znodes.Znodes.close`."""
        with self._cluster.lock:
            if self._up:
                self._cluster.end_session(self._session)
            self._up, self._closed = False, True
            self._cluster.forget(self)
        self._life.on_lost()
        self._cluster.tell_all()

    def news(self) -> int | None:
        """See `arbiter.znodes.Znodes.news`; counts every change of the cluster."""
        return self._cluster.zxid if self.has_new_writes and self._up else None

    def last_change(self) -> int | None:
        """See `arbiter.znodes.Znodes.last_change`."""
        return self._cluster.zxid if self.has_changes else None

    # -- for the cluster ------------------------------------------------------------------

    def silence(self) -> float:
        """Seconds since the cluster heard of this process."""
        return 0.0 if self._up else self._cluster.clock.monotonic() - self._heard

    def notice(self) -> None:
        """Something changed; a process that is cut off hears nothing of it."""
        if self._up:
            self._life.wake_all()

    # -- how ------------------------------------------------------------------------------

    def _ask(self, effect: Callable[[], _T], session: int = 0) -> _T:
        with self._cluster.lock:
            self.calls += 1
            if self._refusals:
                self._refusals -= 1
                raise Unreachable("refused by the test")
        if not self._up and self._life.connected:
            raise Unreachable("no answer")  # cut off without knowing it
        with self._cluster.lock, self._life.bound(session):
            return effect()

    def _change(self, effect: Callable[[], _T], session: int) -> _T:
        result = self._ask(effect, session)
        self._cluster.tell_all()
        if self._lost_replies:
            self._lost_replies -= 1
            raise Unreachable("the reply was dropped by the test; the call took effect")
        return result


class MemoryArbiter(Arbiter):
    """One process's arbiter over a `MemoryCluster`; it is connected from the start.

    Attributes:
        link: its connection, with the switches for faults.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        *,
        root: str = "/setl",
        session_timeout: float = 10.0,
        history_limit: int = 100,
    ) -> None:
        self.link = MemoryLink(cluster, session_timeout)
        super().__init__(
            self.link,
            root=root,
            history_limit=history_limit,
            monotonic=cluster.clock.monotonic,
        )
        self.link.resume()
        self.link.rejoined(self.link.session_id())
