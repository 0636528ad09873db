"""Finds the pipeline that a person means by a name."""

from __future__ import annotations

from arbiter.values import Facts, PipelineId
from setl.node.stored import pipelines_of


def known_pipelines(facts: Facts) -> list[PipelineId]:
    """Every pipeline of every channel, in the order of the channels' files."""
    return [p for channel in facts.channels.values() for p in pipelines_of(channel)]


def meant_by(name: str, facts: Facts) -> list[PipelineId]:
    """The pipelines that a name may mean: one if it is clear, none if there is no such one.

    Args:
        name: ``channel/pipeline``; or a pipeline's name alone, if no other channel has one of
            that name; or a channel with a single pipeline.
        facts: the cluster.
    """
    known = known_pipelines(facts)
    return (
        [p for p in known if str(p) == name]
        or [p for p in known if p.pipeline == name]
        or [p for p in known if p.channel == name]
    )
