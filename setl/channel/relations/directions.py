"""Which pipelines of a channel write what others read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setl.channel.file import ChannelFile, Pipeline


def is_two_way(file: ChannelFile, pipeline: Pipeline) -> bool:
    """Whether another pipeline of the channel reads what this one writes.

    Servers are compared as they are written. A DTS source that does not say which database it
    is of counts as one of the target.
    """
    site = pipeline.target.site
    if site is None:
        return False
    origins = [other.source.origin for other in file.pipelines if other is not pipeline]
    return any(origin is None or (origin.host, origin.port) == site for origin in origins)


def way_back(file: ChannelFile, pipeline: Pipeline) -> Pipeline | None:
    """The pipeline of a channel that goes the other way, None if there is no single one."""
    others = [other for other in file.pipelines if other is not pipeline]
    if len(others) != 1 or not (is_two_way(file, pipeline) and is_two_way(file, others[0])):
        return None
    return others[0]


def partitions_read(file: ChannelFile, pipeline: Pipeline) -> frozenset[int]:
    """Which partitions of a pipeline's topic the channel reads; none for a source without."""
    return frozenset(
        number
        for other in file.pipelines
        if other.source.address == pipeline.source.address
        for number in other.source.partition_numbers
    )


def comes_back(file: ChannelFile, pipeline: Pipeline) -> bool:
    """Whether another pipeline of the channel writes what this one reads, as far as is known."""
    others = [other.target.site for other in file.pipelines if other is not pipeline]
    addresses = [site for site in others if site is not None]
    origin = pipeline.source.origin
    writes = pipeline.target.site is not None
    return (
        writes and bool(addresses) and (origin is None or (origin.host, origin.port) in addresses)
    )
