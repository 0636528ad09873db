"""Which series a node's page of metrics can have."""

from prometheus_client import CollectorRegistry

from setl.node.metrics import NodeCollector
from setl.node.status import NodeStatus

_SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}


def every_series():
    """The names of all series, those of counters and histograms with their suffixes."""
    registry = CollectorRegistry()
    status = NodeStatus("n1", "1", "connected", True, 0.0, ())
    registry.register(NodeCollector(lambda: status, lambda: 0.0))
    return {
        family.name + suffix
        for family in registry.collect()
        for suffix in _SUFFIXES.get(family.type, [""])
    }
