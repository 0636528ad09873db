"""What the page of one node shows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from setl.node.cluster.view import ClusterView, PipelineView
from setl.node.console.pages.overview import NodeRow, PipelineRow, node_row, pipeline_row
from setl.node.console.pages.pipeline import Figure
from setl.node.console.pages.problems import Problem, of_contact, of_nodes
from setl.operate import units

_MEMORY = (
    ("driver", "driver", "the node's own process: batches that wait"),
    ("jvm", "JVM", "of the Spark session"),
    ("workers", "workers", "Python processes: rows that are being transformed and loaded"),
    ("worker_most", "largest worker", "counted among the workers"),
)


@dataclass(frozen=True, slots=True)
class PipelineLine:
    """A pipeline that a node leads, or would lead.

    Attributes:
        row: the pipeline, as its leader has it.
        role: what the node is to it.
        decision: what the node decided last about it.
    """

    row: PipelineRow
    role: str
    decision: str


@dataclass(frozen=True, slots=True)
class NodePage:
    """The page of a node.

    Attributes:
        row: as the table of nodes has it.
        link: its own HTTP address, "" if it has none.
        problems: what is wrong with it.
        figures: what it is now.
        memory: what its processes hold; empty if it does not answer.
        pipelines: those it leads first, then those it could take over.
    """

    row: NodeRow
    link: str
    problems: tuple[Problem, ...]
    figures: tuple[Figure, ...]
    memory: tuple[Figure, ...]
    pipelines: tuple[PipelineLine, ...]


def node_page(view: ClusterView, nid: str, here: str, *, contact: str = "connected") -> NodePage:
    """The page of a node that is in `view`.

    Args:
        view: the cluster.
        nid: the node.
        here: the node that shows the page.
        contact: how well that one reaches the arbiter.
    """
    row, said = node_row(view, nid, here), view.answers.get(nid) or {}
    memory: Mapping[str, int] = said.get("memory") or {}
    http = view.facts.nodes[nid].http
    return NodePage(
        row,
        http if http.startswith("http") else "",
        (*of_contact(contact), *of_nodes(view, nid)),
        tuple(_figures(view, nid, row, said)),
        tuple(Figure(name, units.size(memory.get(key, 0)), note) for key, name, note in _MEMORY)
        if memory
        else (),
        tuple(sorted(_lines(view, nid), key=lambda line: (line.role != _LEADS, line.row.name))),
    )


_LEADS = "leads"


def _figures(
    view: ClusterView, nid: str, row: NodeRow, said: Mapping[str, Any]
) -> Iterator[Figure]:
    node = view.facts.nodes[nid]
    yield Figure("ZooKeeper", row.contact)
    yield Figure("ready", "warm" if row.warm else "warming up", f"serves {row.serves}")
    yield Figure("leads", units.count(row.leads), "pipelines")
    yield Figure("memory", row.memory, "all its processes")
    threads = said.get("threads") or None
    yield Figure("threads", units.count(threads), f"of process {node.pid}" if node.pid else "")
    spark: Mapping[str, Any] = said.get("spark") or {}
    if spark.get("master"):
        answered = spark.get("answered")
        age = "has not answered yet"
        if answered is not None:
            age = f"answered {units.duration(answered)} ago"
        yield Figure("Spark", str(spark["master"]), age)
    disk: Mapping[str, Any] = said.get("disk") or {}
    if disk.get("size"):
        free = f"of {units.size(disk['size'])} free, {disk.get('folder', '')}"
        yield Figure("disk", units.size(disk.get("free")), free)


def _lines(view: ClusterView, nid: str) -> Iterator[PipelineLine]:
    for pipeline in view.pipelines:
        role = _role(pipeline, nid)
        if role:
            decision = str(pipeline.decisions.get(nid) or "")
            yield PipelineLine(pipeline_row(pipeline), role, decision)


def _role(pipeline: PipelineView, nid: str) -> str:
    if pipeline.leader == nid:
        return _LEADS
    for standby in pipeline.standbys:
        if standby.node != nid:
            continue
        if why := standby.never or standby.not_ready:
            return f"could not lead: {why}"
        return f"standby {standby.rank}" if standby.rank else "not warm"
    return ""
