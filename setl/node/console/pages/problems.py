"""What is wrong in a cluster, the worst first, each with its hint. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from arbiter.values import ChannelState, PipelineId
from setl.node.cluster.view import NO_ANSWER, NO_LEADER, ClusterView, PipelineView
from setl.node.ensemble import expiring_in, lost_in
from setl.node.stored import nameless
from setl.operate.cutover.inspection import OpenCutover
from setl.operate.units import DIFFERENCES, ECHOES, count, duration
from setl.run.measured.figures import RunState

LAG_SECONDS = 60.0
"""Seconds behind that are worth a word."""

TRY_AGAIN = "Try again what failed"
"""What the button is called that starts a channel again, on all pages that have it."""

_NAMELESS = (
    "of its pipelines has no name that can be used, and no node leads it",
    "of its pipelines have no name that can be used, and no node leads them",
)

_ORDER: tuple[str, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that somebody should know.

    Attributes:
        level: ``error``, ``warning`` or ``note``.
        subject: what it is about.
        text: what is wrong, in the words of whoever found it.
        hint: what to do, "" if `text` says it.
        pipeline: the pipeline, None if it is about none.
        also: further pipelines of which the same is to be said.
        docs: the section of the documentation about it, such as ``troubleshooting.md#stopped``.
    """

    level: str
    subject: str
    text: str
    hint: str = ""
    pipeline: PipelineId | None = None
    also: tuple[PipelineId, ...] = ()
    docs: str = ""


_GUIDE = "troubleshooting.md#"

_NOT_LOOKED = Problem(
    "warning",
    "this node",
    "has only just started, and does not know yet which channels there are",
    "Wait a moment. If it stays so, see whether ZooKeeper answers from this machine",
    docs=f"{_GUIDE}zookeeper-away",
)


def problems_of(
    view: ClusterView,
    *,
    contact: str = "connected",
    looked: bool = True,
    cutovers: Mapping[PipelineId, OpenCutover] | None = None,
) -> list[Problem]:
    """Everything that is wrong, errors first; what is wrong with several pipelines once.

    Args:
        view: the cluster.
        contact: how well the node that shows it reaches the arbiter.
        looked: whether that node has looked at the cluster since it started.
        cutovers: those that were begun and not put back.
    """
    found = [
        *of_contact(contact),
        *(() if looked else (_NOT_LOOKED,)),
        *of_nodes(view),
        *_of_ensemble(view),
        *_of_stored(view),
        *_of_cutovers(cutovers or {}),
        *_together(problem for pipeline in view.pipelines for problem in problems_with(pipeline)),
    ]
    return sorted(found, key=lambda problem: _ORDER.index(problem.level))


def _together(problems: Iterable[Problem]) -> list[Problem]:
    """The same, each text once: a node that ends takes the standby from all pipelines."""
    found: dict[tuple[str, str, str], Problem] = {}
    for problem in problems:
        said = problem.level, problem.text, problem.hint
        first = found.get(said)
        if first is None:
            found[said] = problem
        elif problem.pipeline is not None:
            found[said] = replace(first, also=(*first.also, problem.pipeline))
    return list(found.values())


def problems_with(view: PipelineView) -> list[Problem]:
    """What is wrong with one pipeline."""
    return [
        Problem(level, str(view.ident), text, hint, view.ident, docs=docs)
        for level, text, hint, docs in (*_of_leadership(view), *_of_figures(view))
    ]


def of_contact(contact: str) -> Iterator[Problem]:
    """What is wrong with how well the node that shows a page reaches the arbiter.

    Args:
        contact: ``connected``, or what it is instead and why.
    """
    if contact != "connected":
        yield Problem(
            "error",
            "this node",
            f"its contact with ZooKeeper is {contact}; what is shown of the cluster may be old",
            "See whether ZooKeeper answers from this machine",
            docs=f"{_GUIDE}zookeeper-away",
        )


def of_nodes(view: ClusterView, only: str = "") -> Iterator[Problem]:
    """What is wrong with the nodes of a cluster, or with one of them."""
    for nid, answer in sorted(view.answers.items()):
        if only not in ("", nid):
            continue
        name = f"node {nid}"
        if answer is None:
            yield Problem(
                "warning",
                name,
                "does not answer over HTTP, though its session with ZooKeeper lives",
                "See whether its process is stopped or its port is closed to the other nodes",
                docs=f"{_GUIDE}node-ends",
            )
            continue
        if answer.get("problem"):
            text = f"cannot look at the cluster: {answer['problem']}"
            yield Problem("error", name, text, docs=f"{_GUIDE}zookeeper-away")
        if answer.get("lost_channels"):
            text = str(answer["lost_channels"])
            yield Problem("error", name, text, docs=f"{_GUIDE}epochs")
        if answer.get("contact") not in (None, "connected"):
            text = f"its contact with ZooKeeper is {answer['contact']}"
            yield Problem("warning", name, text, docs=f"{_GUIDE}zookeeper-away")
        if not answer.get("warm", True):
            text = "is not warm yet and cannot take over"
            yield Problem("note", name, text, docs=f"{_GUIDE}no-leader")


def _of_ensemble(view: ClusterView) -> Iterator[Problem]:
    for server in lost_in(view.answers):
        away = f"{_GUIDE}zookeeper-away"
        yield Problem("warning", "ZooKeeper", server.words, server.hint, docs=away)
    for certificate in expiring_in(view.answers, view.at):
        level = "error" if certificate.critical(view.at) else "warning"
        said = certificate.sentence(view.at)
        yield Problem(level, "ZooKeeper", said, certificate.hint, docs="security.md")


def _of_stored(view: ClusterView) -> Iterator[Problem]:
    for path, wrong in sorted(view.facts.damaged.items()):
        yield Problem("error", path, wrong, docs=f"{_GUIDE}znodes")
    for name, channel in sorted(view.facts.channels.items()):
        if number := nameless(channel):
            yield Problem(
                "error",
                f"channel {name}",
                count(number, *_NAMELESS),
                "Store its file again",
                docs=f"{_GUIDE}znodes",
            )


def _way_on(view: PipelineView) -> str:
    """What makes a pipeline go on that has stopped with an error, which says what to fix."""
    if view.state != RunState.FAILED.value:
        return ""
    return f"Once it is fixed, press “{TRY_AGAIN}”, or run `setl start {view.ident.channel}`"


def _of_cutovers(cutovers: Mapping[PipelineId, OpenCutover]) -> Iterator[Problem]:
    """Whoever began one may be gone, and an application that cannot write looks here first."""
    for ident, cutover in sorted(cutovers.items(), key=lambda each: str(each[0])):
        level = "warning" if cutover.stops_writes else "note"
        yield Problem(level, str(ident), cutover.words, pipeline=ident, docs="cutover.md")


_Found = tuple[str, str, str, str]
"""Level, text, hint and section of the documentation."""


def _of_leadership(view: PipelineView) -> Iterator[_Found]:
    if view.channel_state is ChannelState.PAUSE:
        text = "is paused: nothing is applied, and no node takes over"
        yield "note", text, "Resume its channel", ""
        return
    if view.channel_state is ChannelState.STOP:
        return
    if view.missing:
        yield "error", view.missing, "", f"{_GUIDE}no-leader"
    elif view.state == NO_LEADER:
        hint = "See below whether a node is warm and able to lead it"
        yield "error", "has no leader", hint, f"{_GUIDE}no-leader"
    if view.state == NO_ANSWER:
        yield (
            "warning",
            f"its leader {view.leader} does not answer over HTTP, so that its figures are unknown",
            "If it applies nothing, fail over",
            f"{_GUIDE}node-ends",
        )
    if view.leader and not any(standby.rank for standby in view.standbys):
        text = f"has no standby: no node takes over from {view.leader}"
        yield "warning", text, "Start a node", f"{_GUIDE}no-leader"
    for standby in view.standbys:
        if standby.not_ready and not standby.never:
            text = f"node {standby.node} could not take over: {standby.not_ready}"
            yield "warning", text, "", f"{_GUIDE}no-leader"


def _of_figures(view: PipelineView) -> Iterator[_Found]:
    figures, ident = view.figures, view.ident
    if error := figures.get("error"):
        level = "error" if view.state == "failed" else "warning"
        tried = figures.get("attempts")
        times = f" ({count(tried, 'attempt')} in a row)" if tried else ""
        docs = f"{_GUIDE}{'stopped' if level == 'error' else 'stalls'}"
        yield level, f"{view.state}{times}: {error}", _way_on(view), docs
    if stalled := figures.get("stalled"):
        yield "warning", f"stalled: {stalled}", "", f"{_GUIDE}stalls"
    if error := figures.get("no_heartbeats"):
        yield (
            "note",
            f"no heartbeats can be written to the source: {error}",
            "Until they are, lag is measured by what users write there",
            f"{_GUIDE}lag-grows",
        )
    if waiting := view.waits_for:
        yield "warning", f"waits for {waiting}", "", f"{_GUIDE}stalls"
    if (figures.get("lag") or 0.0) >= LAG_SECONDS and view.channel_state is ChannelState.START:
        text = f"is {duration(figures['lag'])} behind"
        yield "warning", text, _where_time_goes(figures), f"{_GUIDE}lag-grows"
    if echoes := figures.get("echoes_replicated"):
        yield (
            "error",
            f"{count(echoes, *ECHOES)} not dropped",
            "See what changes rows of retl.retl_mark at the source",
            f"{_GUIDE}echoes",
        )
    verification: Mapping[str, Any] = figures.get("verification") or {}
    if differences := verification.get("differences"):
        yield (
            "warning",
            f"{count(differences, *DIFFERENCES)}, says its verification",
            "Verify and repair, or wait for the next pass if it repairs",
            f"{_GUIDE}rows-differ",
        )
    if verification.get("error"):
        text = f"its verification fails: {verification['error']}"
        yield "warning", text, "", "verify.md#standing"
    if letters := figures.get("dead_letters"):
        yield (
            "warning",
            f"{count(letters, 'faulty row was', 'faulty rows were')} put aside",
            f"Look at its dead letters, or run `setl deadletter list {ident}`",
            "operate.md#faulty-rows",
        )
    if ignored := figures.get("last_ddl_ignored"):
        yield "note", f"a schema change was ignored: {ignored}", "", "schema-changes.md"


def _where_time_goes(figures: dict[str, Any] | Any) -> str:
    if figures.get("state") == RunState.SUSPENDED.value:
        return "It goes on once its leader hears of ZooKeeper again"
    if figures.get("error") or figures.get("stalled"):
        return ""  # what is in its way is told beside this; a stage that was slow before is not
    seconds: dict[str, float] = figures.get("seconds") or {}
    if not seconds:
        return ""
    most = max(seconds, key=lambda name: seconds[name])
    return f"Most time goes into {most}"


def counts_of(problems: Iterable[Problem]) -> dict[str, int]:
    """How many there are of each level."""
    counts = dict.fromkeys(_ORDER, 0)
    for problem in problems:
        counts[problem.level] += 1
    return counts
