"""Elasticsearch as a target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

from setl.channel.file import ElasticsearchTarget
from setl.systems.elasticsearch.client import elastic_endpoint
from setl.systems.search_index.target_system import IndexTargetSystem


class ElasticsearchTargetSystem(IndexTargetSystem):
    """The `TargetSystem` of a cluster of Elasticsearch."""

    def __init__(self, config: ElasticsearchTarget) -> None:
        """Nothing is connected yet."""
        super().__init__(elastic_endpoint(config))
