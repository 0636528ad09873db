"""One setl process: joins the cluster, keeps Spark warm, and sits in every pipeline's election."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from arbiter.campaign import Campaign
from arbiter.port import ArbiterError, Conflict, Contact, Unreachable
from arbiter.values import Channel, NodeInfo, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl import __version__, failpoints
from setl.clock import SystemClock
from setl.config.reading import resolve_and_parse
from setl.errors import FatalError
from setl.log import fields
from setl.node.http import NodeHttp, NodeStatus
from setl.node.metrics import NodeCollector
from setl.node.seat import Seat
from setl.node.settings import NodeSettings
from setl.node.watchdog import Watchdog
from setl.pipeline.assembly import build_run
from setl.pipeline.progress import Progress
from setl.pipeline.run import PipelineRun
from setl.pipeline.spark_session import start_session
from setl.pipeline.warming import warm

_log = logging.getLogger(__name__)

_DRAIN_SECONDS = 30.0


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
            settings.zookeeper, root=settings.root, session_timeout=settings.session_timeout
        )
        self._seats: dict[PipelineId, Seat] = {}
        self._definitions: dict[PipelineId, object] = {}
        self._spark: SparkSession | None = None
        registry = CollectorRegistry()
        registry.register(NodeCollector(self.status))
        self._http = NodeHttp(settings.http_host, settings.http_port, self.status, registry)
        self._watchdog = Watchdog(self._arbiter, self._current_seats, self._clock)

    def stop(self) -> None:
        """Drain every pipeline, hand leaderships over, and end."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Join, warm up, then take part until `stop`.

        Raises:
            Unreachable: ZooKeeper cannot be reached at the start.
        """
        place = fields(nid=self._settings.nid)
        failpoints.declare_node()
        self._http.start()
        self._arbiter.start()
        self._arbiter.watch(self._wake.set)
        self._announce()
        _log.info("node joins", extra=fields(nid=self._settings.nid, http=self._http.address))
        self._spark = start_session(self._settings.spark)
        warm(self._spark)
        self._warm = True
        _log.info("node is warm", extra=place)
        self._watchdog.start()
        try:
            while not self._stopping.is_set():
                self._tick()
                self._wake.wait(self._settings.cycle)
                self._wake.clear()
        finally:
            self._leave()
            _log.info("node left", extra=place)

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

    def _current_seats(self) -> list[Seat]:
        return list(self._seats.values())

    def _announce(self) -> None:
        """Make the node known; waits out the session of a process that had the same id."""
        info = NodeInfo(
            nid=self._settings.nid,
            host=socket.gethostname(),
            pid=os.getpid(),
            http=self._http.address,
            started=self._started,
        )
        deadline = time.monotonic() + 2 * self._settings.session_timeout
        while True:
            try:
                self._arbiter.announce(info)
            except Conflict:
                if time.monotonic() > deadline or self._stopping.is_set():
                    raise
                self._stopping.wait(0.2)
            else:
                return

    def _tick(self) -> None:
        try:
            if self._arbiter.contact() is Contact.LOST and not any(
                seat.busy for seat in self._current_seats()
            ):
                self._announce()
                _log.info("node rejoins", extra=fields(nid=self._settings.nid))
            channels = self._arbiter.channels()
        except (Unreachable, Conflict) as error:
            _log.debug("arbiter does not answer", extra=fields(error=str(error)))
            return  # the watchdog suspends and aborts without any answer
        self._seat_pipelines(channels)
        revisions = {channel.name: channel.revision for channel in channels}
        for seat in self._current_seats():
            try:
                seat.tick(revision=revisions.get(seat.pipeline.channel, -1), warm=self._warm)
            except ArbiterError as error:
                _log.debug("arbiter does not answer", extra=fields(error=str(error)))

    def _seat_pipelines(self, channels: Sequence[Channel]) -> None:
        """Take a seat for each pipeline; leave those whose channel changed or went away."""
        wanted: dict[PipelineId, Channel] = {}
        for channel in channels:
            for pipeline in channel.definition.get("pipelines", []):
                wanted[PipelineId(channel.name, str(pipeline.get("name", "")))] = channel
        for ident, seat in list(self._seats.items()):
            changed = ident not in wanted or self._definitions[ident] != wanted[ident].definition
            if changed and self._leave_seat(seat):
                del self._seats[ident]
        for ident, channel in wanted.items():
            if ident not in self._seats:
                self._seats[ident] = self._take_seat(ident, channel)
                self._definitions[ident] = channel.definition

    def _take_seat(self, ident: PipelineId, channel: Channel) -> Seat:
        campaign = Campaign(
            self._arbiter,
            ident,
            self._settings.nid,
            self._settings.election,
            self._clock,
        )

        def build(epoch: int, progress: Progress) -> PipelineRun:
            if self._spark is None:
                raise FatalError("the Spark session is not started", hint="This is a defect")
            file = resolve_and_parse(channel.definition, self._settings.environment)
            return build_run(
                file,
                ident.pipeline,
                nid=self._settings.nid,
                epoch=epoch,
                arbiter=self._arbiter,
                spark=self._spark,
                progress=progress,
                clock=self._clock,
            )

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
        self._watchdog.stop()
        seats = self._current_seats()
        for seat in seats:
            seat.drain()
        for seat in seats:
            try:
                seat.close(_DRAIN_SECONDS)
            except ArbiterError as error:
                # The session ends below, and every leadership with it.
                _log.warning("leadership not given up", extra=fields(error=str(error)))
        self._arbiter.close()
        self._http.stop()
        if self._spark is not None:
            # A signal to the whole process group has ended the JVM already.
            with suppress(Py4JError, OSError):
                self._spark.stop()
