"""The world of a run: servers, nodes, relays, and a link from each of these to each server.

It is started once and serves drill after drill; between them it is repaired: links are healed,
frozen nodes go on, dead ones are started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from arbiter.errors import Conflict
from arbiter.values import ChannelState, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.run.spark.left_folders import remove_left_folders
from setl.systems.mysql.sql_files import system_table_statements
from setl_drills.node import ZOOKEEPER, Node
from setl_drills.nodes import Cluster
from setl_drills.proxy import Links
from setl_drills.replication import MARIADB_OPTIONS, follow, promote, replica_of, wait_caught_up
from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer, Kafka, Stack, ZooKeeper, ZooKeeperEnsemble

SESSION_TIMEOUT = 4.0
"""Of the nodes, in seconds; short, since nearly every drill waits for it at least once."""
_WARM_LIMIT = 400.0
_STOP_LIMIT = 60.0
_QUORUM = 3
NODES = 3
_RELAYS = 2

Say = Callable[[str], None]

SITES: Final = {
    "mariadb": "two MariaDB servers",
    "mysql": "two MySQL servers",
    "mixed": "a MySQL and a MariaDB server",
}
"""What the two sites may be, and what a line of progress calls them; of `mixed`, MySQL is A."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a drill needs besides nodes, two sites and one ZooKeeper server.

    Attributes:
        quorum: three ZooKeeper servers.
        search: an Elasticsearch server.
        kafka: a Kafka broker.
        replica: a replica of site A.
        relays: processes of `setl relay`, one to lead and one to stand by.
    """

    quorum: bool = False
    search: bool = False
    kafka: bool = False
    replica: bool = False
    relays: bool = False

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            quorum=self.quorum or other.quorum,
            search=self.search or other.search,
            kafka=self.kafka or other.kafka,
            replica=self.replica or other.replica,
            relays=self.relays or other.relays,
        )


class World:
    """A context manager: everything is warm on entry and gone on exit.

    Attributes:
        folder: data and logs of everything.
        stack: the servers.
        replica: a replica of site A, None if no drill needs it.
        sites: the database servers by name, ``a`` and ``b``.
        arbiter: a connection of the drills' own, which no drill cuts.
        nodes: the nodes by id.
        relays: the relays by id, none if no drill needs them.
        say: where a line of progress goes.
        slack: seconds that outages may be longer than their bounds.
        tempo: how fast users write, as a part of what each drill has them write.
    """

    session_timeout = SESSION_TIMEOUT

    def __init__(
        self,
        folder: Path,
        needs: Needs,
        *,
        say: Say,
        nodes: int = NODES,
        slack: float = 0.0,
        tempo: float = 1.0,
        master: str = "local[2]",
        sites: str = "mariadb",
    ) -> None:
        """Describe it; nothing is started.

        Args:
            folder: for data and logs.
            needs: which servers.
            say: takes lines of progress.
            nodes: how many setl nodes; a third lets one come back while a drill goes on.
            slack: seconds that outages may be longer than their bounds.
            tempo: how fast users write, see the attribute.
            master: Spark master of each node.
            sites: a key of `SITES`.
        """
        self._products = SITES[sites]
        self._count = nodes
        self.slack = slack
        self.tempo = tempo
        self.folder = folder
        self.needs = needs
        self.say = say
        self.nodes: dict[str, Node] = {}
        self.relays: dict[str, Node] = {}
        self._master = master
        self._exit = ExitStack()
        self.stack = Stack(
            folder / "servers",
            mariadb={"mariadb": 2, "mixed": 1}.get(sites, 0),
            mysql={"mysql": 2, "mixed": 1}.get(sites, 0),
            zookeeper=_QUORUM if needs.quorum else 1,
            elasticsearch=needs.search,
            kafka=needs.kafka,
            mariadb_options=MARIADB_OPTIONS if needs.replica else (),
        )
        servers = [*self.stack.mysql, *self.stack.mariadb]
        self.sites: dict[str, DatabaseServer] = dict(zip("ab", servers, strict=True))
        self.replica = replica_of(self.sites["a"], folder / "servers") if needs.replica else None
        self._kafka = self.stack.kafka
        self.arbiter = ZooKeeperArbiter(self.stack.zookeeper_hosts, session_timeout=30.0)

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            self.say(f"starting ZooKeeper, {self._products}{self._others()}")
            starting.enter_context(self.stack)
            self._links = starting.enter_context(Links())
            if self.replica is not None:
                starting.enter_context(self.replica)
                follow(self.replica, self.sites["a"])
            for site in self.sites.values():
                _install(site)
            starting.callback(self.arbiter.close)
            self.arbiter.start()
            secrets = {f"DRILL_{n.upper()}_PASSWORD": s.password for n, s in self.sites.items()}
            # Commands have links of their own, which no drill cuts.
            self._site_links = {
                name: self._links.add(f"commands-{name}", site.host, site.port)
                for name, site in self.sites.items()
            }
            ports = {f"DRILL_{n.upper()}_PORT": str(x.port) for n, x in self._site_links.items()}
            self.cluster = Cluster(
                self.folder,
                self.stack.zookeeper_hosts,
                {**secrets, **ports},
                session_timeout=self.session_timeout,
            )
            starting.callback(self._stop_nodes)
            nodes = [f"n{number}" for number in range(1, self._count + 1)]
            relays = [f"r{number}" for number in range(1, _RELAYS + 1) if self.needs.relays]
            self.say(f"starting nodes {', '.join([*nodes, *relays])}")
            self.nodes = {nid: self._node(nid, secrets, self._master) for nid in nodes}
            self.relays = {nid: self._node(nid, secrets, None) for nid in relays}
            self.repair(all_warm=True)
            self._exit = starting.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.__exit__(None, None, None)

    @property
    def processes(self) -> dict[str, Node]:
        """Nodes and relays, by id."""
        return {**self.nodes, **self.relays}

    def heal(self) -> None:
        """Undo all that drills do to links and processes, and start dead nodes again."""
        self.resume_zookeeper()
        if self._kafka is not None and not self._kafka.running:
            self._kafka.start()
        for link in self._site_links.values():
            link.heal()
        for node in self.processes.values():
            node.heal()
            node.thaw()
            node.disarm()
        self.restart_dead()

    def repair(self, *, all_warm: bool) -> None:
        """Make everything whole again, and wait until there is a leader and a standby to be.

        Args:
            all_warm: wait until all nodes are warm, so that no start of one takes time from the
                others while something is measured; else until two are. Relays are quick, and
                waited for in any case.

        Raises:
            DidNotHappenError: the nodes do not get warm.
        """
        self.heal()
        wanted = len(self.nodes) if all_warm else min(2, len(self.nodes))
        for nodes, least in ((self.nodes, wanted), (self.relays, len(self.relays))):
            wait_for(
                f"{least} of {', '.join(nodes)} to be warm",
                lambda nodes=nodes, least=least: _warm(nodes.values()) >= least,
                _WARM_LIMIT,
                interval=0.2,  # all are asked each time, those that serve included
            )

    def restart_dead(self) -> None:
        """Start dead nodes again, without waiting for them to be warm."""
        for node in self.processes.values():
            if not node.running:
                node.start()

    def replace_site_a(self) -> None:
        """Stop site A, and let its replica take its place at the same address for all nodes.

        Nobody may write to site A meanwhile. The server that was replaced follows the new one,
        ready to take its place in turn.

        Raises:
            RuntimeError: there is no replica.
        """
        former, follower = self.sites["a"], self.replica
        if follower is None:
            raise RuntimeError("this world was described without a replica")
        wait_caught_up(follower, former)
        former.stop()
        promote(follower)
        self.sites["a"], self.replica = follower, former
        of_nodes = [link for node in self.processes.values() for link in node.links["a"]]
        for link in (self._site_links["a"], *of_nodes):
            link.lead_to(follower.host, follower.port)
            link.reset()

    @property
    def kafka(self) -> Kafka:
        """The Kafka broker.

        Raises:
            RuntimeError: this world was described without one.
        """
        if self._kafka is None:
            raise RuntimeError("this world was described without Kafka")
        return self._kafka

    def replace_kafka(self, fill: Callable[[str], None]) -> None:
        """Stop Kafka, and let another cluster take over its address.

        Args:
            fill: writes into the other cluster, at the address given, before anybody else finds it.
        """
        former = self.kafka
        other = Kafka(former.folder.with_name(f"kafka-{time.monotonic_ns()}"))
        self._exit.callback(other.stop)
        other.start()
        fill(other.brokers)
        other.stop()
        former.stop()
        other.port = former.port
        self._kafka = other.start()

    def cut_commands(self, site: str) -> None:
        """Cut the link that commands have to a site; nodes keep theirs."""
        self._site_links[site].cut()

    def restore_replica(self) -> None:
        """Start the server that was replaced again, as a replica of the one that replaced it."""
        if self.replica is not None and not self.replica.running:
            self.replica.start()
            follow(self.replica, self.sites["a"])

    def others(self, node: Node) -> list[Node]:
        """Those who could lead in place of a node, or of a relay."""
        alike = self.relays if node.nid in self.relays else self.nodes
        return [other for other in alike.values() if other is not node]

    def remove_channel(self, name: str) -> None:
        """Stop a channel and take it out of the cluster.

        Its nodes end their pipeline controllers.
        """
        channel = self.arbiter.channels.one(name)
        while True:
            try:
                self.arbiter.channels.set_state(channel, ChannelState.STOP)
                break
            except Conflict:
                channel = self.arbiter.channels.one(name)
        pipelines = [PipelineId(name, p["name"]) for p in channel.definition["pipelines"]]
        wait_for(
            f"channel {name} to stop",
            lambda: not any(self.arbiter.leader_locks.one(p) for p in pipelines),
            _STOP_LIMIT,
        )
        # At once: a node may still note in the history until when it applied changes.
        self.arbiter.channels.remove(self.arbiter.channels.one(name))

    def zookeeper_members(self) -> list[ZooKeeper]:
        """The ZooKeeper servers, one or three."""
        zookeeper = self.stack.zookeeper
        if isinstance(zookeeper, ZooKeeperEnsemble):
            return zookeeper.servers
        return [zookeeper] if zookeeper is not None else []

    def resume_zookeeper(self) -> None:
        """Let all ZooKeeper servers go on, and wait until they serve."""
        for member in self.zookeeper_members():
            member.resume()
        wait_for("ZooKeeper to serve", lambda: all(m.mode for m in self.zookeeper_members()), 60)

    def _node(self, nid: str, secrets: dict[str, str], master: str | None) -> Node:
        links = {
            ZOOKEEPER: [
                self._links.add(f"{nid}-{m.name}", m.host, m.port) for m in self.zookeeper_members()
            ],
            **{
                name: [self._links.add(f"{nid}-{name}", site.host, site.port)]
                for name, site in self.sites.items()
            },
        }
        search = self.stack.elasticsearch
        if search is not None:
            links["s"] = [self._links.add(f"{nid}-s", search.host, search.port)]
        return Node(nid, self.cluster, links, secrets, master)

    def _stop_nodes(self) -> None:
        for node in self.processes.values():
            node.thaw()
            node.heal()
        self.cluster.stop()
        remove_left_folders()  # of nodes that were killed, after which no other one starts

    def _others(self) -> str:
        others = [
            n
            for n, wanted in (("Elasticsearch", self.needs.search), ("Kafka", self.needs.kafka))
            if wanted
        ]
        return "".join(f", {name}" for name in others)


def _warm(nodes: Collection[Node]) -> int:
    for node in nodes:
        if not node.running:
            raise node.failure("ended although nobody killed it")
    return sum(node.warm() for node in nodes)


def _install(site: DatabaseServer) -> None:
    with site.connect() as connection, connection.cursor() as cursor:
        for statement in system_table_statements():
            cursor.execute(statement)
