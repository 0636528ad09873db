"""Spreading leaderships over the nodes again, from the console: what is asked before.

It is carried out by `setl rebalance`, in a process of its own, see
`setl.node.console.actions.long_work`.
"""

from __future__ import annotations

from collections.abc import Mapping

from arbiter.requests import Refused
from setl.node.cluster.rebalancing import Rebalance, rebalance
from setl.node.cluster.view import look_at
from setl.node.console.actions.context import ActionContext, Fields, Preview
from setl.operate import questions

CLUSTER = "the cluster"
"""What is spread, in forms and in the log of actions."""


def look(context: ActionContext, _: str, __: Fields) -> Preview:
    """Which switchovers there would be; refused if there is none."""
    plan = rebalance(context.arbiter, look_at(context.arbiter))
    if not plan.moves:
        raise Refused("\n".join([f"nothing to do: {_counts(plan.before)}", *_left_alone(plan)]))
    lines = [
        questions.before_rebalance(len(plan.moves)),
        *(f"{move.pipeline}: {move.leader} → {move.to}, {move.reason}" for move in plan.moves),
        *_left_alone(plan),
        f"now: {_counts(plan.before)}",
        f"then: {_counts(plan.after)}",
    ]
    return Preview("\n".join(lines), {})


def _left_alone(plan: Rebalance) -> list[str]:
    stays = sorted((str(ident), why) for ident, why in plan.stays.items())
    return [
        *(f"{ident} stays where it is: {why}" for ident, why in stays),
        *(f"node {nid} gets nothing: it {why}" for nid, why in sorted(plan.closed.items())),
    ]


def _counts(leads: Mapping[str, int]) -> str:
    return ", ".join(f"{nid} leads {count}" for nid, count in leads.items()) or "no node lives"
