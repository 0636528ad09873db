"""One process of a run, node or relay: its links to the servers, and what is done to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from setl import failpoints
from setl_drills.nodes import Cluster
from setl_drills.processes import Process, Role, alive, send, tree
from setl_drills.proxy import Direction, Link
from setl_drills.waiting import wait_for
from setl_embedded.ports import free_port

ZOOKEEPER = "zookeeper"
_GONE_LIMIT = 20.0


class Node:
    """A node, or a relay, that can be killed, frozen, cut off and armed.

    Attributes:
        nid: its id.
        links: its way to each server, by name: ``zookeeper`` (a link for each member), ``a``,
            ``b`` and ``s`` (search).
        failpoints: the folder in which its failpoints are armed.
    """

    def __init__(
        self,
        nid: str,
        cluster: Cluster,
        links: Mapping[str, Sequence[Link]],
        secrets: Mapping[str, str],
        master: str | None,
    ) -> None:
        """Describe it; nothing is started.

        Args:
            nid: its id.
            cluster: starts its process.
            links: see the attribute.
            secrets: variables with the passwords.
            master: its Spark master; None for a relay, which has no Spark.
        """
        self.nid = nid
        self.links = links
        self.failpoints = cluster.folder / f"{nid}.failpoints"
        self.failpoints.mkdir(exist_ok=True)
        self._cluster = cluster
        self._secrets = secrets
        self._master = master
        self._frozen: list[Process] = []

    @property
    def environment(self) -> dict[str, str]:
        """Where this node finds each server, and the passwords."""
        ports = {
            f"DRILL_{name.upper()}_PORT": str(links[0].port)
            for name, links in self.links.items()
            if name != ZOOKEEPER
        }
        members = ",".join(f"{link.host}:{link.port}" for link in self.links[ZOOKEEPER])
        return {
            **ports,
            **self._secrets,
            "SETL_ZOOKEEPER": members,
            failpoints.FOLDER: str(self.failpoints),
        }

    @property
    def log(self) -> Path:
        """What the node logs; appended to over restarts."""
        return self._cluster.folder / f"{self.nid}.log"

    @property
    def pid(self) -> int:
        """The driver's process id."""
        return self._cluster.nodes[self.nid].pid

    @property
    def running(self) -> bool:
        """Whether its driver lives, frozen or not."""
        process = self._cluster.nodes.get(self.nid)
        return process is not None and process.running

    def start(self) -> None:
        """Start it; returns at once."""
        self._frozen = []
        if self._master is None:
            self._cluster.start_relay(self.nid, free_port(), self.environment)
        else:
            self._cluster.start_node(self.nid, free_port(), self._master, self.environment)

    def status(self) -> dict[str, Any] | None:
        """What it says of itself; None if it does not answer."""
        return self._cluster.status(self.nid) if self.running else None

    def warm(self) -> bool:
        """Whether it could take over now."""
        status = self.status()
        return bool(status and status["warm"] and status["contact"] == "connected")

    def processes(self, *roles: Role) -> list[Process]:
        """Its processes, all or those of some roles."""
        return [p for p in tree(self.pid) if not roles or p.role in roles]

    def kill(self) -> None:
        """SIGKILL to its driver; JVM and workers find out by themselves."""
        os.kill(self.pid, signal.SIGKILL)

    def wait_gone(self, before: Sequence[Process]) -> None:
        """Wait until everything of a killed node has ended, as I3 asks for."""
        wait_for(
            f"all processes of {self.nid} to end with it",
            lambda: not any(alive(p) for p in before),
            _GONE_LIMIT,
        )

    def freeze(self) -> None:
        """SIGSTOP to all of it, so that open transactions stay open."""
        self._frozen = self.processes()
        send(self._frozen, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after `freeze`; nothing if it is not frozen."""
        send(self._frozen, signal.SIGCONT)
        self._frozen = []

    def cut(self, *names: str, direction: Direction = Direction.BOTH) -> None:
        """Cut its links to some servers."""
        for name in names:
            for link in self.links[name]:
                link.cut(direction)

    def heal(self) -> None:
        """Restore all its links."""
        for links in self.links.values():
            for link in links:
                link.heal()

    def arm(self, point: str, action: str) -> None:
        """Have the first process that passes a failpoint do something, see `setl.failpoints`."""
        if point not in failpoints.POINTS:
            raise ValueError(f"there is no failpoint {point}")
        self.taken(point).unlink(missing_ok=True)
        # Whole at once: the node may look at any moment.
        prepared = self.failpoints / f"{point}.new"
        prepared.write_text(action)
        prepared.rename(self.failpoints / point)

    def taken(self, point: str) -> Path:
        """The file that exists once an armed point was passed."""
        return self.failpoints / f"{point}.taken"

    def disarm(self) -> None:
        """Forget all failpoints."""
        for file in self.failpoints.iterdir():
            file.unlink(missing_ok=True)

    def failure(self, what: str) -> Exception:
        """An error about this node, with the end of its log."""
        return self._cluster.nodes[self.nid].failure(what)
