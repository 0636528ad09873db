"""Watches the nodes while the job runs: who leads, how far each pipeline is, how far behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from setl.model.position import KafkaPosition
from setl_drills import watching
from setl_drills.demo.shop import RELAY, SCHEMA
from setl_drills.nodes import Cluster
from setl_embedded import DatabaseServer, NoAnswerError, ask_json

PIPELINES = ("sites/a-to-b", "sites/b-to-a", "search/a-to-search")
RELAYS = (f"{RELAY}/a", f"{RELAY}/b")
_FIGURES = ("rows_applied", "rows_loopback", "rows_redelivered", "upserts", "deletes", "retries")


@dataclass
class PipelineView:
    """One pipeline over all leaderships."""

    leader: str = "-"
    state: str = "-"
    error: str = ""
    lag: float | None = None
    lag_p50: float | None = None
    lag_p99: float | None = None
    epochs: dict[int, dict[str, Any]] = field(default_factory=dict)

    def total(self, figure: str) -> int:
        """A counter summed over all leaderships."""
        return sum(int(figures[figure]) for figures in self.epochs.values())


class Watch(watching.Watch):
    """Polls every node, a few times a second, until stopped."""

    def __init__(self, cluster: Cluster, pipelines: Sequence[str]) -> None:
        super().__init__("nodes")
        self.pipelines = {name: PipelineView() for name in pipelines}
        self._cluster = cluster

    def watch(self) -> None:
        """See `watching.Watch`."""
        while not self._stopping.wait(0.2):
            self.look()

    def look(self) -> None:
        """Ask every node once."""
        for nid in list(self._cluster.nodes):
            status = self._cluster.status(nid)
            for line in status["pipelines"] if status else ():
                name = f"{line['channel']}/{line['pipeline']}"
                if line["mine"] and name in self.pipelines:
                    self._see(self.pipelines[name], nid, line)

    @staticmethod
    def _see(view: PipelineView, nid: str, line: dict[str, Any]) -> None:
        figures = line["figures"]
        view.leader, view.state = nid, figures["state"]
        view.error, view.lag = figures["error"], figures["lag"]
        view.lag_p50, view.lag_p99 = figures["lag_p50"], figures["lag_p99"]
        view.epochs[line["epoch"]] = {
            **{name: figures[name] for name in _FIGURES},
            "first_applied_at": figures["first_applied_at"],
            "nid": nid,
        }


def topic_end(brokers: str, topic: str) -> KafkaPosition:
    """Where a topic's only partition ends."""
    consumer = KafkaConsumer(bootstrap_servers=brokers)
    try:
        position = TopicPartition(topic, 0)
        return KafkaPosition(topic, 0, consumer.end_offsets([position])[position])
    finally:
        consumer.close(autocommit=False)


def site_lags(receiver: DatabaseServer, site: str) -> list[float]:
    """Seconds from commit at `site` to visible at the receiver, of every probe; sorted."""
    with receiver.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT TIMESTAMPDIFF(MICROSECOND, written, arrived) / 1e6"
            f" FROM {SCHEMA}.probe_{site} ORDER BY 1"
        )
        return [float(row[0]) for row in cursor.fetchall()]


class SearchProbe(watching.Watch):
    """Watches probes appear in the search index; good to about its interval."""

    INTERVAL = 0.05

    def __init__(self, url: str, writer: DatabaseServer) -> None:
        super().__init__("the search index")
        self._url = url
        self._writer = writer
        self._seen: dict[int, float] = {}

    def watch(self) -> None:
        """See `watching.Watch`."""
        following = 1
        while not self._stopping.wait(self.INTERVAL):
            wanted = [str(i) for i in range(following, following + 200)]
            found = self._found(wanted)
            now = time.time()
            for ident in found:
                self._seen.setdefault(ident, now)
            while following in self._seen:
                following += 1

    def _found(self, idents: list[str]) -> list[int]:
        wanted = {"ids": idents, "_source": False}
        try:
            documents = ask_json(f"{self._url}/probe_a/_mget", wanted, timeout=5)["docs"]
        except (NoAnswerError, KeyError):
            return []
        return [int(d["_id"]) for d in documents if d.get("found")]

    def lags(self) -> list[float]:
        """Seconds from commit to found, of every probe seen; sorted."""
        self.check()
        with self._writer.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT id, UNIX_TIMESTAMP(written) FROM {SCHEMA}.probe_a")
            written = {int(i): float(at) for i, at in cursor.fetchall()}
        return sorted(max(0.0, seen - written[i]) for i, seen in self._seen.items() if i in written)
