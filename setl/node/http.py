"""The node's HTTP interface: what it is doing, for people, for `setl status` and for Prometheus."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from setl.pipeline.progress import Figures

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline as this node sees it.

    Attributes:
        channel: the channel.
        pipeline: the pipeline.
        leader: nid of whoever leads it, "" if nobody does.
        epoch: of that leadership, 0 if there is none.
        mine: whether this node is the leader.
        decision: what this node decided last about it, one sentence.
        figures: what the pipeline does here; all zero on a standby.
    """

    channel: str
    pipeline: str
    leader: str
    epoch: int
    mine: bool
    decision: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node and all pipelines it knows.

    Attributes:
        nid: its id.
        version: version of setl.
        contact: how well it reaches the arbiter.
        warm: whether its Spark session is ready to take over.
        started: when it started, seconds since 1970 UTC.
        pipelines: every pipeline of every channel.
    """

    nid: str
    version: str
    contact: str
    warm: bool
    started: float
    pipelines: tuple[PipelineStatus, ...]


def as_json(status: NodeStatus) -> dict[str, Any]:
    """A node's status as plain JSON values."""
    return asdict(status, dict_factory=_plain)


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {k: v.value if isinstance(v, Enum) else v for k, v in items}


class NodeHttp:
    """Serves status and metrics from its own thread, on a socket that is bound at once."""

    def __init__(
        self, host: str, port: int, status: Callable[[], NodeStatus], registry: CollectorRegistry
    ) -> None:
        """Bind; raises OSError if the port is taken."""
        self._status = status
        self._registry = registry
        self._socket = socket.create_server((host, port))
        bound: tuple[str, int] = self._socket.getsockname()[:2]
        self.address = f"http://{bound[0]}:{bound[1]}"
        app = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/status", self._show_status),
                Route("/metrics", self._metrics),
            ]
        )
        config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True
        )

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering; bounded."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=3)
        self._socket.close()

    def _health(self, _: Request) -> Response:
        """200 while the node reaches the arbiter and is warm, else 503; the body says which."""
        status = self._status()
        healthy = status.contact == "connected" and status.warm
        body = {"nid": status.nid, "contact": status.contact, "warm": status.warm}
        return JSONResponse(body, status_code=200 if healthy else 503)

    def _show_status(self, _: Request) -> Response:
        return JSONResponse(as_json(self._status()))

    def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
