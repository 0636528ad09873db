"""OpenSearch as a target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

from setl.channel.fields.opensearch_endpoint import OpenSearchTarget
from setl.systems.opensearch.endpoint import opensearch_endpoint
from setl.systems.search_index.target_system import IndexTargetSystem


class OpenSearchTargetSystem(IndexTargetSystem):
    """The `TargetSystem` of a cluster of OpenSearch."""

    def __init__(self, config: OpenSearchTarget) -> None:
        """Nothing is connected yet."""
        super().__init__(opensearch_endpoint(config))
