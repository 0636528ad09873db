"""Watches pipelines from outside while a drill runs: the target's marks, and what nodes say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pymysql

from setl.systems.mysql.stored.marks import MAX_SLOTS, mark_id
from setl_drills.checkers import Advance
from setl_drills.watching import Watch
from setl_embedded import DatabaseServer

_INTERVAL = 0.04


class MarkWatch(Watch):
    """Sees each load transaction of MySQL pipelines arrive, by the mark row it changes.

    Attributes:
        advances: by pipeline key, in order of time.
    """

    def __init__(self, targets: Mapping[str, DatabaseServer]) -> None:
        """Describe it.

        Args:
            targets: by pipeline key, ``channel/pipeline``, the server it writes to.
        """
        super().__init__("marks")
        self.advances: dict[str, list[Advance]] = {key: [] for key in targets}
        self._targets = dict(targets)

    def watch(self) -> None:
        """See `Watch`."""
        seen: dict[str, set[str]] = {key: set() for key in self._targets}
        while not self._stopping.is_set():
            try:
                with _Connections(self._targets.values()) as connections:
                    while not self._stopping.wait(_INTERVAL):
                        for key, server in self._targets.items():
                            self._look(key, connections.of(server), seen[key])
            except (pymysql.MySQLError, OSError):
                self._stopping.wait(0.1)  # a site that is away comes back

    def _look(self, key: str, connection: Any, seen: set[str]) -> None:
        first = mark_id(key, 0)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT CHANNEL_INFO FROM retl.retl_mark WHERE ID BETWEEN %s AND %s",
                (first, first + MAX_SLOTS - 1),
            )
            found = {str(row[0]) for row in cursor.fetchall()}
        now = time.time()
        for info in sorted(found - seen, key=_epoch):
            self.advances[key].append(Advance(now, _epoch(info)))
        seen.clear()
        seen.update(found)

    def follow_site(self, former: DatabaseServer, follower: DatabaseServer) -> None:
        """Look at another server where one was looked at until now."""
        for key, server in self._targets.items():
            if server is former:
                self._targets[key] = follower

    def epoch(self, key: str) -> int:
        """The newest epoch that wrote; 0 if none did."""
        self.check()
        return max((a.epoch for a in self.advances[key]), default=0)

    def since(self, key: str, moment: float) -> list[Advance]:
        """The loads seen from a moment on."""
        self.check()
        return [a for a in list(self.advances[key]) if a.at >= moment]


def _epoch(info: str) -> int:
    head = info.partition(".")[0]
    return int(head) if head.isdecimal() else 0


class _Connections:
    """A connection for each of several servers."""

    def __init__(self, servers: Any) -> None:
        self._servers = {server.name: server for server in servers}
        self._open: dict[str, Any] = {}

    def __enter__(self) -> _Connections:
        for name, server in self._servers.items():
            self._open[name] = server.connect(read_timeout=5)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.close()

    def of(self, server: DatabaseServer) -> Any:
        return self._open[server.name]


@dataclass
class Leadership:
    """What a node said of a pipeline under one epoch, as last seen."""

    nid: str = ""
    state: str = ""
    error: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


class StatusWatch(Watch):
    """Polls the nodes' own words.

    Attributes:
        leaderships: by pipeline key, then epoch.
        states: by pipeline key: (time, nid, state) of each change that a leader reported.
    """

    def __init__(self, statuses: Mapping[str, Callable[[], dict[str, Any] | None]]) -> None:
        """Describe it.

        Args:
            statuses: by node id, what asks the node.
        """
        super().__init__("statuses")
        self.leaderships: dict[str, dict[int, Leadership]] = {}
        self.contacts: dict[str, list[tuple[float, str]]] = {nid: [] for nid in statuses}
        self._statuses = dict(statuses)

    def watch(self) -> None:
        """See `Watch`."""
        while not self._stopping.wait(0.25):
            self.look()

    def look(self) -> None:
        """Ask every node once."""
        for nid, ask in self._statuses.items():
            status = ask()
            if status is None:
                continue
            contacts = self.contacts[nid]
            if not contacts or contacts[-1][1] != status["contact"]:
                contacts.append((time.time(), status["contact"]))
            for line in status["pipelines"]:
                if line["mine"]:
                    self._see(nid, line)

    def _see(self, nid: str, line: dict[str, Any]) -> None:
        key = f"{line['channel']}/{line['pipeline']}"
        figures = line["figures"]
        epochs = self.leaderships.setdefault(key, {})
        epochs[line["epoch"]] = Leadership(nid, figures["state"], figures["error"], figures)

    def leaderships_of(self, key: str) -> dict[int, Leadership]:
        """The leaderships of a pipeline that were seen until now, by epoch."""
        self.check()
        return dict(self.leaderships.get(key, {}))

    def total(self, key: str, figure: str) -> int:
        """A counter of a pipeline, summed over all leaderships."""
        return sum(int(s.figures[figure]) for s in self.leaderships_of(key).values())

    def latest(self, key: str) -> Leadership:
        """The newest leadership of a pipeline that was seen."""
        epochs = self.leaderships_of(key)
        return epochs[max(epochs)] if epochs else Leadership()
