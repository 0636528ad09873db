"""Reads everything that decisions depend on, in as few round trips as there are levels."""

from __future__ import annotations

from arbiter.journal import signals_of
from arbiter.paths import Paths
from arbiter.payloads import read_channel, read_mainstem, read_node
from arbiter.values import Channel, Facts, Mainstem, NodeInfo, PipelineId, Signal
from arbiter.znodes import Znodes


def read_facts(znodes: Znodes, paths: Paths) -> Facts:
    """See `arbiter.port.Arbiter.facts`."""
    nids, names = znodes.children_all((paths.nodes, paths.channels))
    found = znodes.read_all(
        [f"{paths.nodes}/{nid}" for nid in nids] + [f"{paths.channels}/{name}" for name in names]
    )
    nodes: dict[str, NodeInfo] = {}
    for nid, znode in zip(nids, found[: len(nids)], strict=True):
        if znode is not None:
            nodes[nid] = read_node(nid, znode.data)
    channels: dict[str, Channel] = {}
    for name, znode in zip(names, found[len(nids) :], strict=True):
        if znode is not None:
            channels[name] = read_channel(name, znode.data, znode.version)
    folders = znodes.children_all([f"{paths.channels}/{name}" for name in names])
    pipelines = [
        PipelineId(name, pipeline)
        for name, below in zip(names, folders, strict=True)
        for pipeline in below
    ]
    mainstems, signals = _read_pipelines(znodes, paths, pipelines)
    return Facts(nodes, channels, mainstems, signals)


def _read_pipelines(
    znodes: Znodes, paths: Paths, pipelines: list[PipelineId]
) -> tuple[dict[PipelineId, Mainstem], dict[PipelineId, tuple[Signal, ...]]]:
    mainstems: dict[PipelineId, Mainstem] = {}
    for ident, znode in zip(
        pipelines, znodes.read_all([paths.mainstem(p) for p in pipelines]), strict=True
    ):
        if znode is not None:
            mainstems[ident] = read_mainstem(znode.data, created=znode.created, owner=znode.owner)
    signals: dict[PipelineId, tuple[Signal, ...]] = {}
    folders = znodes.children_all([paths.signals(p) for p in pipelines])
    named = [(p, name) for p, below in zip(pipelines, folders, strict=True) for name in below]
    found = znodes.read_all([f"{paths.signals(p)}/{name}" for p, name in named])
    for (ident, name), znode in zip(named, found, strict=True):
        if znode is not None:
            signals[ident] = signals.get(ident, ()) + signals_of([(name, znode)])
    return mainstems, signals
