"""Channel files from the cluster, with the secrets of this environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from arbiter.values import Channel, PipelineId
from setl.errors import ConfigurationError

if TYPE_CHECKING:
    from setl.channel.file import ChannelFile, Pipeline


def pipeline_config(channel: Channel, ident: PipelineId) -> Pipeline:
    """A pipeline of a stored channel, its references resolved from this process's environment.

    Raises:
        ConfigurationError: a variable is missing here, or the channel has no such pipeline.
    """
    return stored_file(channel).pipeline(ident.pipeline)


def stored_file(channel: Channel) -> ChannelFile:
    """A stored channel's file, its references resolved from this process's environment.

    Raises:
        ConfigurationError: a variable is missing here.
    """
    from setl.channel.reading import resolve_and_parse  # noqa: PLC0415

    try:
        return resolve_and_parse(channel.definition, os.environ)
    except ConfigurationError as error:
        error.at(channel=channel.name)  # who names none has asked about many
        raise
