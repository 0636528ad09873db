"""Removing a channel from the console."""

from __future__ import annotations

from setl.node.cluster.view import ClusterView
from setl.node.console.actions.context import ActionContext, Fields
from setl.node.stored import pipelines_into, pipelines_of
from setl.operate import questions, removing


def remove(context: ActionContext, name: str, _: Fields) -> str:
    """Remove a stopped channel; the sentence names what targets keep of it."""
    channel = context.arbiter.channels.one(name)
    removing.remove(context.arbiter, channel)
    left = removing.left_in_targets(pipelines_into(channel, "mysql"))
    words = [f"channel {name} removed"]
    if left:
        words.append(
            "Targets keep what follows. To restart under the same name, run this there, where a"
            " table exists:"
        )
    return "\n".join([*words, *left])


def question(view: ClusterView, name: str, _: Fields) -> str:
    """What is asked before."""
    pipelines = [ident.pipeline for ident in pipelines_of(view.facts.channels[name])]
    return questions.before_remove(name, pipelines)
