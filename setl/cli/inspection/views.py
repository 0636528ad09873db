"""Commands that look: list, topology, history."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import EVERYTHING, ChannelState, PipelineId
from setl.cli.access.cluster import (
    channel_named,
    cluster_options,
    joined,
    output_option,
    pipeline_named,
    pipelines_named,
)
from setl.cli.inspection.standing_verification import differences_of, standing_sentence
from setl.cli.terminal.completion import complete_channel, complete_name
from setl.cli.terminal.output import console, print_rows, print_value
from setl.node.cluster.pipeline_texts import endpoints_of, load_sentence
from setl.node.cluster.view import (
    NO_ANSWER,
    ClusterView,
    PipelineView,
    Standby,
    handover_sentence,
    history_row,
    look_at,
    moment,
)
from setl.node.ensemble import expiring_in, lost_in
from setl.node.stored import nameless, pipelines_of
from setl.operate import units
from setl.operate.action_log import outcome_of
from setl.operate.cutover.inspection import open_cutovers
from setl.operate.units import ECHOES

_PIPELINE_COLUMNS = (
    "pipeline", "channel_state", "leader", "leadership", "state", "position", "lag", "behind",
    "rows_per_second", "pending", "differences",
)  # fmt: skip
_NODE_COLUMNS = ("node", "serves", "host", "pid", "http", "up", "answers", "warm", "leads")
# What a narrow terminal goes without, the first first.
_PIPELINE_MORE = ("position", "behind", "differences", "pending", "leadership", "channel_state")
_NODE_MORE = ("up", "serves", "host", "pid")
_HISTORY_COLUMNS = (
    "pipeline",
    "leadership",
    "node",
    "reason",
    "at",
    "outage",
    "redelivered",
    "error",
)
_ACTION_COLUMNS = ("at", "by", "what", "on", "outcome")
_CLEAR = "\x1b[2J\x1b[H"


@click.command("list")
@click.argument("channel", shell_complete=complete_channel, required=False)
@click.option(
    "-W", "--watch", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Show it again every so many seconds, until interrupted.",
)  # fmt: skip
@cluster_options
@output_option
def list_(channel: str | None, watch: float | None, zookeeper: str, root: str, output: str) -> None:
    """List nodes, and pipelines with their leaders.

    With CHANNEL: only its pipelines. If a leader does not answer over HTTP, its figures are
    missing.
    """
    with joined(zookeeper, root) as arbiter:
        if channel:
            channel_named(arbiter, channel)
        while True:
            view = look_at(arbiter, channel or "")
            if watch and output == "table" and console().is_terminal:
                click.echo(_CLEAR, nl=False)
            _show_list(view, cutovers_of(arbiter, view), output)
            if watch is None:
                return
            time.sleep(watch)


def cutovers_of(arbiter: Arbiter, view: ClusterView) -> Mapping[PipelineId, str]:
    """The cut-overs of pipelines, in words: one that was left alone may hold a source read-only."""
    found = open_cutovers(arbiter, [pipeline.ident for pipeline in view.pipelines])
    return {ident: cutover.words for ident, cutover in found.items()}


def _show_list(view: ClusterView, cutovers: Mapping[PipelineId, str], output: str) -> None:
    nodes = [_node_row(view, nid) for nid in sorted(view.facts.nodes)]
    rows = [
        {**pipeline_row(each), "cutover": cutovers.get(each.ident, "")} for each in view.pipelines
    ]
    if output != "table":
        damaged = dict(view.facts.damaged)
        print_rows([{"nodes": nodes, "pipelines": rows, "damaged": damaged}], (), output)
        return
    print_rows(nodes, _NODE_COLUMNS, output, title="nodes", dispensable=_NODE_MORE)
    print_rows(
        rows,
        _PIPELINE_COLUMNS,
        output,
        title="pipelines",
        dispensable=_PIPELINE_MORE,
        nothing="There is no channel yet: `setl apply FILE` stores one.",
    )
    open_cutovers = [f"{ident}: {words}" for ident, words in cutovers.items()]
    for line in (*open_cutovers, *_footers(view), *damaged_lines(view)):
        console().print(line)


def _node_row(view: ClusterView, nid: str) -> dict[str, Any]:
    node = view.facts.nodes[nid]
    return {
        "node": nid,
        "serves": "any" if node.serves == EVERYTHING else ", ".join(node.serves),
        "host": node.host,
        "pid": node.pid,
        "http": node.http,
        "up": f"{(view.at - node.started) / 60:.0f} min",
        "answers": view.answers.get(nid) is not None,
        "warm": node.ready,
        "leads": view.pipelines_led(nid),
    }


def pipeline_row(view: PipelineView) -> dict[str, Any]:
    """A pipeline under stable names, and all figures of its leader."""
    return {
        "pipeline": str(view.ident),
        "channel_state": view.channel_state.value,
        "leader": view.leader,
        "leadership": view.number or None,
        "epoch": view.epoch,
        "position": None,
        "lag": None,
        "behind": None,
        "rows_per_second": None,
        "pending": None,
        "differences": differences_of(view.figures.get("verification")),
        **view.figures,
        "state": view.state,
        "missing": view.missing,
        "handovers": [
            {
                "kind": signal.kind.value,
                "from": signal.leader,
                "to": signal.to,
                "at": moment(signal.at or None),
                "by": signal.by,
            }
            for signal in view.handovers
        ],
    }


def damaged_lines(view: ClusterView) -> list[str]:
    """What cannot be read in ZooKeeper, and nodes that fail over it, a line each."""
    troubles = [
        f"node {nid} cannot look at the cluster: {answer['problem']}"
        for nid, answer in sorted(view.answers.items())
        if answer and answer.get("problem")
    ]
    said = {str((answer or {}).get("lost_channels") or "") for answer in view.answers.values()}
    troubles += sorted(said - {""})  # once: nodes have lost the same
    troubles += [f"{each.sentence}. {each.hint}" for each in lost_in(view.answers)]
    troubles += [
        f"ZooKeeper: {each.sentence(view.at)}. {each.hint}"
        for each in expiring_in(view.answers, view.at)
    ]
    troubles += [
        f"channel {name}: {number} of its pipelines have no name that can be used, and nobody"
        " leads them; `setl apply` stores it again"
        for name, channel in sorted(view.facts.channels.items())
        if (number := nameless(channel))
    ]
    damaged = sorted(view.facts.damaged.items())
    return [*troubles, *(f"{path} {wrong}" for path, wrong in damaged)]


def _footers(view: ClusterView) -> list[str]:
    """What a person has to know beside the tables."""
    lines = [
        f"Channel {name} is paused: nothing is applied, and no node takes over;"
        f" `setl resume {name}` goes on"
        for name in sorted({pipeline.ident.channel for pipeline in view.pipelines})
        if view.facts.channels[name].state is ChannelState.PAUSE
    ]
    for pipeline in view.pipelines:
        lines += [handover_sentence(pipeline.ident, signal) for signal in pipeline.handovers]
        if pipeline.missing and pipeline.channel_state is not ChannelState.STOP:
            lines.append(f"{pipeline.ident} {pipeline.missing}")
        if pipeline.state == NO_ANSWER:
            lines.append(
                f"{pipeline.ident}: its leader {pipeline.leader} does not answer over HTTP, so"
                " its figures are not known"
            )
        lines += _load_lines(pipeline)
        lines += _verification_lines(pipeline)
        number = pipeline.figures.get("dead_letters")
        if number:
            counted = units.count(number, "faulty row was", "faulty rows were")
            lines.append(
                f"{pipeline.ident}: {counted} put aside; `setl deadletter list {pipeline.ident}`"
                f" shows {'it' if number == 1 else 'them'}"
            )
        if ignored := pipeline.figures.get("last_ddl_ignored"):
            lines.append(f"{pipeline.ident}: a schema change was ignored: {ignored}")
        if pipeline.waits_for:
            lines.append(f"{pipeline.ident} waiting_for: {pipeline.waits_for}")
        for figure in ("stalled", "error"):
            if pipeline.figures.get(figure):
                lines.append(f"{pipeline.ident} {figure}: {pipeline.figures[figure]}")
        if echoes := pipeline.figures.get("echoes_replicated"):
            lines.append(
                f"{pipeline.ident}: {units.count(echoes, *ECHOES)} not dropped;"
                " see what changes rows of retl.retl_mark at the source"
            )
    return lines


def _load_lines(pipeline: PipelineView) -> list[str]:
    """What a load of whole tables does that is not over."""
    load = pipeline.figures.get("table_load")
    if not load or load["state"] in ("done", "cancelled", "failed"):
        return []
    return [f"{pipeline.ident} loads tables: {load_sentence(load)}"]


def _verification_lines(pipeline: PipelineView) -> list[str]:
    """What standing verification says, if somebody has to know it."""
    verification = pipeline.figures.get("verification")
    if not verification or not (
        verification["differences"] or verification["error"] or verification["tables_left_out"]
    ):
        return []
    return [f"{pipeline.ident} is verified: {standing_sentence(verification)}"]


@click.command()
@click.argument("channel", shell_complete=complete_channel, required=False)
@cluster_options
@output_option
def topology(channel: str | None, zookeeper: str, root: str, output: str) -> None:
    """Show who leads what, and who would be next.

    Standbys are in the order in which they would take over.
    """
    with joined(zookeeper, root) as arbiter:
        if channel:
            channel_named(arbiter, channel)
        view = look_at(arbiter, channel or "")
    if output != "table":
        print_value(_topology_rows(view), output)
        return
    from rich.tree import Tree  # noqa: PLC0415

    for name in sorted(view.facts.channels):
        if channel and name != channel:
            continue
        stored = view.facts.channels[name]
        tree = Tree(f"{name}  {stored.state.value}")
        for pipeline in view.pipelines:
            if pipeline.ident.channel == name:
                source, target = endpoints_of(stored, pipeline.ident.pipeline)
                branch = tree.add(f"{pipeline.ident.pipeline}: {source} → {target}")
                for line in _standing_lines(pipeline):
                    branch.add(line)
        console().print(tree)


def _standing_lines(view: PipelineView) -> list[str]:
    leader = f"{view.leader}  leads, {view.leadership}, {view.state}"
    return [
        leader if view.leader else f"no node leads: {view.state}",
        *([view.missing] if view.missing else []),
        *(f"{standby.node}  {standby_words(standby)}" for standby in view.standbys),
    ]


def standby_words(standby: Standby) -> str:
    """How a standby stands, in words."""
    words = ["warm" if standby.warm else "not warm yet"]
    if standby.preferred:
        words.append("preferred")
    if standby.never:
        words.append(f"never leads: {standby.never}")
    elif standby.not_ready:
        words.append(f"cannot lead: {standby.not_ready}")
    elif standby.rank:
        words.append(f"number {standby.rank} to take over")
    return "standby, " + ", ".join(words)


def topology_line(view: PipelineView) -> str:
    """One pipeline's topology in one line."""
    return f"{view.ident}: " + "; ".join(_standing_lines(view))


def _topology_rows(view: ClusterView) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for pipeline in view.pipelines:
        ident = pipeline.ident
        source, target = endpoints_of(view.facts.channels[ident.channel], ident.pipeline)
        rows.append(
            {
                "pipeline": str(ident),
                "channel_state": pipeline.channel_state.value,
                "source": source,
                "target": target,
                "leader": pipeline.leader,
                "leadership": pipeline.number or None,
                "epoch": pipeline.epoch,
                "state": pipeline.state,
                "missing": pipeline.missing,
                "standbys": [
                    {
                        "node": standby.node,
                        "warm": standby.warm,
                        "turn": standby.rank,
                        "preferred": standby.preferred,
                        "never": bool(standby.never),
                        "not_ready": standby.not_ready,
                    }
                    for standby in pipeline.standbys
                ],
            }
        )
    return rows


@click.command()
@click.argument("name", shell_complete=complete_name, required=False, metavar="[CHANNEL|PIPELINE]")
@click.option(
    "--actions", is_flag=True, help="What operators did, from commands, HTTP and consoles."
)
@cluster_options
@output_option
def history(name: str | None, actions: bool, zookeeper: str, root: str, output: str) -> None:
    """Show past leaderships, the newest last.

    outage: how long nobody had applied changes before; two bounds where nobody can know exactly.
    redelivered: rows that were applied again. Both are known a moment after a leadership has begun,
    and not always. error: what the leadership failed with.
    """
    if actions:
        _show_actions(name, zookeeper, root, output)
        return
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
        wanted = (
            pipelines_named(facts, name)
            if name
            else [p for _, c in sorted(facts.channels.items()) for p in pipelines_of(c)]
        )
        # Each pipeline's leaderships are in the order of their epochs, whatever its nodes' clocks
        # say; between pipelines there is nothing but time.
        found = [
            [(item.at, ident, item) for item in arbiter.history.all(ident)] for ident in wanted
        ]
        merged = heapq.merge(*found, key=lambda one: one[0])
        rows = [history_row(ident, item) for _, ident, item in merged]
    if output == "table":
        for row in rows:
            if row["outage_least"] is not None:
                row["outage"] = units.between(row["outage_least"], row["outage"])
    print_rows(
        rows,
        _HISTORY_COLUMNS,
        output,
        dispensable=("leadership", "redelivered", "outage"),
        nothing="Nobody has led yet.",
    )


def _show_actions(name: str | None, zookeeper: str, root: str, output: str) -> None:
    """The log of actions, or what of it is about a channel, a pipeline or its channel."""
    with joined(zookeeper, root) as arbiter:
        wanted = {name}
        if name is not None and name not in (facts := arbiter.facts()).channels:
            ident = pipeline_named(facts, name)
            wanted = {str(ident), ident.channel}
        stored = arbiter.actions.all()
    rows = [
        {
            "at": moment(action.at),
            "by": action.by,
            "what": action.what,
            "on": action.on,
            "outcome": outcome_of(action),
            "ended": moment(action.ended or None),
        }
        for action in stored
        if name is None or action.on in wanted or action.on.partition("/")[0] == name
    ]
    print_rows(rows, _ACTION_COLUMNS, output, nothing="Nothing has been done yet.")
