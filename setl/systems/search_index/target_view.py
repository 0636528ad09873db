"""How busy a cluster is with writing, asked for when a pipeline stands still.

APIs: nodes stats, thread pool ``write``
(https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-nodes-stats) and tasks
(https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-tasks-list).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from setl.errors import ConfigurationError, FatalError, SetlError
from setl.load.target_view import Statement, TargetView
from setl.systems.search_index.answers import each, number, part
from setl.systems.search_index.client import SearchClient, make_client
from setl.systems.search_index.errors import translating
from setl.systems.search_index.port import ClusterEndpoint

_SECONDS = 3.0
_BULK = "indices:data/write/bulk"


@dataclass(frozen=True, slots=True)
class WriteLoad:
    """A cluster's writing, all clients together.

    Attributes:
        active: write operations that run.
        queued: write operations that wait for a thread.
        rejected: write operations refused for want of room since the servers started.
        running: bulk requests that run, as seconds, longest first.
        blind: what could not be seen, and why; "" if everything could.
    """

    active: int = 0
    queued: int = 0
    rejected: int = 0
    running: tuple[float, ...] = ()
    blind: str = ""


def look_at_writes(endpoint: ClusterEndpoint) -> WriteLoad:
    """Ask the cluster, in a few seconds.

    Raises:
        SetlError: it does not answer in time.
    """
    client = make_client(replace(endpoint, request_timeout=min(endpoint.request_timeout, _SECONDS)))
    try:
        with translating(endpoint):
            client.info()
        try:
            with translating(endpoint):
                return _asked(client)
        except (ConfigurationError, FatalError) as error:
            # It answers, but does not tell this account, or does not have these figures.
            return WriteLoad(blind=f"how busy it is cannot be seen: {error.message}")
    finally:
        client.close()


def _asked(client: SearchClient) -> WriteLoad:
    stats = client.node_stats("thread_pool", "nodes.*.thread_pool.write")
    wanted = "nodes.*.tasks.*.action,nodes.*.tasks.*.running_time_in_nanos"
    tasks = client.tasks(f"{_BULK}*", wanted)
    pools = [part(part(node, "thread_pool"), "write") for node in each(stats, "nodes")]
    running = [
        number(task, "running_time_in_nanos") / 1e9
        for node in each(tasks, "nodes")
        for task in each(node, "tasks")
        if task.get("action") == _BULK  # and not its parts on each shard
    ]
    return WriteLoad(
        active=sum(number(pool, "active") for pool in pools),
        queued=sum(number(pool, "queue") for pool in pools),
        rejected=sum(number(pool, "rejected") for pool in pools),
        running=tuple(sorted(running, reverse=True)),
    )


class ClusterView:
    """Remembers how many writes were rejected before, since only further ones matter."""

    def __init__(self, name: str, look: Callable[[], WriteLoad]) -> None:
        self._name = name
        self._look = look
        self._rejected: int | None = None

    def __call__(self, _: int) -> TargetView:
        """See `LookAtTarget`; a cluster does not know which leadership writes to it."""
        view = TargetView(name=self._name)
        try:
            load = self._look()
        except SetlError as error:
            return replace(view, error=str(error))
        before, self._rejected = self._rejected, load.rejected
        more = load.rejected - before if before is not None and load.rejected > before else 0
        text = f"{more} writes were rejected since the last look" if more else ""
        if load.queued:
            text += f"{', ' if text else ''}{load.queued} writes wait in its queues"
        return replace(
            view,
            statements=tuple(Statement(0, seconds, "bulk request") for seconds in load.running),
            rejecting=text,
            blind=load.blind,
        )
