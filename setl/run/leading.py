"""On whose behalf a run works."""

from __future__ import annotations

from typing import NamedTuple


class Leading(NamedTuple):
    """One leadership of one pipeline.

    Attributes:
        channel: the channel.
        pipeline: the pipeline.
        nid: the node that leads.
        epoch: the leadership.
    """

    channel: str
    pipeline: str
    nid: str
    epoch: int

    @property
    def name(self) -> str:
        """``channel/pipeline``, for messages."""
        return f"{self.channel}/{self.pipeline}"

    @property
    def fields(self) -> dict[str, object]:
        """The fields that every line of its log has."""
        return dict(self._asdict())
