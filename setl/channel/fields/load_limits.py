"""What a load of whole tables is throttled by."""

from __future__ import annotations

from pydantic import Field

from setl.channel.text.strict_model import StrictModel


class LoadLimits(StrictModel):
    """Limits of table loads. They do not affect the stream of changes."""

    rows_per_second: int | None = Field(
        default=None,
        ge=1,
        description="Average rows a second.",
    )
    threads_running: int | None = Field(
        default=None,
        ge=1,
        description="The load pauses while more statements run on the source (Threads_running),"
        " setl's own query, readers of the binlog and the event scheduler included.",
    )
    lag: float | None = Field(
        default=None,
        gt=0,
        description="The load pauses while the lag exceeds this many seconds. Default: while there"
        " is lag, the stream gets three quarters of the time.",
    )
    replica_lag: float | None = Field(
        default=None,
        gt=0,
        description="The load pauses while a replica of the target (its `replicas`) lags by more"
        " than this many seconds, or does not answer.",
    )
