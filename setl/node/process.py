"""One setl process: joins the cluster, warms up, and takes part in its pipelines' elections."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from prometheus_client import CollectorRegistry

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Contact, Unreachable
from arbiter.servers import ask, servers_of
from arbiter.snapshot import Snapshot, look
from arbiter.values import Channel, Facts, NodeInfo
from arbiter.zookeeper import ZooKeeperArbiter
from setl import __version__, failpoints, garbage_collection
from setl.channel.reading import resolve_and_parse
from setl.clock import SystemClock
from setl.errors import SetlError
from setl.log import fields
from setl.model.leadership import Leadership
from setl.node.alarm_sender import AlarmSender
from setl.node.announcement import Announcement
from setl.node.console.console import ConsoleSettings
from setl.node.engines.engine import Engine
from setl.node.ensemble_watch import EnsembleWatch
from setl.node.host.resources import MemoryLook, NodeSpark, count_threads, look_at_disk
from setl.node.host.service_manager import service_manager
from setl.node.host.tuning import ThreadTurns
from setl.node.http.authentication import new_read_key
from setl.node.http.probes import hangs
from setl.node.http.server import NodeContext, NodeHttp
from setl.node.leading.cycle_problems import CycleProblem, DamagedZnodes, LostChannels
from setl.node.leading.fitness import Fitness
from setl.node.leading.stall_watch import StallWatch
from setl.node.leading.supervisor import Supervisor
from setl.node.leading.watchdog import Watchdog, contact_at
from setl.node.metrics import AlarmCollector, NodeCollector
from setl.node.settings import NodeSettings
from setl.node.status import NodeStatus, sentence
from setl.run.measured.progress import Progress
from setl.run.run import PipelineRun

_log = logging.getLogger(__name__)

_CONNECT_PAUSE = 1.0  # an attempt takes seconds itself
_DRAIN_SECONDS = 30.0
_DRAIN_WITHOUT_ENGINE = 2.0  # nothing can be written any more, so there is little to wait for


class NodeProcess:
    """A node from start to stop. `run` blocks; `stop` may be called from a signal handler."""

    def __init__(
        self,
        settings: NodeSettings,
        engine: Engine,
        arbiter: Arbiter | None = None,
        set_turn: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Bind the HTTP interface's port; nothing is connected yet.

        Args:
            settings: how the node is run.
            engine: what its pipelines run on, which says what kind of pipelines it leads.
            arbiter: its session; None for one with ZooKeeper as the settings say.
            set_turn: sets how long a thread of this process may compute while others want to.

        Raises:
            OSError: the HTTP interface's port is taken.
        """
        self._settings = settings
        self._engine = engine
        self._clock = SystemClock()
        self._service = service_manager(settings.environment, self._clock)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._warm = False
        self._read_key = new_read_key()
        self._started = self._clock.now()
        self._memory = MemoryLook(self._clock)
        self._arbiter: Arbiter = arbiter or ZooKeeperArbiter(
            settings.zookeeper,
            root=settings.root,
            session_timeout=settings.session_timeout,
            access=settings.access,
        )
        self._snapshot: Snapshot | None = None
        self._prepared_for: Facts | None = None
        self._announcement = Announcement(self._arbiter, self._info, self._clock, self._stopping)
        self._answered = False  # whether the last tick had an answer to its look
        self._last_cycle: float | None = None  # none begun yet, or none any more
        self._supervisor = Supervisor(
            settings.nid,
            self._arbiter,
            settings.election,
            self._clock,
            serves=engine.serves,
            build=self._build,
            wake=self._wake.set,
            missing_for=Fitness(settings.environment, self._clock).missing_for,
        )
        registry = CollectorRegistry()
        self._alarms = AlarmSender(
            settings.nid,
            self._arbiter,
            settings.alarms,
            self._clock,
            own=self.status,
            snapshot=lambda: self._snapshot,
            environment=settings.environment,
        )
        registry.register(AlarmCollector(self._alarms.status))
        registry.register(
            NodeCollector(
                self.status,
                self._silent_seconds,
                lambda: {each.pipeline: each.measured() for each in self._supervisor.current()},
                most_tables=settings.metrics_tables,
            )
        )
        self._http = NodeHttp(
            settings.http_host,
            settings.http_port,
            NodeContext(
                status=self.status,
                snapshot=lambda: self._snapshot,
                last_cycle=lambda: self._last_cycle,
                engine_answered=engine.last_answer,
                arbiter=self._arbiter,
                clock=self._clock,
                registry=registry,
            ),
            nid=settings.nid,
            read_key=self._read_key,
            token=settings.http_token,
            console=_console(settings),
            exposure=settings.exposure,
        )
        self._watchdog = Watchdog(self._arbiter.session, self._supervisor.current, self._clock)
        self._stall_watch = StallWatch(self._clock)
        self._ensemble = EnsembleWatch(
            servers_of(settings.zookeeper),
            self._contact,
            partial(ask, tls=settings.access.tls),
            settings.access.tls,
        )
        self._damaged = DamagedZnodes(settings.nid)
        self._lost_channels = LostChannels(settings.nid)
        self._problem = CycleProblem(self._clock, settings.nid)
        self._lost: SetlError | None = None
        self._turns = ThreadTurns(set_turn)
        self._turns.share(0)

    def stop(self) -> None:
        """Drain every pipeline, hand leaderships over, and end."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Join, warm up, then take part until `stop`.

        A ZooKeeper that does not answer is waited for, as long as it takes.

        Raises:
            ArbiterError: ZooKeeper refuses this node, or its id is taken.
            SetlError: what the pipelines run on cannot be started, or has ended, such as Spark's
                JVM; all leaderships are given up.
        """
        log_fields = fields(nid=self._settings.nid)
        failpoints.declare_node()
        self._http.start()
        try:
            if not self._connect():
                return
            self._join()
            while not self._stopping.is_set():
                self._last_cycle = self._clock.monotonic()
                pause = self._tick_safely()
                self._last_cycle = self._clock.monotonic()
                self._notify_service_manager()
                self._wake.wait(pause)
                self._wake.clear()
        finally:
            self._leave()
            _log.info("node left", extra=log_fields)
        if self._lost is not None:
            raise self._lost

    def _connect(self) -> bool:
        """Begin the session; whether that was done before `stop`."""
        log_fields, began, logged = self._settings.nid, self._clock.monotonic(), False
        while not self._stopping.is_set():
            try:
                self._arbiter.start(gives_up=self._stopping.is_set)
            except Unreachable as error:
                if self._stopping.is_set():
                    break
                waited = round(self._clock.monotonic() - began)
                _log.warning(
                    "ZooKeeper does not answer; the node tries again",
                    extra=fields(nid=log_fields, error=str(error), waited=waited),
                )
                logged = True
                self._service.starting(f"waits for ZooKeeper: {error}")
                self._stopping.wait(_CONNECT_PAUSE)
                continue
            if logged:
                _log.info("ZooKeeper answers", extra=fields(nid=log_fields))
            return True
        return False

    def _join(self) -> None:
        log_fields = fields(nid=self._settings.nid)
        self._arbiter.session.watch(self._wake.set)
        self._announcement.make()
        at = {"http": self._http.address, "probes": self._http.probes}
        relay_position_of = {name: address for name, address in at.items() if address}
        _log.info("node joins", extra=fields(nid=self._settings.nid, **relay_position_of))
        with suppress(ArbiterError):  # it is asked again, and what is needed is made ready then
            self._prepare(look(self._arbiter, self._clock, None))
        self._engine.start(self._lose_engine, self._gives_up_waiting)
        garbage_collection.freeze_loaded_objects()
        self._warm = True  # the next cycle tells the others
        _log.info("node is warm", extra=log_fields)
        self._watchdog.start()
        self._stall_watch.start()
        self._ensemble.start()
        self._alarms.start()
        self._service.ready()

    def _gives_up_waiting(self) -> bool:
        """Whether the engine is to wait no longer; asked while it waits for others."""
        self._service.starting("waits for executors of the Spark cluster")
        return self._stopping.is_set()

    def _notify_service_manager(self) -> None:
        """The sign of life comes from the loop itself, so that it ends when the loop hangs."""
        wrong = hangs(self._clock.monotonic(), self._engine.last_answer())
        if wrong:
            self._service.hangs(wrong)
        else:
            self._service.alive(lambda: sentence(self.status()))

    def _prepare(self, snapshot: Snapshot) -> None:
        # With sixty channels, to look through them twice a second would be most of a look's cost.
        if snapshot.facts is self._prepared_for:
            return
        channels = snapshot.facts.channels.values()
        self._engine.prepare_for(channel.definition for channel in channels)
        self._prepared_for = snapshot.facts

    def status(self) -> NodeStatus:
        """What this node knows and does."""
        return NodeStatus(
            nid=self._settings.nid,
            version=__version__,
            contact=self._contact().value,
            warm=self._warm,
            started=self._started,
            serves=self._engine.serves,
            pipelines=tuple(controller.status() for controller in self._supervisor.current()),
            memory=self._memory.seen(),
            disk=look_at_disk(self._settings.environment, self._settings.spark_folders),
            threads=count_threads(),
            spark=self._spark(),
            alarms=self._alarms.status(),
            problem=self._problem.sentence,
            lost_channels=self._lost_channels.sentence,
            zookeeper=self._ensemble.seen(),
            zookeeper_certificates=self._ensemble.certificates(),
        )

    def _spark(self) -> NodeSpark:
        answered = self._engine.last_answer()
        age = None if answered is None else round(self._clock.monotonic() - answered, 1)
        return NodeSpark(self._settings.spark_master, age)

    def _contact(self) -> Contact:
        return contact_at(self._arbiter.session, self._clock.monotonic())

    def _silent_seconds(self) -> float:
        return max(0.0, self._clock.monotonic() - self._arbiter.session.last_contact())

    def _lose_engine(self, error: SetlError) -> None:
        """A node that cannot write must not lead: leave, and let the supervisor start another."""
        if self._stopping.is_set():
            return  # a signal to the whole process group ends the engine's processes too
        _log.error("node cannot go on", extra=fields(nid=self._settings.nid, error=str(error)))
        self._lost = error
        self._warm = False
        self.stop()

    def _build(
        self, channel: Channel, pipeline: str, epoch: int, progress: Progress
    ) -> PipelineRun:
        run = self._engine.build_run(
            resolve_and_parse(channel.definition, self._settings.environment),
            Leadership(channel.name, pipeline, self._settings.nid, epoch),
            arbiter=self._arbiter,
            progress=progress,
            clock=self._clock,
        )
        self._stall_watch.follow(run.observed)
        return run

    def _info(self) -> NodeInfo:
        return NodeInfo(
            nid=self._settings.nid,
            host=socket.gethostname(),
            pid=os.getpid(),
            http=self._http.address,
            started=self._started,
            ready=self._warm,
            serves=self._engine.serves,
            not_ready=self._supervisor.not_ready(),
            read_key=self._read_key,
        )

    def _tick_safely(self) -> float:
        """As `_tick`, whatever goes wrong in it.

        A node that ends on what it cannot understand would be followed by all others. One that
        cannot look for as long as a session lasts follows no operator any more, and gives its
        leaderships up; it goes on looking.
        """
        try:
            pause = self._tick()
        except ArbiterError as error:
            if self._snapshot is None:
                raise  # its access rights, or its own name: nothing has ever worked here
            self._problem.occurred(error)
        except Exception as error:  # noqa: BLE001 - a defect; shown in status, and tried again
            self._problem.occurred(error)
        else:
            if self._answered:  # else nothing was answered that could have gone wrong again
                self._problem.passed()
            if not self._problem.sentence:
                return pause
        if self._problem.lasts >= self._settings.session_timeout:
            self._supervisor.step_down()
        return self._settings.cycle

    def _tick(self) -> float:
        """Look, decide and act once; returns seconds after which to look again."""
        cycle, self._answered = self._settings.cycle, False
        try:
            self._announcement.renew(busy=self._supervisor.busy)
        except (Unreachable, Conflict) as error:
            _log.debug("ZooKeeper does not answer", extra=fields(error=str(error)))
            return cycle  # the watchdog suspends and aborts without any answer
        snapshot = self._snapshot = look(self._arbiter, self._clock, self._snapshot)
        self._answered = snapshot.contact is Contact.CONNECTED
        self._prepare(snapshot)
        self._lost_channels.seen(snapshot, self._arbiter)
        if self._damaged.seen(snapshot.facts.damaged, f"/nodes/{self._settings.nid}"):
            self._announcement.forget()  # somebody has written over this node's own znode
        due = self._supervisor.tick(snapshot, warm=self._warm)
        self._turns.share(sum(controller.busy for controller in self._supervisor.current()))
        if self._announcement.missing_for(self._info()) and snapshot.contact is Contact.CONNECTED:
            return 0.0  # the others are to know soon that they need not wait for this node
        if due is None:
            return cycle
        # A vacancy that this node leaves to others first may end between two cycles.
        return min(cycle, max(0.0, due - self._clock.monotonic()))

    def _leave(self) -> None:
        """Drain all pipeline controllers, step down, end the session, then the engine."""
        self._service.stopping()
        self._announcement.leave()
        self._last_cycle = None  # draining may take longer than a cycle, and is no hanging
        self._watchdog.stop()
        self._stall_watch.stop()
        self._ensemble.stop()
        self._alarms.stop()
        self._supervisor.close(_DRAIN_SECONDS if self._lost is None else _DRAIN_WITHOUT_ENGINE)
        self._arbiter.close()
        self._http.stop()
        self._engine.stop()


def _console(settings: NodeSettings) -> ConsoleSettings | None:
    if not settings.console:
        return None
    return ConsoleSettings(
        environment=settings.environment,
        zookeeper=settings.zookeeper,
        root=settings.root,
    )
