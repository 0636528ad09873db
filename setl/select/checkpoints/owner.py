"""On whose behalf a checkpoint is stored."""

from __future__ import annotations

from dataclasses import dataclass

from setl.model.leadership import Leadership


@dataclass(frozen=True, slots=True)
class Owner:
    """A pipeline, and whoever leads it.

    Attributes:
        pipeline: its full name, ``channel/pipeline``.
        nid: the node.
        host: its machine.
    """

    pipeline: str
    nid: str
    host: str

    def under(self, epoch: int) -> Leadership:
        """The leadership of an epoch."""
        channel, _, pipeline = self.pipeline.partition("/")
        return Leadership(channel, pipeline, self.nid, epoch)
