"""One setl process: joins the cluster, keeps Spark warm, and sits in every pipeline's election."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from arbiter.campaign import Campaign
from arbiter.port import ArbiterError, Conflict, Contact, Unreachable
from arbiter.snapshot import Snapshot, look
from arbiter.turns import Preference, queues
from arbiter.values import Channel, ChannelState, Facts, NodeInfo, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl import __version__, failpoints
from setl.clock import SystemClock
from setl.config.reading import resolve_and_parse
from setl.errors import FatalError
from setl.log import fields
from setl.node.http.server import Inside, NodeHttp
from setl.node.metrics import NodeCollector
from setl.node.seat import Seat
from setl.node.settings import NodeSettings
from setl.node.stall_watch import StallWatch
from setl.node.status import NodeStatus
from setl.node.stored import pipelines_of, preference_of
from setl.node.watchdog import Watchdog
from setl.pipeline.assembly import build_run
from setl.pipeline.progress import Progress
from setl.pipeline.run import PipelineRun
from setl.pipeline.spark_session import JvmWatch, SparkGone, start_session
from setl.pipeline.warming import warm

_log = logging.getLogger(__name__)

_DRAIN_SECONDS = 30.0
_DRAIN_WITHOUT_SPARK = 2.0  # nothing can be loaded any more, so there is little to wait for


@dataclass(slots=True)
class _Taken:
    """A seat, and what it was taken for.

    Attributes:
        seat: the seat.
        definition: the channel's, as it was then.
        preference: which nodes the pipeline prefers.
        complaint: what the arbiter refused last, "" for nothing.
    """

    seat: Seat
    definition: object
    preference: Preference
    complaint: str = ""


class NodeProcess:
    """A node from start to stop. `run` blocks; `stop` may be called from a signal handler."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._warm = False
        self._started = self._clock.now()
        self._arbiter = ZooKeeperArbiter(
            settings.zookeeper,
            root=settings.root,
            session_timeout=settings.session_timeout,
            access=settings.access,
        )
        self._taken: dict[PipelineId, _Taken] = {}
        self._snapshot: Snapshot | None = None
        self._announced: NodeInfo | None = None
        self._last_cycle: float | None = None  # none begun yet, or none any more
        self._spark: SparkSession | None = None
        registry = CollectorRegistry()
        registry.register(NodeCollector(self.status, self._silent_seconds))
        self._http = NodeHttp(
            settings.http_host,
            settings.http_port,
            Inside(
                status=self.status,
                snapshot=lambda: self._snapshot,
                last_cycle=lambda: self._last_cycle,
                arbiter=self._arbiter,
                clock=self._clock,
                registry=registry,
            ),
            nid=settings.nid,
            token=settings.http_token,
        )
        self._watchdog = Watchdog(self._arbiter, self._current_seats, self._clock)
        self._stall_watch = StallWatch(self._clock)
        self._jvm_watch = JvmWatch(self._lose_spark)
        self._spark_gone: SparkGone | None = None

    def stop(self) -> None:
        """Drain every pipeline, hand leaderships over, and end."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Join, warm up, then take part until `stop`.

        Raises:
            Unreachable: ZooKeeper cannot be reached at the start.
            SparkGone: the JVM has ended; all leaderships are given up.
        """
        place = fields(nid=self._settings.nid)
        failpoints.declare_node()
        self._http.start()
        self._arbiter.start()
        self._arbiter.watch(self._wake.set)
        self._announce()
        _log.info("node joins", extra=fields(nid=self._settings.nid, http=self._http.address))
        self._spark = start_session(self._settings.spark)
        self._jvm_watch.start()
        warm(self._spark)
        self._warm = True  # the next cycle tells the others
        _log.info("node is warm", extra=place)
        self._watchdog.start()
        self._stall_watch.start()
        try:
            while not self._stopping.is_set():
                self._last_cycle = self._clock.monotonic()
                self._tick()
                self._last_cycle = self._clock.monotonic()
                self._wake.wait(self._settings.cycle)
                self._wake.clear()
        finally:
            self._leave()
            _log.info("node left", extra=place)
        if self._spark_gone is not None:
            raise self._spark_gone

    def status(self) -> NodeStatus:
        """What this node knows and does."""
        return NodeStatus(
            nid=self._settings.nid,
            version=__version__,
            contact=self._arbiter.contact().value,
            warm=self._warm,
            started=self._started,
            pipelines=tuple(seat.status() for seat in self._current_seats()),
        )

    def _silent_seconds(self) -> float:
        return max(0.0, self._clock.monotonic() - self._arbiter.last_contact())

    def _lose_spark(self, error: SparkGone) -> None:
        """A node that cannot load must not lead: leave, and let the supervisor start another."""
        _log.error(
            "node ends without Spark", extra=fields(nid=self._settings.nid, error=str(error))
        )
        self._spark_gone = error
        self._warm = False
        self.stop()

    def _current_seats(self) -> list[Seat]:
        return [taken.seat for taken in list(self._taken.values())]

    def _info(self) -> NodeInfo:
        return NodeInfo(
            nid=self._settings.nid,
            host=socket.gethostname(),
            pid=os.getpid(),
            http=self._http.address,
            started=self._started,
            ready=self._warm,
        )

    def _announce(self) -> None:
        """Make the node known; waits out the session of a process that had the same id."""
        info = self._info()
        deadline = time.monotonic() + 2 * self._settings.session_timeout
        while True:
            try:
                self._arbiter.announce(info)
            except Conflict:
                if time.monotonic() > deadline or self._stopping.is_set():
                    raise
                self._stopping.wait(0.2)
            else:
                self._announced = info
                return

    def _tick(self) -> None:
        try:
            self._make_known()
        except (Unreachable, Conflict) as error:
            _log.debug("arbiter does not answer", extra=fields(error=str(error)))
            return  # the watchdog suspends and aborts without any answer
        snapshot = self._snapshot = look(self._arbiter, self._clock, self._snapshot)
        if snapshot.contact is Contact.CONNECTED:
            self._seat_pipelines(snapshot.facts.channels.values())
        turns = self._turns(snapshot.facts)
        for ident, taken in self._taken.items():
            try:
                taken.seat.tick(snapshot, warm=self._warm, turn=turns.get(ident, 0))
            except ArbiterError as error:
                self._complain(ident, taken, error)

    def _complain(self, pipeline: PipelineId, taken: _Taken, error: ArbiterError) -> None:
        """Say once what the arbiter refuses; a cycle later it is the same."""
        level = logging.DEBUG if taken.complaint == str(error) else logging.WARNING
        taken.complaint = str(error)
        place = fields(
            channel=pipeline.channel,
            pipeline=pipeline.pipeline,
            nid=self._settings.nid,
            error=str(error),
        )
        _log.log(level, "arbiter refuses", extra=place)

    def _make_known(self) -> None:
        """Announce this node in a new session, and when it has become warm."""
        contact = self._arbiter.contact()
        if contact is Contact.LOST and not any(seat.busy for seat in self._current_seats()):
            self._announce()
            _log.info("node rejoins", extra=fields(nid=self._settings.nid))
        elif contact is Contact.CONNECTED and self._announced != self._info():
            self._announce()

    def _turns(self, facts: Facts) -> dict[PipelineId, int]:
        """This node's place in the queue for every pipeline that nobody leads.

        While the others have not heard yet that this node is warm, it is in no queue; it then
        comes last, which costs the delay of a turn.
        """
        vacant = [
            ident
            for ident in self._taken
            if ident not in facts.mainstems
            and ident.channel in facts.channels
            and facts.channels[ident.channel].state is not ChannelState.STOP
        ]
        turns: dict[PipelineId, int] = {}
        preferences = {ident: self._taken[ident].preference for ident in vacant}
        nid = self._settings.nid
        for ident, queue in queues(vacant, facts, preferences).items():
            turns[ident] = queue.index(nid) if nid in queue else len(queue)
        return turns

    def _seat_pipelines(self, channels: Iterable[Channel]) -> None:
        """Take a seat for each pipeline; leave those whose channel changed or went away."""
        wanted = {ident: channel for channel in channels for ident in pipelines_of(channel)}
        for ident, taken in list(self._taken.items()):
            changed = ident not in wanted or taken.definition != wanted[ident].definition
            if changed and self._leave_seat(taken.seat):
                del self._taken[ident]
        for ident, channel in wanted.items():
            if ident not in self._taken:
                preference = preference_of(channel, ident.pipeline)
                seat = self._take_seat(ident, channel, preference)
                self._taken[ident] = _Taken(seat, channel.definition, preference)

    def _take_seat(self, ident: PipelineId, channel: Channel, preference: Preference) -> Seat:
        campaign = Campaign(
            self._arbiter,
            ident,
            self._settings.nid,
            self._settings.election,
            self._clock,
            preference=preference,
        )

        def build(epoch: int, progress: Progress) -> PipelineRun:
            if self._spark is None:
                raise FatalError("the Spark session is not started", hint="This is a defect")
            file = resolve_and_parse(channel.definition, self._settings.environment)
            run = build_run(
                file,
                ident.pipeline,
                nid=self._settings.nid,
                epoch=epoch,
                arbiter=self._arbiter,
                spark=self._spark,
                progress=progress,
                clock=self._clock,
            )
            self._stall_watch.follow(run.observed)
            return run

        return Seat(
            ident,
            nid=self._settings.nid,
            arbiter=self._arbiter,
            campaign=campaign,
            build=build,
            clock=self._clock,
            wake=self._wake.set,
        )

    def _leave_seat(self, seat: Seat) -> bool:
        """Drain a seat without waiting; True once it is empty and its leadership given up."""
        if seat.busy:
            seat.drain()
            return False
        seat.close(0)
        return True

    def _leave(self) -> None:
        """Drain all seats, give the leaderships up, end the session, then Spark."""
        self._last_cycle = None  # draining may take longer than a cycle, and is no hanging
        self._watchdog.stop()
        self._stall_watch.stop()
        self._jvm_watch.stop()
        patience = _DRAIN_SECONDS if self._spark_gone is None else _DRAIN_WITHOUT_SPARK
        seats = self._current_seats()
        for seat in seats:
            seat.drain()
        for seat in seats:
            try:
                seat.close(patience)
            except ArbiterError as error:
                # The session ends below, and every leadership with it.
                _log.warning("leadership not given up", extra=fields(error=str(error)))
        self._arbiter.close()
        self._http.stop()
        if self._spark is not None:
            # A signal to the whole process group has ended the JVM already.
            with suppress(Py4JError, OSError):
                self._spark.stop()
