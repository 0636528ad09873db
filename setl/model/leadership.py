"""One leadership of one pipeline, on whose behalf something is done."""

from __future__ import annotations

from typing import NamedTuple


class Leadership(NamedTuple):
    """One leadership of one pipeline.

    Attributes:
        channel: the channel.
        pipeline: the pipeline.
        nid: the node that leads.
        epoch: the number of the leadership; grows for ever.
    """

    channel: str
    pipeline: str
    nid: str
    epoch: int

    @property
    def key(self) -> str:
        """``channel/pipeline``: what messages and the tables of ``retl`` call the pipeline."""
        return f"{self.channel}/{self.pipeline}"

    @property
    def fields(self) -> dict[str, object]:
        """The fields that every line of its log has."""
        return dict(self._asdict())
