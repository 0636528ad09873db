"""The node's HTTP interface: what it is doing, for people, load balancers and Prometheus.

Served without TLS and, but for what changes something, without asking who is there: a proxy in
front of it does both where they are wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.snapshot import Snapshot
from arbiter.values import HistoryItem, PipelineId
from setl.clock import Clock
from setl.error_text import HIDDEN
from setl.log import fields
from setl.node.cluster.naming import known_pipelines
from setl.node.console.console import Console, ConsoleNode, ConsoleSettings, wants_page
from setl.node.http import overview, probes
from setl.node.http.authentication import Readers, TokenGuard
from setl.node.http.bounded_calls import BoundedCalls
from setl.node.http.connections import OF_PROBES, Limits
from setl.node.http.exposure import Exposure
from setl.node.http.listener import Listener
from setl.node.http.operations import Operations
from setl.node.http.probes import OK, SERVICE_UNAVAILABLE, TOO_MANY, Moment, Reply
from setl.node.status import NodeStatus, as_json

_log = logging.getLogger(__name__)

_CALL_SECONDS = 10.0
_HISTORY_READERS = 8
_HIDDEN = Exposure()
_LIMITS = Limits()

INDEX: Mapping[str, str] = {
    "GET /health": "200 if this node is warm and reaches ZooKeeper",
    "GET /liveness": "200 unless the main loop or Spark's JVM hangs",
    "GET /readiness?lag=SECONDS&pipeline=NAME": "200 if warm, and what it leads keeps up",
    "GET /leader/{channel}/{pipeline}": "200 if this node leads the pipeline and applies changes",
    "GET /standby/{channel}/{pipeline}": "200 if this node could take the pipeline over",
    "GET /cluster": "nodes, channels, pipelines, scheduled switchovers",
    "GET /history?pipeline=NAME": "past leaderships",
    "GET /status": "every figure of this node",
    "GET /metrics": "the same for Prometheus",
    "POST /switchover": '{"pipeline", "to"?, "at"?}: drain and hand over; token needed',
    "DELETE /switchover": '{"pipeline"}: take a scheduled one back; token needed',
    "POST /failover": '{"pipeline", "to"?}: take the leadership away; token needed',
    "POST /pause": '{"channel"}; token needed',
    "POST /resume": '{"channel"}; token needed',
}


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the interface knows of its node.

    Attributes:
        status: the node and its pipelines, as of now; must not block.
        snapshot: the last look at the cluster, None before the first.
        last_cycle: monotonic time at which the main loop completed a cycle last; None while it
            has not begun or has ended.
        engine_answered: see `setl.node.engines.engine.Engine.last_answer`.
        arbiter: the node's session.
        clock: the node's clock.
        registry: the metrics.
    """

    status: Callable[[], NodeStatus]
    snapshot: Callable[[], Snapshot | None]
    last_cycle: Callable[[], float | None]
    engine_answered: Callable[[], float | None]
    arbiter: Arbiter
    clock: Clock
    registry: CollectorRegistry


class NodeHttp:
    """Serves from threads of its own, on sockets that are bound at once."""

    def __init__(
        self,
        host: str,
        port: int,
        node_context: NodeContext,
        *,
        nid: str = "",
        token: str = "",
        read_key: str = "",
        call_seconds: float = _CALL_SECONDS,
        console: ConsoleSettings | None = None,
        exposure: Exposure = _HIDDEN,
        limits: Limits = _LIMITS,
    ) -> None:
        """Bind, but do not answer yet.

        Args:
            host: address to bind to.
            port: port to bind to; 0 takes any free one.
            node_context: the node.
            nid: its id.
            token: what requests that change something must show; empty if none may.
            read_key: what the node's znode says; whoever shows it may read everything, too.
            call_seconds: limit of what a request needs from the arbiter.
            console: how its pages for people are run; None if there are to be none.
            exposure: what of it is reached from where.
            limits: of its connections.

        Raises:
            ListenError: a port is taken, or an address is not this machine's.
        """
        self._node_context = node_context
        self._nid = nid
        guard = TokenGuard(token, node_context.clock)
        self._readers = Readers(guard, read_key)
        self._operations = Operations(
            node_context.arbiter,
            node_context.clock,
            nid=nid,
            guard=guard,
            call_seconds=call_seconds,
        )
        self._history = BoundedCalls("http-history", threads=2, limit=call_seconds)
        self._reading = 0
        self._console = None
        if console is not None:
            node = ConsoleNode(
                nid=nid,
                status=node_context.status,
                snapshot=node_context.snapshot,
                arbiter=node_context.arbiter,
                clock=node_context.clock,
                call_seconds=call_seconds,
            )
            self._console = Console(node, console, guard)
        app = self._application()
        self._listeners = [Listener("http", host, port, app, limits=limits, exposure=exposure)]
        self.address = self._listeners[0].address
        self.probes = ""
        if exposure.probes is not None:
            # In a thread of its own: what strangers ask of the other one does not hold it up.
            at, app = exposure.probes, self._probes_alone()
            apart = Listener("http-probes", *at, app, limits=OF_PROBES, exposure=exposure)
            self._listeners.append(apart)
            self.probes = apart.address

    def start(self) -> None:
        """Begin to answer."""
        if self._console is not None:
            self._console.start()
        for listener in self._listeners:
            listener.start()

    def stop(self) -> None:
        """Stop answering; bounded."""
        self._operations.stop()
        self._history.stop()
        if self._console is not None:
            self._console.stop()
        for listener in self._listeners:
            listener.stop()

    def _application(self) -> Starlette:
        look = self._probes()
        reported: dict[str, Callable[[Request], Reply]] = {
            "/cluster": lambda r: _of_cluster(self._moment(r)),
            "/status": lambda r: Reply(OK, as_json(self._moment(r).status)),
        }
        return Starlette(
            routes=[
                Route("/", self._first, methods=_READING),
                *(Route(path, _probe(answer), methods=_READING) for path, answer in look.items()),
                *(
                    Route(path, _probe(self._unless_wrong(answer)), methods=_READING)
                    for path, answer in reported.items()
                ),
                Route("/history", self._show_history, methods=_READING),
                Route("/metrics", self._metrics, methods=["GET", "HEAD"]),
                *self._operations.routes(),
                *(self._console.routes() if self._console else ()),
            ],
            exception_handlers={HTTPException: _not_served, 500: _defect},
        )

    def _probes(self) -> dict[str, Callable[[Request], Reply]]:
        return {
            "/health": lambda r: probes.health(self._moment(r)),
            "/liveness": self._liveness,
            "/readiness": self._readiness,
            "/leader/{name:path}": lambda r: probes.leader(self._moment(r), r.path_params["name"]),
            "/standby/{name:path}": lambda r: probes.standby(
                self._moment(r), r.path_params["name"]
            ),
        }

    def _probes_alone(self) -> Starlette:
        return Starlette(
            routes=[
                Route(path, _probe(answer), methods=_READING)
                for path, answer in self._probes().items()
            ],
            exception_handlers={HTTPException: _not_served, 500: _defect},
        )

    async def _first(self, request: Request) -> Response:
        """The console for browsers, what there is for programs."""
        if self._console is not None and wants_page(request):
            return await self._console.overview(request)
        reply = _answer(Reply(OK, {"nid": self._nid, "paths": dict(INDEX)}), request)
        reply.headers["Vary"] = "Accept"
        return reply

    def _unless_wrong(self, answer: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
        """The same; but a wrong token is an error. To probes it is none: it changes no code."""
        return lambda request: self._readers.wrong(request) or answer(request)

    def _moment(self, request: Request) -> Moment:
        """What is known now, as far as whoever asks may read it."""
        node_context = self._node_context
        # The look comes before the status that was decided from it, never after.
        snapshot = node_context.snapshot()
        at = node_context.clock.monotonic()
        now = probes.moment(at, node_context.status(), node_context.arbiter.session, snapshot)
        return now if self._readers.admits(request) else probes.public_moment(now)

    def _liveness(self, _: Request) -> Reply:
        return probes.liveness(
            self._nid,
            self._node_context.clock.monotonic(),
            self._node_context.last_cycle(),
            self._node_context.arbiter.session.session_timeout,
            self._node_context.engine_answered(),
        )

    def _readiness(self, request: Request) -> Reply:
        lag = probes.seconds("lag", request.query_params.get("lag"))
        if isinstance(lag, Reply):
            return lag
        return probes.readiness(
            self._moment(request), lag, request.query_params.get("pipeline", "")
        )

    async def _show_history(self, request: Request) -> Response:
        if self._reading >= _HISTORY_READERS:
            return _answer(Reply(TOO_MANY, {"error": "too many are reading the history"}), request)
        self._reading += 1
        try:
            wrong = self._readers.wrong(request)
            return _answer(wrong or await self._read_history(request), request)
        finally:
            self._reading -= 1

    async def _read_history(self, request: Request) -> Reply:
        """The history, from the arbiter itself, since no node keeps a copy."""
        now, name = self._moment(request), request.query_params.get("pipeline", "")
        if now.snapshot is None:
            return probes.NOT_LOOKED
        found = probes.find(name, now) if name else None
        if isinstance(found, Reply):
            return found
        pipelines = [found] if found else known_pipelines(now.facts)
        arbiter = self._node_context.arbiter

        def read() -> dict[PipelineId, list[HistoryItem]]:
            return {pipeline: list(arbiter.history.all(pipeline)) for pipeline in pipelines}

        try:
            return Reply(OK, {"history": overview.history(await self._history.run(read))})
        except ArbiterError as error:
            return Reply(
                SERVICE_UNAVAILABLE,
                {"error": str(error) if self._readers.admits(request) else HIDDEN},
            )

    def _metrics(self, _: Request) -> Response:
        return Response(
            generate_latest(self._node_context.registry), media_type=CONTENT_TYPE_LATEST
        )


_READING = ["GET", "HEAD", "OPTIONS"]


def _probe(answer: Callable[[Request], Reply]) -> Callable[[Request], Response]:
    """An endpoint; starlette runs it in a thread, so that a slow one holds no other up."""

    def endpoint(request: Request) -> Response:
        return _answer(answer(request), request)

    return endpoint


def _of_cluster(now: Moment) -> Reply:
    return Reply(OK, overview.cluster(now)) if now.snapshot else probes.NOT_LOOKED


def _answer(reply: Reply, request: Request) -> Response:
    """With the code alone for OPTIONS, which HAProxy's health checks may use."""
    if request.method == "OPTIONS":
        return Response(status_code=reply.code, headers={"Allow": ", ".join(_READING)})
    return JSONResponse(reply.body, status_code=reply.code, headers={"Cache-Control": "no-store"})


def _not_served(request: Request, error: Exception) -> Response:
    """Nothing is there, or not with this method."""
    if not isinstance(error, HTTPException):
        raise error
    text = f"nothing answers {request.method} {request.url.path}; GET / says what there is"
    return JSONResponse({"error": text}, status_code=error.status_code, headers=error.headers)


def _defect(request: Request, error: Exception) -> Response:
    """An error that nobody expected; the log has the rest."""
    where = f"{request.method} {request.url.path}"
    _log.error("request failed unexpectedly", exc_info=error, extra=fields(request=where))
    text = f"unexpected {type(error).__name__}; the node's log says more"
    return JSONResponse({"error": text}, status_code=500)
