"""What the first page and the page of one channel show. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arbiter.values import EVERYTHING, Channel, NodeInfo, PipelineId
from setl.alarms.alarm_state import lasts_for
from setl.alarms.guide import section_of
from setl.node.alarm_status import failing_in, firing_in, somebody_decides
from setl.node.cluster.pipeline_texts import endpoints_of
from setl.node.cluster.view import ClusterView, PipelineView, Standby, handover_sentence
from setl.node.console.links import channel_link, editor_link, node_link, pipeline_link
from setl.node.console.pages.mapping import as_text
from setl.node.console.pages.picture import NARROW, WIDE, Direction, Picture, drawn
from setl.node.console.pages.problems import (
    Problem,
    counts_of,
    of_contact,
    problems_of,
    problems_with,
)
from setl.node.console.pages.states import CHANNEL_LOOKS, Look, look_of
from setl.operate import units
from setl.operate.applying import revision_of
from setl.operate.cutover.inspection import OpenCutover

MOST_ALARMS = 50
"""Alarms in the table of the first page."""


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """A line of the table of pipelines, as text.

    Attributes:
        name: full name; so with the rest, see the table's head.
        able: how many of the standbys could take over.
        keys: by what a table is sorted where the text would not serve; "" for what is not known.
    """

    name: str
    link: str
    look: Look
    leader: str
    leadership: str
    lag: str
    rate: str
    pending: str
    standbys: tuple[str, ...]
    able: int
    keys: Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A line of the table of nodes, as text.

    Attributes:
        name: its id; so with the rest, see the table's head.
        answers: whether it answers over HTTP.
        here: whether it is the one that shows this page.
        page: its page on this node.
    """

    name: str
    page: str
    answers: bool
    here: bool
    host: str
    version: str
    serves: str
    contact: str
    warm: bool
    leads: int
    up: str
    memory: str
    memory_parts: str


@dataclass(frozen=True, slots=True)
class ChannelPart:
    """A channel with its picture.

    Attributes:
        name: its name.
        link: its page.
        look: the state in which an operator wants it.
        wide: its picture for screens.
        narrow: the same for phones.
    """

    name: str
    link: str
    look: Look
    wide: Picture
    narrow: Picture


@dataclass(frozen=True, slots=True)
class AlarmRow:
    """A line of the table of alarms, as text.

    Attributes:
        severity: see `setl.node.alarm_status.FiringAlarm`; so with the rest.
        docs: the section of the documentation about it.
    """

    severity: str
    rule: str
    about: str
    lasts: str
    text: str
    hint: str
    silenced: bool
    docs: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The first page.

    Attributes:
        problems: what is wrong, the worst first.
        counts: how many problems of each level.
        channels: the channels, by name.
        pipelines: all pipelines.
        nodes: the live nodes.
        handovers: changes of leaders that are asked for and open, in words.
        summary: the cluster in one line.
        alarms: how many alarms are raised, and who does not hear of them; "" for nothing.
        decided: whether a node decides about alarms, so that none raised means none.
        firing: the alarms that are raised, the worst first.
        firing_more: how many are left out there.
        silenceable: channels and pipelines, as a silence names them.
    """

    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    channels: tuple[ChannelPart, ...]
    pipelines: tuple[PipelineRow, ...]
    nodes: tuple[NodeRow, ...]
    handovers: tuple[str, ...]
    summary: str
    alarms: str = ""
    decided: bool = True
    firing: tuple[AlarmRow, ...] = ()
    firing_more: int = 0
    silenceable: tuple[str, ...] = ()


def overview_of(
    view: ClusterView,
    *,
    here: str,
    contact: str = "connected",
    looked: bool = True,
    cutovers: Mapping[PipelineId, OpenCutover] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Overview:
    """The first page.

    Args:
        view: the cluster.
        here: the node that shows it.
        contact: how well that node reaches the arbiter.
        looked: whether it has looked at the cluster since it started.
        cutovers: those that were begun and not put back.
        environment: of that node, for addresses of sites.
    """
    problems = tuple(problems_of(view, contact=contact, looked=looked, cutovers=cutovers))
    raised = firing_in(view)
    rate = sum(p.figures.get("rows_per_second") or 0.0 for p in view.pipelines)
    return Overview(
        problems=problems,
        counts=counts_of(problems),
        channels=tuple(
            channel_part(channel, view, environment)
            for _, channel in sorted(view.facts.channels.items())
        ),
        pipelines=tuple(pipeline_row(pipeline) for pipeline in view.pipelines),
        nodes=tuple(node_row(view, nid, here) for nid in sorted(view.facts.nodes)),
        handovers=tuple(
            handover_sentence(p.ident, signal) for p in view.pipelines for signal in p.handovers
        ),
        summary=", ".join(
            (
                units.count(len(view.facts.channels), "channel"),
                units.count(len(view.pipelines), "pipeline"),
                units.count(len(view.facts.nodes), "node"),
                units.rate(rate, "rows"),
            )
        ),
        alarms=_alarms_line(view),
        decided=somebody_decides(view),
        firing=tuple(_alarm_row(alarm, view.at) for alarm in raised[:MOST_ALARMS]),
        firing_more=max(0, len(raised) - MOST_ALARMS),
        silenceable=(*sorted(view.facts.channels), *(str(p.ident) for p in view.pipelines)),
    )


def _alarms_line(view: ClusterView) -> str:
    """How many are raised, and whether nobody hears of them; the table below has the rest."""
    raised = firing_in(view)
    critical = sum(alarm["severity"] == "critical" for alarm in raised)
    begun = units.count(len(raised), "alarm is raised", "alarms are raised")
    if critical and len(raised) == 1:
        begun = "1 critical alarm is raised"
    elif critical:
        begun += f", {critical} of them critical"
    parts = [begun] if raised else []
    parts += [f"No alarms reach {name}: {why}" for name, why in failing_in(view).items()]
    return ". ".join(parts)


def _about(alarm: Mapping[str, Any]) -> str:
    if alarm["channel"]:
        return f"{alarm['channel']}/{alarm['pipeline']}"
    return str(alarm["subject"])


def _alarm_row(alarm: Mapping[str, Any], at: float) -> AlarmRow:
    return AlarmRow(
        severity=str(alarm["severity"]),
        rule=str(alarm["rule"]),
        about=_about(alarm),
        lasts=lasts_for(alarm["since"], alarm.get("calm") or 0.0, at),
        text=str(alarm["text"]),
        hint=str(alarm["hint"]),
        silenced=bool(alarm["silenced"]),
        docs=section_of(str(alarm["rule"])),
    )


def channel_part(
    channel: Channel, view: ClusterView, environment: Mapping[str, str] | None = None
) -> ChannelPart:
    """A channel with its picture; `environment` as for `overview_of`."""
    directions = [
        _direction(channel, pipeline, environment)
        for pipeline in view.pipelines
        if pipeline.ident.channel == channel.name
    ]
    return ChannelPart(
        channel.name,
        channel_link(channel.name),
        CHANNEL_LOOKS[channel.state.value],
        drawn(directions, WIDE),
        drawn(directions, NARROW),
    )


def _direction(
    channel: Channel, view: PipelineView, environment: Mapping[str, str] | None
) -> Direction:
    source, target = endpoints_of(channel, view.ident.pipeline, environment)
    figures = view.figures
    below = "no figures"
    if figures:
        lag, rate = units.duration(figures.get("lag")), units.rate(figures.get("rows_per_second"))
        below = f"lag {lag} · {rate} rows/s"
    elif not view.leader:
        below = "no node leads"
    return Direction(
        view.ident.pipeline,
        source,
        target,
        look_of(view.state),
        view.ident.pipeline,
        below,
        pipeline_link(view.ident),
    )


def pipeline_row(view: PipelineView) -> PipelineRow:
    """A line of the table of pipelines."""
    figures = view.figures
    return PipelineRow(
        name=str(view.ident),
        link=pipeline_link(view.ident),
        look=look_of(view.state),
        leader=view.leader or units.UNKNOWN,
        leadership=str(view.number or units.UNKNOWN),
        lag=units.duration(figures.get("lag")),
        rate=units.rate(figures.get("rows_per_second")),
        pending=units.count(figures.get("pending")),
        standbys=tuple(_standby(standby) for standby in view.standbys),
        able=sum(bool(standby.rank) for standby in view.standbys),
        # No finer than the text, so that a page is not sent again for what nobody sees.
        keys={
            "lag": _key(figures.get("lag")),
            "rate": _key(figures.get("rows_per_second")),
            "pending": _key(figures.get("pending")),
            "leadership": _key(view.number or None),
        },
    )


def _key(value: float | None) -> float | str:
    return "" if value is None else round(value, 1)


def _standby(standby: Standby) -> str:
    """A standby, and why it would not take over."""
    why = standby.never or standby.not_ready or ("" if standby.warm else "not warm")
    return f"{standby.node} ({why})" if why else standby.node


def node_row(view: ClusterView, nid: str, here: str) -> NodeRow:
    """A line of the table of nodes."""
    node: NodeInfo = view.facts.nodes[nid]
    answer: Mapping[str, Any] | None = view.answers.get(nid)
    said: Mapping[str, Any] = answer or {}
    memory: Mapping[str, int] = said.get("memory") or {}
    parts = {name: memory.get(name, 0) for name in ("driver", "jvm", "workers")}
    return NodeRow(
        name=nid,
        page=node_link(nid),
        answers=answer is not None,
        here=nid == here,
        host=node.host,
        version=str(said.get("version", units.UNKNOWN)),
        serves="any" if node.serves == EVERYTHING else ", ".join(node.serves),
        contact=str(said.get("contact", units.UNKNOWN)),
        warm=node.ready,
        leads=view.pipelines_led(nid),
        up=units.duration(view.at - node.started if node.started else None),
        memory=units.size(sum(parts.values()) if memory else None),
        memory_parts=", ".join(f"{name} {units.size(parts[name])}" for name in parts)
        if memory
        else "",
    )


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """The page of a channel."""

    name: str
    state: str
    look: Look
    revision: str
    problems: tuple[Problem, ...]
    part: ChannelPart
    file: str
    editor_link: str


def channel_page(
    view: ClusterView,
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    contact: str = "connected",
) -> ChannelPage:
    """The page of a channel that is in `view`; the rest is as for `overview_of`."""
    channel = view.facts.channels[name]
    mine = [pipeline for pipeline in view.pipelines if pipeline.ident.channel == name]
    return ChannelPage(
        name,
        channel.state.value,
        CHANNEL_LOOKS[channel.state.value],
        revision_of(channel),
        (
            *of_contact(contact),
            *(p for pipeline in mine for p in problems_with(pipeline)),
        ),
        channel_part(channel, view, environment),
        as_text(channel.definition),
        editor_link(name),
    )
