"""The order of take-over when no node leads: preferred nodes first, then the least loaded.

Every node works this out by itself. All have the same facts and come to the same answer, without
a word between them. So several vacancies at once (a node died that led ten pipelines) are spread.
If two nodes see different facts for a moment, a pipeline may go to the second best node. That is
the worst: the leader lock's creation decides who leads, not the queue.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from arbiter.values import EVERYTHING, Facts, NodeInfo, PipelineId


@dataclass(frozen=True, slots=True)
class Preference:
    """What a pipeline wants of its leader.

    Attributes:
        prefer: nids, the most wanted first; nodes that are not named come after them.
        weights: share of pipelines that a node is to lead, relative to others; 1 if it is not
            named. 0: it never leads this pipeline.
        needs: the kind of pipeline that this is, "" if it is of none. Only nodes that serve this
            kind lead it (see `arbiter.values.NodeInfo.serves`).
    """

    prefer: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    needs: str = ""

    def weight(self, nid: str) -> float:
        """A node's weight."""
        return self.weights.get(nid, 1.0)

    def rank(self, nid: str) -> int:
        """How wanted a node is: 0 the most.

        All that are not named come at the same last position.
        """
        return (*self.prefer, nid).index(nid)

    def served_by(self, serves: Collection[str]) -> bool:
        """Whether a node that serves these kinds of pipelines is able to lead this one."""
        return not self.needs or self.needs in serves or serves == EVERYTHING

    def why_never(self, nid: str, serves: Collection[str]) -> str:
        """Why a node must not lead, as the end of a sentence about it; "" if it may."""
        if not self.served_by(serves):
            kinds = " and ".join(serves)
            return f"it leads {kinds} pipelines only, and this is a {self.needs} pipeline"
        return "its weight is 0" if self.weight(nid) <= 0 else ""


ANY = Preference()


def queues(
    vacant: Iterable[PipelineId], facts: Facts, preferences: Mapping[PipelineId, Preference]
) -> dict[PipelineId, tuple[str, ...]]:
    """For each vacant pipeline the nodes that may lead it, in the order of their turns.

    Pipelines are distributed one after another, by name. Each goes to the node that is preferred
    most. Among several of these the one with the fewest pipelines for its weight gets it, and among
    several of those a hash of both names decides (rendezvous hashing: Thaler and Ravishankar,
    1998). Without the hash the same node would get every first pipeline.
    """
    ready = [node for node in facts.nodes.values() if node.ready]
    leads = Counter(leader_lock.nid for leader_lock in facts.leader_locks.values())
    queues_by_pipeline: dict[PipelineId, tuple[str, ...]] = {}
    for pipeline in sorted(vacant, key=str):
        preference = preferences.get(pipeline, ANY)
        queue = queue_for(pipeline, ready, leads, preference)
        queues_by_pipeline[pipeline] = queue
        leads.update(queue[:1])
    return queues_by_pipeline


def queue_for(
    pipeline: PipelineId, ready: Iterable[NodeInfo], leads: Counter[str], preference: Preference
) -> tuple[str, ...]:
    """The nodes that may lead one pipeline, in the order of their turns.

    Args:
        pipeline: which.
        ready: the nodes that are ready to lead any.
        leads: how many pipelines each node leads.
        preference: which nodes the pipeline prefers.
    """
    candidates = able(pipeline, ready, preference)
    return tuple(sorted(candidates, key=lambda nid: order(pipeline, nid, leads, preference)))


def able(pipeline: PipelineId, ready: Iterable[NodeInfo], preference: Preference) -> list[str]:
    """The nids of those nodes that may lead a pipeline."""
    return [
        node.nid
        for node in ready
        if not preference.why_never(node.nid, node.serves) and pipeline not in node.not_ready
    ]


def order(
    pipeline: PipelineId, nid: str, leads: Counter[str], preference: Preference
) -> tuple[int, float, bytes, str]:
    """By which nodes that may lead a pipeline are sorted; the first one is to lead it."""
    return preference.rank(nid), load_factor(nid, leads, preference), tie_break(pipeline, nid), nid


def load_factor(nid: str, leads: Counter[str], preference: Preference) -> float:
    """What a node would lead for its weight, with one pipeline more."""
    return (leads[nid] + 1) / preference.weight(nid)


def tie_break(pipeline: PipelineId, nid: str) -> bytes:
    """What decides between nodes that are equally good for a pipeline."""
    return hashlib.blake2b(f"{pipeline}\0{nid}".encode(), digest_size=8).digest()
