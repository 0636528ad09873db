"""Watches on all that decisions depend on, armed again whenever one has fired.

These are the znodes that `arbiter.reading` reads. While nothing has fired, they are as they were.

ZooKeeper's watches fire once and die with their connection. Callbacks only note that, since a
call made in one would block all others; `TreeWatch.arm` is called from a thread that may wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from arbiter.paths import Paths

Fired = Callable[[Any], None]
"""What is called, with kazoo's event, when a watch fires."""

_CHILDREN, _DATA = "children", "data"
_Key = tuple[str, str]


class WatchedReads(Protocol):
    """Reads that leave a watch behind."""

    def children_watched(self, path: str, fired: Fired) -> Sequence[str] | None:
        """Names below `path`, or None (and no watch) if there is no such path."""
        ...

    def exists_watched(self, path: str, fired: Fired) -> bool:
        """Whether `path` exists; the watch fires when it comes, changes or goes."""
        ...


class TreeWatch:
    """Knows which watches are armed, and arms those that are not."""

    def __init__(self, paths: Paths, reads: WatchedReads, wake: Callable[[], None]) -> None:
        """Call `wake`, which must not block, when there is something to arm again."""
        self._paths = paths
        self._reads = reads
        self._wake = wake
        self._lock = threading.Lock()
        # Watches of an earlier connection may still report; their generation gives them away.
        self._generation = 0
        self._armed: dict[_Key, Sequence[str]] = {}  # with the children that were read
        self._complete = False
        self._arming = False
        self._news = 0

    @property
    def complete(self) -> bool:
        """Whether every watch that there should be is armed."""
        with self._lock:
            return self._complete

    @property
    def news(self) -> int | None:
        """See `arbiter.znodes.Znodes.news`."""
        with self._lock:
            return self._news if self._complete and not self._arming else None

    def touched(self, path: str = "") -> None:
        """This session has changed something, whose watch may tell so a moment later.

        Args:
            path: what it was; "" for anything. No decision depends on what is not watched, such as
                checkpoints, and pipelines may keep one several times a second.
        """
        above = path.rpartition("/")[0]
        keys = ((_DATA, path), (_CHILDREN, path), (_CHILDREN, above))
        with self._lock:
            known = path and self._complete and not self._arming
            if not known or any(key in self._armed for key in keys):
                self._news += 1

    @property
    def armed(self) -> int:
        """How many watches are armed."""
        with self._lock:
            return len(self._armed)

    def forget(self) -> None:
        """All watches are gone with their connection."""
        with self._lock:
            self._generation += 1
            self._news += 1
            self._armed.clear()
            self._complete = False
        self._wake()

    def arm(self) -> None:
        """Arm what is not armed; whoever looks at the tree afterwards will hear of changes.

        Raises:
            ArbiterError: a read failed; what was armed so far stays armed.
        """
        with self._lock:
            generation = self._generation
            self._complete = True  # until one fires, maybe before this is done
            self._arming = True
        wanted: set[_Key] = set()
        try:
            self._watch_data(self._paths.epoch, generation, wanted)
            for nid in self._below(self._paths.nodes, generation, wanted):
                self._watch_data(f"{self._paths.nodes}/{nid}", generation, wanted)
            for channel in self._below(self._paths.channels, generation, wanted):
                path = f"{self._paths.channels}/{channel}"
                self._watch_data(path, generation, wanted)
                for pipeline in self._below(path, generation, wanted):
                    self._watch_data(f"{path}/{pipeline}/mainstem", generation, wanted)
                    signals = f"{path}/{pipeline}/signals"
                    for signal in self._below(signals, generation, wanted):
                        self._watch_data(f"{signals}/{signal}", generation, wanted)
        except BaseException:
            with self._lock:
                self._complete = self._arming = False
            raise
        with self._lock:
            self._arming = False
            if generation == self._generation:
                for key in self._armed.keys() - wanted:
                    del self._armed[key]

    def _below(self, path: str, generation: int, wanted: set[_Key]) -> Sequence[str]:
        """The names below `path`, watched."""
        key = (_CHILDREN, path)
        wanted.add(key)
        known = self._claim(key, generation)
        if known is not None:
            return known
        fired = partial(self._fired, generation, key)
        try:
            names = self._reads.children_watched(path, fired)
            # Children of nothing cannot be watched, but its coming can; if it came between the
            # two reads, they can after all.
            if names is None and self._reads.exists_watched(path, fired):
                names = self._reads.children_watched(path, fired)
        except BaseException:
            self._drop(key, generation)
            raise
        with self._lock:
            if generation == self._generation and key in self._armed:
                self._armed[key] = names or ()
        return names or ()

    def _watch_data(self, path: str, generation: int, wanted: set[_Key]) -> None:
        key = (_DATA, path)
        wanted.add(key)
        if self._claim(key, generation) is not None:
            return
        try:
            self._reads.exists_watched(path, partial(self._fired, generation, key))
        except BaseException:
            self._drop(key, generation)
            raise

    def _claim(self, key: _Key, generation: int) -> Sequence[str] | None:
        """What is known of an armed watch; None if the caller is to arm it.

        It counts as armed before the request is sent, since it may fire before the answer is
        looked at, and that must not be overwritten.
        """
        with self._lock:
            if generation != self._generation:
                return ()  # the connection changed: this round is void, and another follows
            known = self._armed.get(key)
            if known is None:
                self._armed[key] = ()
            return known

    def _drop(self, key: _Key, generation: int) -> bool:
        with self._lock:
            if generation != self._generation:
                return False
            self._armed.pop(key, None)
            self._news += 1
            self._complete = False
            return True

    def _fired(self, generation: int, key: _Key, _event: Any) -> None:
        """In kazoo's callback thread: note it, and let another thread do the rest."""
        if self._drop(key, generation):
            self._wake()
