"""Finds `start` places that no longer matter, because there is a checkpoint."""

from __future__ import annotations

from arbiter.arbiter import Arbiter
from setl.channel.file import ChannelFile, Pipeline
from setl.errors import SetlError
from setl.operate.positions.stored import read_stored


def without_used_starts(file: ChannelFile, arbiter: Arbiter) -> ChannelFile:
    """The channel as runs that began now would use it, for checks.

    A server purges the file that `start` names sooner or later; a pipeline with a checkpoint has
    no need of it. Where the checkpoint cannot be looked at, `start` stays.

    Args:
        file: the channel, its references resolved.
        arbiter: keeps checkpoints, or notes where they are.
    """
    pipelines = [_without(pipeline, file.channel, arbiter) for pipeline in file.pipelines]
    return file.model_copy(update={"pipelines": pipelines})


def _without(pipeline: Pipeline, channel: str, arbiter: Arbiter) -> Pipeline:
    anywhere = pipeline.source.from_anywhere()
    if anywhere == pipeline.source:
        return pipeline
    try:
        if read_stored(pipeline, channel, arbiter).checkpoint is None:
            return pipeline
    except SetlError:  # the check itself says what is wrong with the target
        return pipeline
    return pipeline.model_copy(update={"source": anywhere})
