"""Reads everything that decisions depend on, in as few round trips as there are levels."""

from __future__ import annotations

from collections.abc import Iterable

from arbiter.errors import Invalid
from arbiter.paths import Paths, is_name
from arbiter.payloads import read_channel, read_epoch, read_leader_lock, read_node, read_signal
from arbiter.values import Channel, Facts, LeaderLock, NodeInfo, PipelineId, Signal
from arbiter.znodes import Znodes


def read_facts(znodes: Znodes, paths: Paths) -> Facts:
    """See `arbiter.arbiter.Arbiter.facts`."""
    damaged: dict[str, str] = {}
    (found,) = znodes.children_all([paths.channels])
    names = _names(paths.channels, found, damaged)
    epoch, *read = znodes.read_all([paths.epoch, *(f"{paths.channels}/{name}" for name in names)])
    if epoch is not None:
        try:
            read_epoch(epoch.data)
        except Invalid as error:
            damaged[paths.epoch] = f"is no base for epochs, so that no node can take over: {error}"
    channels: dict[str, Channel] = {}
    for name, znode in zip(names, read, strict=True):
        if znode is not None:
            channel = channels[name] = read_channel(name, znode.data, znode.version)
            if channel.damage:
                damaged[f"{paths.channels}/{name}"] = (
                    f"{channel.damage}; the channel counts as stopped, and `setl apply` stores"
                    " it again"
                )
    folders = znodes.children_all([f"{paths.channels}/{name}" for name in names])
    pipelines = [
        PipelineId(name, pipeline)
        for name, below in zip(names, folders, strict=True)
        for pipeline in _names(f"{paths.channels}/{name}", below, damaged)
    ]
    leader_locks = _read_leader_locks(znodes, paths, pipelines, damaged)
    # Nodes last: a session's znodes go at once, so a leader whose lock was seen to be gone must
    # not be seen to live. Its outage would count from then, and not from its last sign of life.
    found, *signs = znodes.children_all([paths.nodes, *(paths.signals(p) for p in pipelines)])
    nids = _names(paths.nodes, found, damaged)
    named = [(p, name) for p, below in zip(pipelines, signs, strict=True) for name in below]
    read = znodes.read_all(
        [
            *(f"{paths.nodes}/{nid}" for nid in nids),
            *(f"{paths.signals(p)}/{name}" for p, name in named),
        ]
    )
    nodes: dict[str, NodeInfo] = {}
    for nid, znode in zip(nids, read[: len(nids)], strict=True):
        if znode is not None:
            wrong: list[str] = []
            nodes[nid] = read_node(nid, znode.data, wrong)
            _note(damaged, f"{paths.nodes}/{nid}", wrong)
    signals: dict[PipelineId, tuple[Signal, ...]] = {}
    for (ident, name), znode in zip(named, read[len(nids) :], strict=True):
        if znode is not None:
            wrong = []
            signal = read_signal(name, znode.data, znode.version, wrong)
            _note(damaged, f"{paths.signals(ident)}/{name}", wrong)
            if signal is not None:
                signals[ident] = (*signals.get(ident, ()), signal)
    return Facts(nodes, channels, leader_locks, signals, damaged)


def _read_leader_locks(
    znodes: Znodes, paths: Paths, pipelines: list[PipelineId], damaged: dict[str, str]
) -> dict[PipelineId, LeaderLock]:
    leader_locks: dict[PipelineId, LeaderLock] = {}
    positions = [paths.leader_lock(p) for p in pipelines]
    for ident, path, znode in zip(pipelines, positions, znodes.read_all(positions), strict=True):
        if znode is not None:
            wrong: list[str] = []
            leader_locks[ident] = read_leader_lock(
                znode.data, created=znode.created, owner=znode.owner, wrong=wrong
            )
            _note(damaged, path, wrong)
    return leader_locks


def _names(folder: str, found: Iterable[str], damaged: dict[str, str]) -> list[str]:
    """The names that nodes, channels and pipelines can have."""
    names: list[str] = []
    for name in found:
        if is_name(name):
            names.append(name)
        else:
            damaged[f"{folder}/{name}"] = "has a name that setl gives to nothing"
    return names


def _note(damaged: dict[str, str], path: str, wrong: list[str]) -> None:
    if wrong:
        damaged[path] = "; ".join(wrong)
