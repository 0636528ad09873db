"""Expands a pipeline over several partitions into one pipeline for each.

Order, marks and transactions belong to a partition, and so do positions. With a pipeline of its
own each partition has its checkpoint and its leader, so nodes share the work, and a partition
that stands still holds no other up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from setl.channel.file import ChannelFile, Pipeline
from setl.channel.reading import resolve_and_parse
from setl.channel.text.document import ChannelDefinition
from setl.channel.text.raw import items


def read_expanded(
    definition: ChannelDefinition, environment: Mapping[str, str]
) -> tuple[ChannelDefinition, ChannelFile]:
    """A definition in which no source has `partitions` any more, and what it says.

    A pipeline `orders` over three partitions becomes `orders-0`, `orders-1` and `orders-2`; so
    does the file that keeps its checkpoint, if one does.

    Raises:
        ChannelFileError: anything is wrong; lists everything, in the places of the file.
    """
    file = resolve_and_parse(definition, environment)
    counts = [_count(pipeline) for pipeline in file.pipelines]
    if not any(counts):
        return definition, file
    written = cast("list[Mapping[str, Any]]", items(definition["pipelines"]))
    expanded = ChannelDefinition(
        {
            **definition,
            "pipelines": [
                each
                for raw, count in zip(written, counts, strict=True)
                for each in _expanded(raw, count)
            ],
        },
        origin=definition.origin,
    )
    # Once more: the new names may be those of others.
    return expanded, resolve_and_parse(expanded, environment)


def _count(pipeline: Pipeline) -> int:
    return pipeline.source.partition_count


def _expanded(raw: Mapping[str, Any], count: int) -> list[Mapping[str, Any]]:
    if not count:
        return [raw]
    source = {key: value for key, value in raw["source"].items() if key != "partitions"}
    return [
        {
            **raw,
            **{key: f"{raw[key]}-{partition}" for key in ("name", "checkpoint_file") if key in raw},
            "source": {**source, "partition": partition},
        }
        for partition in range(count)
    ]
