"""Finds pipelines that would mistake another's changes for an echo of their own channel.

A pipeline drops every transaction that carries its channel's mark, wherever it came from. That is
right for the way back of a two-way channel, where such a change came from the target. It is
wrong for a third pipeline: one that feeds an index from site A would never see what arrives at
A from site B, and nothing would fail.
"""

from __future__ import annotations

from setl.channel.file import ChannelFile, Pipeline


def mistaken_for_echoes(file: ChannelFile, pipeline: Pipeline) -> list[str]:
    """Names of pipelines of the channel whose changes `pipeline` would drop on their way on.

    Servers are compared as they are written; of what database a DTS source is, it may not say.
    """
    origin, site = pipeline.source.origin, pipeline.target.site
    if origin is None or pipeline.target.is_log:
        return []  # a relay drops nothing
    source = (origin.host, origin.port)
    names: list[str] = []
    for other in file.pipelines:
        if other is pipeline or other.target.site != source:
            continue
        origin = other.source.origin
        # If no database is named, it may be the target's subscription.
        address = site if origin is None else (origin.host, origin.port)
        comes_back = site is not None and address == site
        if not comes_back:
            names.append(other.name)
    return names
