"""The stage of a run: channels of its own, users on both sites, and watchers."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, Self

from arbiter.values import ChannelState, PipelineId
from setl.channel.reading import resolve_and_parse
from setl.model.position import BinlogPosition
from setl_drills.binlog import Transaction, binlog_end
from setl_drills.checkers import Advance
from setl_drills.node import Node
from setl_drills.observing import MarkWatch, StatusWatch
from setl_drills.tables import binlog_of, create_tables, drop_tables, to_search, two_way
from setl_drills.waiting import wait_for
from setl_drills.workload import PACE, SiteWriter
from setl_drills.world import World
from setl_embedded import DatabaseServer

FENCE_TIMEOUT = 2.0
"""Of the drills' channels: how long a frozen transaction may hold a take-over up, in seconds."""
_START_LIMIT = 120.0
_numbers = count(1)


class Setting:
    """A context manager: on entry changes flow both ways, on exit the channels are gone.

    Attributes:
        world: where it takes place.
        channel: the two-way channel, with pipelines ``ab`` and ``ba``.
        schema: of the tables, on both sites.
        random: decides whatever the seed decides.
        search_key: the pipeline to the search index, "" without one.
        writers: the users of each site.
        marks: sees loads arrive.
        statuses: knows what nodes say.
        begins: where each site's binlog is looked at from.
        stored: transactions of a site that were looked at already.
    """

    def __init__(
        self,
        world: World,
        drill: str,
        seed: int,
        *,
        search: bool = False,
        pace: float = PACE,
        calm: bool = False,
        prefer: Sequence[str] = (),
        name: str = "",
    ) -> None:
        """Describe it.

        Args:
            world: where.
            drill: the drill's name.
            seed: its seed.
            search: whether a search index follows site A as well.
            pace: small transactions a second and site, at the world's full tempo.
            calm: wait until all nodes are warm, since outages will be judged.
            prefer: nodes and relays that lead everything as long as they can.
            name: of the channel and the schema; "" for one that no other setting has.
        """
        self.world = world
        self.random = random.Random(f"{drill}/{seed}")
        self.channel = name or f"{drill}-{seed}-{next(_numbers)}"
        self.schema = re.sub(r"\W", "_", self.channel)
        self.search_key = f"{self.channel}-search/as" if search else ""
        self.begins: dict[str, BinlogPosition] = {}
        self.stored: dict[str, list[Transaction]] = {}
        self.begun = 0.0
        self._calm = calm
        self._prefer = list(prefer)
        self._exit = ExitStack()
        self._offsets: dict[str, int] = {}
        sites = world.sites
        self.writers = {
            name: SiteWriter(
                site, self.schema, name, seed=f"{drill}/{seed}", pace=pace * world.tempo
            )
            for name, site in sites.items()
        }
        self.marks = MarkWatch({self.key("ab"): sites["b"], self.key("ba"): sites["a"]})
        self.statuses = StatusWatch({n.nid: n.status for n in world.processes.values()})

    def __enter__(self) -> Self:
        self.world.repair(all_warm=self._calm)
        self.begun = time.monotonic()
        sites = self.world.sites
        with ExitStack() as begun:
            begun.callback(self._drop_tables)
            for site in sites.values():
                create_tables(site, self.schema)
            self.begins = {name: binlog_end(site) for name, site in sites.items()}
            processes = self.world.processes.values()
            self._offsets = {n.nid: n.log.stat().st_size for n in processes}
            for watch in (self.marks, self.statuses):
                watch.start()
                begun.callback(watch.stop)
            self._start_channels(begun)
            begun.callback(self.world.heal)
            for writer in self.writers.values():
                writer.open_accounts()
                writer.start()
                begun.callback(writer.stop)
            wait_for("changes to flow both ways", self._flowing, _START_LIMIT)
            self._exit = begun.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _start_channels(self, begun: ExitStack) -> None:
        """Start all channels; `begun` will remove them."""
        sources = {name: binlog_of(name, begin) for name, begin in self.begins.items()}
        self._start_readers(sources, begun)

    def _start_readers(self, sources: Mapping[str, Any], begun: ExitStack) -> None:
        """Start what keeps sites and index in step, given where it reads each site's changes."""
        self._start_channel(two_way(self.channel, self.schema, sources, FENCE_TIMEOUT), begun)
        if self.search_key:
            name = self.search_key.partition("/")[0]
            self._start_channel(to_search(name, self.schema, sources["a"]), begun)

    def _start_channel(self, definition: dict[str, Any], begun: ExitStack) -> None:
        if self._prefer:
            for pipeline in definition["pipelines"]:
                pipeline["nodes"] = {"prefer": self._prefer}
        # A mistake in it is said here, and not in the log of a node.
        resolve_and_parse(definition, next(iter(self.world.nodes.values())).environment)
        channel = self.world.arbiter.channels.put(definition["channel"], definition)
        self.world.arbiter.channels.set_state(channel, ChannelState.START)
        begun.callback(self.world.remove_channel, definition["channel"])

    def _flowing(self) -> bool:
        flowing = all(len(self.marks.since(self.key(p), 0)) > 1 for p in ("ab", "ba"))
        if flowing and self.search_key:
            figures = self.statuses.latest(self.search_key).figures
            return bool(figures.get("first_applied_at"))
        return flowing

    def _drop_tables(self) -> None:
        for site in self.world.sites.values():
            drop_tables(site, self.schema)

    def key(self, pipeline: str) -> str:
        """The full name of a pipeline of the two-way channel."""
        return f"{self.channel}/{pipeline}"

    @property
    def keys(self) -> list[str]:
        """The full names of all pipelines."""
        return [self.key("ab"), self.key("ba"), *([self.search_key] if self.search_key else [])]

    def leader(self, pipeline: str = "ab") -> Node:
        """The node that leads a pipeline now.

        Raises:
            DidNotHappenError: nobody does.
        """
        key = self.key(pipeline) if "/" not in pipeline else pipeline
        return wait_for(f"a leader of {key}", lambda: self._leader(key), 30)

    def _leader(self, key: str) -> Node | None:
        leader_lock = self.world.arbiter.leader_locks.one(PipelineId(*key.split("/")))
        return self.world.processes.get(leader_lock.nid) if leader_lock else None

    def led_by(self, node: Node) -> list[str]:
        """The pipelines that a node leads now."""
        return [key for key in self.keys if self._leader(key) is node]

    def seen(self, key: str, moment: float) -> list[Advance] | None:
        """What was seen to arrive in a pipeline's target from a moment on; None if nobody looks."""
        return self.marks.since(key, moment) if key in self.marks.advances else None

    def replaced_site(self, site: str, former: DatabaseServer) -> None:
        """Look at the server that took a site's place from now on."""
        follower = self.world.sites[site]
        self.marks.follow_site(former, follower)
        self.begins[site] = binlog_end(follower)

    def log_of(self, node: Node) -> str:
        """What a node logged since this run began."""
        with node.log.open("rb") as file:
            file.seek(self._offsets.get(node.nid, 0))
            return file.read().decode(errors="replace")
