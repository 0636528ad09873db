"""What is known of pipelines and nodes when alarms are decided about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from setl.channel.fields.alarms import Alarms
from setl.systems.expiry import Expiration, ServerDisk, StreamRetention


@dataclass(frozen=True, slots=True)
class PipelineFacts:
    """One pipeline.

    Attributes:
        channel: its channel.
        pipeline: its name.
        wanted: what the operator wants of the channel.
        leader: the node that leads, "" if none does.
        figures: what the leader says of it, see `setl.run.measured.figures.Figures`; None without
            a leader that answers.
        missing: why no node can lead it, "" if one can.
        standbys: how many nodes would take over.
        rules: when it raises alarms.
        verify_every: seconds between two passes of standing verification, None without it.
        retention: for how long the source has what follows the checkpoint, None if nobody knows.
        expirations: what expires at its servers; None if nobody knows.
        disks: those on which its target keeps rows; None if nobody knows.
        cutover: which cut-over keeps its source read-only, "" if none does; None if nobody knows.
        unreachable: why its servers were not asked or did not answer, "" if they did.
    """

    channel: str
    pipeline: str
    wanted: Literal["START", "PAUSE", "STOP"] = "START"
    leader: str = ""
    figures: Mapping[str, Any] | None = None
    missing: str = ""
    standbys: int = 0
    rules: Alarms = field(default_factory=Alarms)
    verify_every: float | None = None
    retention: StreamRetention | None = None
    expirations: Sequence[Expiration] | None = None
    disks: Sequence[ServerDisk] | None = None
    cutover: str | None = None
    unreachable: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One live node.

    Attributes:
        nid: its id.
        disk: the folder that is looked at, "" if unknown.
        disk_free: part of its disk that is free, from 0 to 1; None if unknown.
    """

    nid: str
    disk: str = ""
    disk_free: float | None = None
