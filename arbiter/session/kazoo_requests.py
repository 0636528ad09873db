"""Requests to ZooKeeper through kazoo, none of which waits without a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, RolledBackError, RuntimeInconsistency
from kazoo.handlers.threading import AsyncResult, KazooTimeoutError
from kazoo.protocol.states import ZnodeStat

from arbiter.errors import Denied, Unreachable
from arbiter.paths import Paths
from arbiter.session.kazoo_client import translate
from arbiter.session.kazoo_link import LinkHandler
from arbiter.session.session_state import SessionState
from arbiter.session.watching import Fired, TreeWatch
from arbiter.znodes import Changed, Exists, Missing, Znode

_T = TypeVar("_T")


class KazooRequests:
    """The requests of `arbiter.znodes.Znodes`, and those that leave a watch behind.

    They go through the client of the moment, which `KazooSession` sets.
    """

    _client: KazooClient
    _handler: LinkHandler

    def __init__(
        self, hosts: str, paths: Paths, call_timeout: float, wake: Callable[[], None]
    ) -> None:
        """There is no client yet.

        Args:
            hosts: the servers, for people.
            paths: where to watch.
            call_timeout: seconds that a request may take.
            wake: called when there are watches to arm; must not block.
        """
        self._hosts = hosts
        self._root = paths.root or "/"
        self._call_timeout = call_timeout
        self._life = SessionState()
        self._watches = TreeWatch(paths, self, wake)
        self._refused = ""  # what the servers have against this client, if they said so

    def create(
        self,
        path: str,
        data: bytes,
        *,
        ephemeral: bool = False,
        session: int = 0,
    ) -> Znode:
        """See `arbiter.znodes.Znodes.create`."""
        try:
            _, stat = self._change(
                path,
                lambda client: client.create_async(
                    path, data, ephemeral=ephemeral, include_data=True
                ),
                session=session,
            )
        except Denied:
            # ZooKeeper asks whether the parent may be written to before it says that there is
            # such a znode. A root may well lie in a folder that only an administrator writes to.
            if data or self._ask(path, lambda client: client.exists_async(path)) is None:
                raise
            raise Exists(path) from None
        return _znode(data, stat)

    def create_and_write(
        self,
        path: str,
        data: bytes,
        other: tuple[str, bytes, int],
        *,
        session: int,
    ) -> Znode:
        """See `arbiter.znodes.Znodes.create_and_write`."""

        def commit(client: KazooClient) -> AsyncResult[Any]:
            together = cast("Any", client).transaction()
            together.create(path, data, ephemeral=True)
            together.set_data(*other)
            return together.commit_async()

        answers = self._change(path, commit, session=session)
        refused = [answer for answer in answers if isinstance(answer, Exception)]
        if refused:
            # Of the other one it is only said that it was rolled back, or not even tried.
            idle = RolledBackError | RuntimeInconsistency
            why = next((each for each in refused if not isinstance(each, idle)), refused[0])
            translate(why, self._hosts, path, hung_up=self._handler.ended_by_server)
        # The server does not describe what it created, but both changes have one zxid and time.
        stat = cast("ZnodeStat", answers[1])
        return Znode(data, 0, stat.mzxid, session, stat.mtime / 1000)

    def append(self, path: str, data: bytes) -> str:
        """See `arbiter.znodes.Znodes.append`."""
        made, _ = self._change(
            path, lambda client: client.create_async(path, data, sequence=True, include_data=True)
        )
        return made.rpartition("/")[2]

    def read(self, path: str) -> Znode | None:
        """See `arbiter.znodes.Znodes.read`."""
        return self.read_all((path,))[0]

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """See `arbiter.znodes.Znodes.read_all`."""
        deadline = time.monotonic() + self._call_timeout
        with self._bound(0):
            pending = [self._client.get_async(path) for path in paths]
        found: list[Znode | None] = []
        for path, answer in zip(paths, pending, strict=True):
            try:
                data, stat = self._wait(path, answer, deadline - time.monotonic())
            except Missing:
                found.append(None)
            else:
                found.append(_znode(data or b"", stat))
        return found

    def children(self, path: str) -> list[str]:
        """See `arbiter.znodes.Znodes.children`."""
        return self.children_all((path,))[0]

    def children_all(self, paths: Sequence[str]) -> list[list[str]]:
        """See `arbiter.znodes.Znodes.children_all`."""
        deadline = time.monotonic() + self._call_timeout
        with self._bound(0):
            pending = [self._client.get_children_async(path) for path in paths]
        found: list[list[str]] = []
        for path, answer in zip(paths, pending, strict=True):
            try:
                found.append(sorted(self._wait(path, answer, deadline - time.monotonic())))
            except Missing:
                found.append([])
        return found

    def write(self, path: str, data: bytes, version: int, *, session: int = 0) -> int:
        """See `arbiter.znodes.Znodes.write`."""
        stat = self._change(
            path, lambda client: client.set_async(path, data, version), session=session
        )
        return stat.version

    def delete(self, path: str, version: int, *, session: int = 0) -> None:
        """See `arbiter.znodes.Znodes.delete`."""
        self._change(path, lambda client: client.delete_async(path, version), session=session)

    def delete_all(self, expected: Sequence[tuple[str, int]]) -> None:
        """See `arbiter.znodes.Znodes.delete_all`."""

        def commit(client: KazooClient) -> AsyncResult[Any]:
            together = cast("Any", client).transaction()
            for path, version in expected:
                together.delete(path, version)
            return together.commit_async()

        answers = self._change(self._root, commit)
        refused = [a for a in answers if isinstance(a, Exception)]
        if refused:
            # Those that are right by themselves are answered with "rolled back".
            raise Changed(", ".join(dict.fromkeys(type(r).__name__ for r in refused)))

    def news(self) -> int | None:
        """See `arbiter.znodes.Znodes.news`."""
        return self._watches.news

    def last_change(self) -> int | None:
        """See `arbiter.znodes.Znodes.last_change`: every answer tells the server's last zxid."""
        return cast("Any", self._client).last_zxid or None

    # -- with a watch -----------------------------------------------------------------------

    def children_watched(self, path: str, fired: Fired) -> Sequence[str] | None:
        """See `arbiter.session.watching.WatchedReads.children_watched`."""
        try:
            return self._ask(path, lambda client: client.get_children_async(path, watch=fired))
        except Missing:
            return None

    def exists_watched(self, path: str, fired: Fired) -> bool:
        """See `arbiter.session.watching.WatchedReads.exists_watched`."""
        return self._ask(path, lambda client: client.exists_async(path, watch=fired)) is not None

    # -- how ------------------------------------------------------------------------------

    def _ask(
        self,
        path: str,
        send: Callable[[KazooClient], AsyncResult[_T]],
        *,
        session: int = 0,
        limit: float | None = None,
    ) -> _T:
        """Send a request in a session and wait for its answer, within a limit."""
        # kazoo queues requests while it is not connected, and sends them whenever it is again;
        # `bound` refuses them at once.
        with self._bound(session):
            pending = send(self._client)
        return self._wait(path, pending, self._call_timeout if limit is None else limit)

    def _change(
        self, path: str, send: Callable[[KazooClient], AsyncResult[_T]], *, session: int = 0
    ) -> _T:
        """As `_ask`, of something that changes the tree, whatever comes of it."""
        try:
            return self._ask(path, send, session=session)
        finally:
            self._watches.touched("" if path == self._root else path)

    @contextmanager
    def _bound(self, session: int) -> Generator[None]:
        """See `SessionState.bound`; raises Denied if that is why nothing is sent."""
        try:
            with self._life.bound(session):
                yield
        except Unreachable as error:
            if self._refused:
                raise Denied(self._refused) from error
            raise

    def _wait(self, path: str, pending: AsyncResult[_T], limit: float) -> _T:
        try:
            return pending.get(timeout=max(0.0, limit))
        except (KazooException, KazooTimeoutError) as error:
            translate(error, self._hosts, path, hung_up=self._handler.ended_by_server)


def _znode(data: bytes, stat: ZnodeStat) -> Znode:
    return Znode(data, stat.version, stat.czxid, stat.ephemeralOwner, stat.mtime / 1000)
