"""A run in which changes go by Kafka: relays fill a topic for each site, nodes read them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from setl_drills.binlog import binlog_end, read_changes
from setl_drills.checkers import Advance, check_relay_positions, check_stream, longest_silence
from setl_drills.drill import DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.tables import RELAY, binlog_of, relay, topic_of, whole_topic
from setl_drills.topic import TopicWatch, changes_in, read_committed
from setl_drills.waiting import DidNotHappenError, wait_for
from setl_drills.world import Needs, World

NEEDS = Needs(kafka=True, relays=True)
_START_LIMIT = 60.0
_ARRIVE_LIMIT = 60.0
_SHOWN = 3


class RelayDrillRun(DrillRun):
    """Between the sites are two relays, each of a channel of its own, and two topics.

    The outage of a relay is what readers of committed records see of it: from the fault to the
    end of the longest time in which no row came, once the new leader says that it has applied
    something. Neither the times in records do (they are those of the source) nor marks in the
    target (the reader's own pace would be in them).

    Attributes:
        topics: by pipeline key of the relay, the topic that it writes.
        redundant: by pipeline key, rows in its topic that readers of committed records do not
            see; known from `finish` on.
    """

    def __init__(
        self,
        world: World,
        drill: str,
        seed: int,
        *,
        target: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Describe it.

        Args:
            world: where.
            drill: the drill's name.
            seed: its seed.
            target: of the relays, beside the topic.
            **options: those of `Setting`.
        """
        super().__init__(world, drill, seed, **{"calm": True, **options})
        self.topics = {self.relay(site): f"{self.channel}-{site}" for site in world.sites}
        self.redundant: dict[str, int] = {}
        self._target = target or {}
        self._watch = TopicWatch(world.kafka.brokers, self.topics)

    def relay(self, site: str) -> str:
        """The full name of the relay of a site."""
        return f"{self.channel}-{site}/{RELAY}"

    @property
    def keys(self) -> list[str]:
        """See `Setting.keys`."""
        return [*super().keys, *self.topics]

    def _start_channels(self, begun: ExitStack) -> None:
        brokers, sources = self.world.kafka.brokers, dict[str, Any]()
        for site, begin in self.begins.items():
            key = self.relay(site)
            target = {**topic_of(brokers, self.topics[key]), **self._target}
            source = binlog_of(site, begin)
            definition = relay(key.partition("/")[0], self.schema, source, target)
            self._start_channel(definition, begun)
            sources[site] = whole_topic(brokers, self.topics[key])
        wait_for("both topics to be there", self._relaying, _START_LIMIT)
        self._watch.start()
        begun.callback(self._watch.stop)
        self._start_readers(sources, begun)

    def _relaying(self) -> bool:
        return all(self.statuses.latest(key).state == "running" for key in self.topics)

    def seen(self, key: str, moment: float) -> list[Advance] | None:
        """See `Setting.seen`; of a relay, what came to its topic."""
        if key in self.topics:
            return self._watch.since(key, moment)
        return super().seen(key, moment)

    def _outage(self, key: str, fault_at: float, former: int) -> tuple[float, int] | None:
        if key not in self.topics:
            return super()._outage(key, fault_at, former)
        applied, seen = self._first_applied(key, former), self._watch.since(key, fault_at)
        if applied is None or not seen or seen[-1].at < applied[0]:
            return None
        return longest_silence(seen, fault_at, seen[-1].at), applied[1]

    # -- the end --------------------------------------------------------------------------

    def finish(self) -> DrillResult:
        """See `DrillRun.finish`; what is in the topics is checked against the binlogs too."""
        result = super().finish()
        for site in self.world.sites:
            self._check_topic(site)
        return result

    def _check_topic(self, site: str) -> None:
        """Every row change of a site is among the committed records of its topic, once, in order.

        What the other site's changes became here is so too: a relay leaves out nothing, and who
        reads it knows what is an echo.
        """
        key, server, brokers = self.relay(site), self.world.sites[site], self.world.kafka.brokers
        end = binlog_end(server)
        try:
            wait_for(f"{key} to come to {end}", lambda: self._watch.holds(key, end), _ARRIVE_LIMIT)
        except DidNotHappenError as error:
            self.problem(str(error))
        wanted = list(read_changes(server, self.schema, self.begins[site], end))
        committed = read_committed(brokers, self.topics[key])
        verdict = check_stream(wanted, list(changes_in(committed, self.schema)))
        # Reading a topic takes longer than writing it did, so the watch has counted all rows.
        self.redundant[key] = self._watch.rows(key) - sum(record.is_row for record in committed)
        self.result.lost += verdict.lost
        for count, what in (
            (verdict.lost, "row changes are not in the topic"),
            (verdict.repeated, "row changes are in the topic again"),
            (verdict.moved, "row changes are in another order in the topic"),
        ):
            self.require(not count, f"site {site}: {count} {what}")
        for problem in check_relay_positions(record.position for record in committed)[:_SHOWN]:
            self.problem(f"topic of site {site}: {problem}")
        self.result.evidence.setdefault("topics", {})[site] = {
            "row changes": len(wanted),
            "repeated": verdict.repeated,
            "records": len(committed),
            "rows of transactions that were not committed": self.redundant[key],
        }
