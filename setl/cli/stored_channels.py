"""Channel files from the cluster, with the secrets of this environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from arbiter.values import Channel, PipelineId
from setl.errors import ConfigurationError

if TYPE_CHECKING:
    from setl.channel.file import Pipeline


def pipeline_config(channel: Channel, ident: PipelineId) -> Pipeline:
    """A pipeline of a stored channel, its references resolved from this process's environment.

    Raises:
        ConfigurationError: a variable is missing here, or the channel has no such pipeline.
    """
    from setl.channel.reading import resolve_and_parse  # noqa: PLC0415

    file = resolve_and_parse(channel.definition, os.environ)
    for pipeline in file.pipelines:
        if pipeline.name == ident.pipeline:
            return pipeline
    raise ConfigurationError(f"channel {channel.name} has no pipeline {ident.pipeline}")
