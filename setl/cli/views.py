"""Commands that look: list and status."""

from __future__ import annotations

import time
from typing import Any

import click

from arbiter.values import PipelineId
from setl.cli.cluster import channel_named, cluster_options, joined, node_status, output_option
from setl.cli.output import print_rows

_PIPELINE_COLUMNS = (
    "pipeline", "channel_state", "leader", "epoch", "state", "position", "lag", "rows_per_second",
    "pending",
)  # fmt: skip
_NODE_COLUMNS = ("node", "host", "pid", "http", "up", "answers", "leads")


@click.command("list")
@cluster_options
@output_option
def list_(zookeeper: str, root: str, output: str) -> None:
    """List the nodes, and the pipelines with who leads them."""
    with joined(zookeeper, root) as arbiter:
        nodes = arbiter.nodes()
        answers = {node.nid: node_status(node) for node in nodes}
        rows: list[dict[str, Any]] = []
        for channel in arbiter.channels():
            for pipeline in channel.definition.get("pipelines", []):
                ident = PipelineId(channel.name, pipeline["name"])
                mainstem = arbiter.mainstem(ident)
                leader = mainstem.nid if mainstem else ""
                rows.append(
                    {
                        "pipeline": str(ident),
                        "channel_state": channel.state.value,
                        "leader": leader,
                        "epoch": mainstem.epoch if mainstem else None,
                        **_figures(answers.get(leader), ident),
                    }
                )
    leads = [row["leader"] for row in rows]
    node_rows: list[dict[str, Any]] = [
        {
            "node": n.nid,
            "host": n.host,
            "pid": n.pid,
            "http": n.http,
            "up": f"{(time.time() - n.started) / 60:.0f} min",
            "answers": answers[n.nid] is not None,
            "leads": leads.count(n.nid),
        }
        for n in nodes
    ]
    if output == "table":
        print_rows(node_rows, _NODE_COLUMNS, output, title="nodes")
        print_rows(rows, _PIPELINE_COLUMNS, output, title="pipelines")
    else:
        print_rows([{"nodes": node_rows, "pipelines": rows}], (), output)


def _figures(answer: dict[str, Any] | None, ident: PipelineId) -> dict[str, Any]:
    """The leader's own figures of a pipeline; empty if it does not answer."""
    figures: dict[str, Any] = _line(answer, ident).get("figures", {})
    return figures


def _line(answer: dict[str, Any] | None, ident: PipelineId) -> dict[str, Any]:
    """What a node says of a pipeline; empty if it says nothing."""
    lines: list[dict[str, Any]] = answer["pipelines"] if answer else []
    for line in lines:
        if (line["channel"], line["pipeline"]) == (ident.channel, ident.pipeline):
            return line
    return {}


@click.command()
@click.argument("channel")
@cluster_options
@output_option
def status(channel: str, zookeeper: str, root: str, output: str) -> None:
    """Show every figure of CHANNEL: state, error, position, lag, rows, retries."""
    with joined(zookeeper, root) as arbiter:
        stored = channel_named(arbiter, channel)
        answers = {node.nid: node_status(node) for node in arbiter.nodes()}
        rows: list[dict[str, Any]] = []
        for pipeline in stored.definition.get("pipelines", []):
            ident = PipelineId(channel, pipeline["name"])
            mainstem = arbiter.mainstem(ident)
            leader = mainstem.nid if mainstem else ""
            rows.append(
                {
                    "pipeline": str(ident),
                    "channel_state": stored.state.value,
                    "leader": leader,
                    "epoch": mainstem.epoch if mainstem else None,
                    **_figures(answers.get(leader), ident),
                    "decisions": {
                        nid: _line(answer, ident)["decision"]
                        for nid, answer in answers.items()
                        if _line(answer, ident)
                    },
                }
            )
    if output != "table":
        print_rows(rows, (), output)
        return
    for row in rows:
        lines = [
            {"figure": name.replace("_", " "), "value": value}
            for name, value in row.items()
            if not isinstance(value, dict) and name != "pipeline"
        ]
        lines += [{"figure": f"{n} decided", "value": s} for n, s in row["decisions"].items()]
        print_rows(lines, ("figure", "value"), output, title=str(row["pipeline"]))
