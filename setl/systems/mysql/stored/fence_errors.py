"""The error for a fence that does not have the writer's epoch (I2)."""

from __future__ import annotations

from setl.errors import FencedError, SetlError, TargetWentBackError
from setl.systems.mysql.connection import MysqlEndpoint


def fence_error(epoch: int, held: int | None, pipeline: str, server: MysqlEndpoint) -> SetlError:
    """The error for a writer whose epoch the fence does not have.

    Args:
        epoch: the writer's.
        held: the fence's; None if it has no row.
        pipeline: ``channel/pipeline``.
        server: the target.
    """
    if held is not None and held > epoch:
        return FencedError(
            f"epoch {epoch} is over, epoch {held} is active",
            pipeline=pipeline,
            server=server,
        )
    found = "has no row" if held is None else f"stands at epoch {held}"
    return TargetWentBackError(
        f"the target's fence {found}, where epoch {epoch} was not raised or is lost",
        hint="The target was restored or replaced, or somebody changed retl.setl_fence. The"
        " pipeline takes over again, from the checkpoint that the target has now",
        pipeline=pipeline,
        server=server,
    )
