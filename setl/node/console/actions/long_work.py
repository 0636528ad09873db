"""What takes long: the console has a process of its own carry out the command of the same name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arbiter.requests import Refused
from setl.node.console.actions import cutting_over, rebalancing
from setl.node.console.actions.catalogue import About, Action, look_before_repair
from setl.node.console.actions.context import ActionContext, Fields, pipeline_of


@dataclass(frozen=True, slots=True)
class LongWork:
    """Something that a command does.

    Attributes:
        action: as forms and pages know it.
        arguments: of the command line for what it is about, without ``setl``; it prints JSON.
    """

    action: Action
    arguments: Callable[[str], Sequence[str]]


def _not_here(_: ActionContext, on: str, __: Fields) -> str:
    raise Refused(f"what takes long on {on} is done by a process of its own")


def _verify(*options: str) -> Callable[[str], Sequence[str]]:
    def arguments(on: str) -> Sequence[str]:
        ident = pipeline_of(on)
        return ["verify", ident.channel, "--pipeline", ident.pipeline, "-o", "json", *options]

    return arguments


def _cutover(option: str) -> Callable[[str], Sequence[str]]:
    return lambda on: ["cutover", on, "-o", "json", option]


def _rebalance(_: str) -> Sequence[str]:
    return ["rebalance", "-o", "json", "--yes"]


LONG_WORK: Mapping[str, LongWork] = {
    "verify": LongWork(Action("Verify", _not_here), _verify()),
    "repair": LongWork(
        Action("Verify and repair", _not_here, look=look_before_repair),
        _verify("--repair", "--yes"),
    ),
    "cutover --dry-run": LongWork(Action("Plan a cut-over", _not_here), _cutover("--dry-run")),
    "cutover": LongWork(
        Action("Cut over", _not_here, look=cutting_over.look_before), _cutover("--yes")
    ),
    "rebalance": LongWork(
        Action("Spread the load", _not_here, about=About.CLUSTER, look=rebalancing.look), _rebalance
    ),
}
"""By the name that forms and the log of actions use."""
