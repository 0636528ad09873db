"""Looking at a MySQL target that a pipeline may be waiting for."""

from __future__ import annotations

from dataclasses import replace

from setl.errors import SetlError
from setl.load.target_view import TargetView
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.locks import waits as lock_waits


def look_at_target(endpoint: MysqlEndpoint, pipeline_key: str, epoch: int) -> TargetView:
    """See `setl.load.target_view.LookAtTarget`."""
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
        hanging=seen.hanging,
        blind=seen.blind,
        movement=seen.modified,
    )
