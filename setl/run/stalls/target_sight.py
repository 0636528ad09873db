"""Looking at a target that a pipeline may be waiting for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from setl.errors import SetlError
from setl.load.worker import SinkSettings
from setl.run.stalls.stall import TargetView
from setl.systems.elasticsearch.write_load import WriteLoad, look_at_writes
from setl.systems.mysql import lock_waits
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.load.sink import MysqlSinkSettings

TargetSight = Callable[[int], TargetView]
"""Looks at the target for the connections of an epoch. Blocks for some seconds at most."""


def target_sight(settings: SinkSettings, pipeline_key: str) -> TargetSight:
    """How to look at the target of a pipeline.

    Args:
        settings: the sink.
        pipeline_key: ``channel/pipeline``.
    """
    if isinstance(settings, MysqlSinkSettings):
        return partial(_look_at_mysql, settings.endpoint, pipeline_key)
    return _ElasticSight(str(settings.endpoint), partial(look_at_writes, settings.endpoint))


def _look_at_mysql(endpoint: MysqlEndpoint, pipeline_key: str, epoch: int) -> TargetView:
    view = TargetView(name=f"MySQL {endpoint}")
    try:
        seen = lock_waits.look(endpoint, pipeline_key, epoch)
    except SetlError as error:
        return replace(view, error=str(error))
    return replace(
        view,
        waits=seen.waits,
        statements=seen.statements,
        open=len(seen.open),
        gone=seen.gone,
        blind=seen.blind,
        movement=seen.modified,
    )


class _ElasticSight:
    """Remembers how many writes were rejected before, since only further ones matter."""

    def __init__(self, address: str, look: Callable[[], WriteLoad]) -> None:
        self._name = f"Elasticsearch {address}"
        self._look = look
        self._rejected: int | None = None

    def __call__(self, _: int) -> TargetView:
        """See `TargetSight`; a cluster does not know which leadership writes to it."""
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
            statements=tuple(
                lock_waits.Statement(0, seconds, "bulk request") for seconds in load.running
            ),
            rejecting=text,
            blind=load.blind,
        )
