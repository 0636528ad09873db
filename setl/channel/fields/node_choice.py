"""The nodes that a channel file prefers as leaders of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from setl.channel.fields.checks import Name
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, items, part
from setl.channel.text.strict_model import StrictModel


class NodeChoice(StrictModel):
    """Which nodes are preferred as leaders of a pipeline."""

    prefer: list[Name] = Field(
        default_factory=list[str],
        description="Ids of nodes, in order of preference. The first that is live and warm takes"
        " over; if none is, another node does.",
    )
    weights: dict[Name, Annotated[float, Field(ge=0, le=1000)]] = Field(
        default_factory=dict[str, float],
        description="Node id → weight in the distribution of pipelines; 1 by default. A node with"
        " 0 never leads this pipeline.",
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """Nobody is preferred twice, or preferred and excluded."""
        weights, seen = part(raw.get("weights")), set[str]()
        for i, nid in enumerate(items(raw.get("prefer"))):
            if not isinstance(nid, str):
                continue
            if nid in seen:
                yield ("prefer", i), "is named twice"
            if weights.get(nid) == 0:
                yield ("prefer", i), "has the weight 0, so it never leads"
            seen.add(nid)
