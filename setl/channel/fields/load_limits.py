"""What a load of whole tables gives way to."""

from __future__ import annotations

from pydantic import Field

from setl.channel.text.strict_model import StrictModel


class LoadLimits(StrictModel):
    """Limits of loads of whole tables; the stream of changes knows none of them."""

    rows_per_second: int | None = Field(
        default=None,
        ge=1,
        description="Rows that are read and written in a second, on the average. Not given: as"
        " many as can be.",
    )
    threads_running: int | None = Field(
        default=None,
        ge=1,
        description="While the source carries out more statements at once (Threads_running), no"
        " rows are read. setl's question, each reader of the binlog and the event scheduler are"
        " among them. Not given: nobody looks.",
    )
    lag: float | None = Field(
        default=None,
        gt=0,
        description="While the target is more seconds behind the source, no rows are read. Not"
        " given: as long as it is behind, the stream has three quarters of the time.",
    )
    replica_lag: float | None = Field(
        default=None,
        gt=0,
        description="While a replica of the target (its `replicas`) is more seconds behind, no rows"
        " are read. One that cannot be asked counts as behind. Not given: nobody looks.",
    )
