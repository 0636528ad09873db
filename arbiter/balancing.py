"""Which pipelines change their leader so that the load is spread again. Pure.

`arbiter.turns` says who takes over what no node leads. It moves nothing that is led, so a node that
joins later leads nothing. Here the same rules say which leaderships to hand over to it: preferred
nodes first, then the least loaded for its weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from arbiter.handover import open_handovers
from arbiter.turns import ANY, Preference, able, load_factor, order, tie_break
from arbiter.values import ChannelState, Facts, PipelineId

_NO_GAIN = 1e-9  # shares are quotients of numbers that people wrote


@dataclass(frozen=True, slots=True)
class Move:
    """A leadership to hand over.

    Attributes:
        pipeline: whose.
        leader: nid that leads.
        to: nid that is to lead.
        reason: why, for people.
    """

    pipeline: PipelineId
    leader: str
    to: str
    reason: str


def moves(
    facts: Facts,
    preferences: Mapping[PipelineId, Preference],
    *,
    stay: Collection[PipelineId] = (),
    closed: Collection[str] = (),
    at_most: int | None = None,
) -> list[Move]:
    """The switchovers that spread the load, in the order in which to do them.

    No pipeline moves twice. Each move brings its pipeline to a node that it prefers to its leader.
    Or the node is preferred alike, and leads less for its weight afterwards than the leader did
    before. So there is no move without a gain. Where each node may lead each pipeline, no node
    leads more than the mean, rounded up. The same facts give the same moves.

    Args:
        facts: the cluster.
        preferences: which nodes pipelines prefer; of those not named, none.
        stay: pipelines that must not move now. They count as load of their leaders. Nor do those
            move of which a change of the leader is asked for, or whose channel does not run.
        closed: nodes that are to get nothing.
        at_most: how many moves there may be, None for as many as it takes.
    """
    spread = _Spread(facts, preferences, stay, closed)
    found: list[Move] = []
    while at_most is None or len(found) < at_most:
        move = spread.preferred() or spread.best()
        if move is None:
            break
        spread.do(move)
        found.append(move)
    return found


class _Spread:
    """Who leads what, as moves change it."""

    def __init__(
        self,
        facts: Facts,
        preferences: Mapping[PipelineId, Preference],
        stay: Collection[PipelineId],
        closed: Collection[str],
    ) -> None:
        self._preferences = preferences
        self._nodes = [
            node for _, node in sorted(facts.nodes.items()) if node.ready and node.nid not in closed
        ]
        self._leads = Counter(leader_lock.nid for leader_lock in facts.leader_locks.values())
        self._movable = {
            pipeline: leader_lock.nid
            for pipeline, leader_lock in sorted(
                facts.leader_locks.items(), key=lambda item: str(item[0])
            )
            if pipeline not in stay and leader_lock.nid in facts.nodes and _runs(facts, pipeline)
        }

    def preferred(self) -> Move | None:
        """The next move to a node that a pipeline prefers to its leader."""
        for pipeline, leader in self._movable.items():
            now = self._rank(pipeline, leader)
            better = [nid for nid in self._able(pipeline) if self._rank(pipeline, nid) < now]
            if better:
                preference = self._preference(pipeline)
                to = min(better, key=lambda nid: order(pipeline, nid, self._leads, preference))
                never = preference.weight(leader) <= 0
                why = f"{leader} is not to lead it" if never else f"it prefers {to} to {leader}"
                return Move(pipeline, leader, to, why)
        return None

    def best(self) -> Move | None:
        """The move between nodes of the same preference that gains most; None without a gain."""
        found = max(self._gains(), default=None)
        if found is None:
            return None
        _, _, name, to = found
        pipeline = next(p for p in self._movable if str(p) == name)
        leader = self._movable[pipeline]
        why = f"{leader} leads {self._leads[leader]}, {to} leads {self._leads[to]}"
        preference = self._preference(pipeline)
        if {leader, to} & set(preference.weights):
            why += f" (weights {preference.weight(leader):g} and {preference.weight(to):g})"
        return Move(pipeline, leader, to, why)

    def do(self, move: Move) -> None:
        """Count a move as done; its pipeline stays from then on."""
        self._leads[move.leader] -= 1
        self._leads[move.to] += 1
        del self._movable[move.pipeline]

    def _gains(self) -> Iterator[tuple[float, bytes, str, str]]:
        for pipeline, leader in self._movable.items():
            preference = self._preference(pipeline)
            if preference.weight(leader) <= 0:
                continue  # `preferred` has found nobody better
            now = self._leads[leader] / preference.weight(leader)
            for nid in self._able(pipeline):
                if nid == leader or self._rank(pipeline, nid) != self._rank(pipeline, leader):
                    continue
                gain = now - load_factor(nid, self._leads, preference)
                if gain > _NO_GAIN:
                    yield gain, tie_break(pipeline, nid), str(pipeline), nid

    def _able(self, pipeline: PipelineId) -> list[str]:
        return able(pipeline, self._nodes, self._preference(pipeline))

    def _rank(self, pipeline: PipelineId, nid: str) -> int:
        preference = self._preference(pipeline)
        return preference.rank(nid) if preference.weight(nid) > 0 else len(preference.prefer) + 1

    def _preference(self, pipeline: PipelineId) -> Preference:
        return self._preferences.get(pipeline, ANY)


def _runs(facts: Facts, pipeline: PipelineId) -> bool:
    channel = facts.channels.get(pipeline.channel)
    started = channel is not None and channel.state is ChannelState.START
    return started and not open_handovers(facts.signals.get(pipeline, ()))
