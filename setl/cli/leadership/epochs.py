"""Commands about epochs: show those of ZooKeeper and of targets, and raise them."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import Facts, LeaderLock, PipelineId
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    channel_named,
    cluster_options,
    joined,
    output_option,
    pipeline_config,
)
from setl.cli.terminal.completion import complete_channel
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.output import console, print_rows, print_value
from setl.errors import ConfigurationError
from setl.node.stored import pipelines_of
from setl.operate.positions.epochs import KnownEpoch, known_epoch, refuses, verdict

_COLUMNS = ("pipeline", "leader", "epoch", "target_epoch", "verdict")
_EXIT_NO = 1
_EXIT_UNREACHABLE = 3


@dataclass(frozen=True, slots=True)
class _Line:
    """A pipeline's leadership beside what its target knows."""

    ident: PipelineId
    leader_lock: LeaderLock | None
    known: KnownEpoch
    verdict: str


@dataclass(frozen=True, slots=True)
class _Raised:
    """The result of raising: the base before and after, the next epoch, who was deposed."""

    before: int
    base: int
    next: int
    deposed: tuple[str, ...]


@click.group()
def epoch() -> None:
    """Show epochs, or raise them after ZooKeeper was set up again."""


@epoch.command()
@click.argument("channel", shell_complete=complete_channel, required=False)
@cluster_options
@output_option
def show(channel: str | None, zookeeper: str, root: str, output: str) -> None:
    """Show epochs beside what targets know, and whether they fit.

    A target refuses epochs below the one it knows. Exit status 1: a target would refuse a leader;
    3: a target did not answer. The channels' secrets must be in this environment.
    """
    with joined(zookeeper, root) as arbiter:
        if channel:
            channel_named(arbiter, channel)
        base, coming = arbiter.epochs.base(), arbiter.epochs.next()
        lines = _lines(arbiter, arbiter.facts(), coming, channel or "")
    rows = [_row(line) for line in lines]
    if output == "table":
        console().print(f"base {base}, next epoch {coming} or higher")
        print_rows(rows, _COLUMNS, output)
    else:
        print_value({"base": base, "next": coming, "pipelines": rows}, output)
    if any(line.verdict and not line.known.problem for line in lines):
        sys.exit(_EXIT_NO)
    if any(line.known.problem for line in lines):
        sys.exit(_EXIT_UNREACHABLE)


@epoch.command("raise")
@click.option(
    "--to", type=click.IntRange(min=0), metavar="EPOCH", help="The least epoch that comes next."
)
@yes_option
@cluster_options
@output_option
def raise_(to: int | None, yes: bool, zookeeper: str, root: str, output: str) -> None:
    """Make later epochs higher than all that targets know.

    Use it when ZooKeeper was set up again and counts from the beginning. Leaders whose epochs are
    too low are deposed, since their targets refuse them anyway. The next leader gets a higher
    epoch. The base is never lowered.
    """
    with joined(zookeeper, root) as arbiter:
        coming = arbiter.epochs.next()
        lines = _lines(arbiter, arbiter.facts(), coming, "")
        wanted = _wanted(lines, to)
        low = [line for line in lines if line.leader_lock and refuses(line.known, line.leader_lock)]
        before = arbiter.epochs.base()
        needed = coming <= wanted
        if needed or low:
            reported = (
                f"set the base of epochs to {wanted}" if needed else "leave the base as it is"
            )
            names = ", ".join(f"{x.leader_lock.nid} of {x.ident}" for x in low if x.leader_lock)
            confirm(
                f"Are you sure you want to {reported}" + (f", and depose {names}?" if low else "?"),
                yes=yes,
            )
        with acting(arbiter, "epoch raise", str(wanted)):
            after = arbiter.epochs.raise_base(wanted) if needed else before
            for line in low:
                if line.leader_lock is not None:
                    arbiter.leader_locks.depose(line.ident, line.leader_lock)
        coming = arbiter.epochs.next()
    _print(_Raised(before, after, coming, tuple(str(line.ident) for line in low)), output)


def _wanted(lines: list[_Line], to: int | None) -> int:
    """What later epochs have to be above."""
    highest = max((line.known.epoch for line in lines), default=0)
    if to is not None and to < highest:
        raise AnswerNo(f"refused: a target knows epoch {highest} already, which is above {to}")
    silent = [f"  {line.ident}: {line.known.problem}" for line in lines if line.known.problem]
    if silent and to is None:
        raise AnswerNo(
            "\n".join(
                ["refused: it is not known how high epochs have to be; --to says it", *silent]
            )
        )
    return highest if to is None else to


def _print(raised: _Raised, output: str) -> None:
    changed = raised.base > raised.before
    if output != "table":
        outcome = "done" if changed or raised.deposed else "unchanged"
        print_value({**asdict(raised), "deposed": list(raised.deposed), "outcome": outcome}, output)
        return
    say = console()
    if changed:
        what = f"base raised from {raised.before} to {raised.base}"
    else:
        what = f"nothing to raise: the base is {raised.base}"
    say.print(f"{what}; next epoch {raised.next} or higher")
    for name in raised.deposed:
        say.print(f"{name}: its leader was deposed; the next one gets a higher epoch")


def _lines(arbiter: Arbiter, facts: Facts, coming: int, channel: str) -> list[_Line]:
    lines: list[_Line] = []
    for name, stored in sorted(facts.channels.items()):
        for ident in pipelines_of(stored) if not channel or name == channel else ():
            try:
                known = known_epoch(pipeline_config(stored, ident), name, arbiter)
            except ConfigurationError as error:
                known = KnownEpoch(problem=str(error))
            leader_lock = facts.leader_locks.get(ident)
            lines.append(_Line(ident, leader_lock, known, verdict(known, leader_lock, coming)))
    return lines


def _row(line: _Line) -> dict[str, Any]:
    return {
        "pipeline": str(line.ident),
        "leader": line.leader_lock.nid if line.leader_lock else "",
        "epoch": line.leader_lock.epoch if line.leader_lock else None,
        "target_epoch": None if line.known.problem else line.known.epoch or None,
        "ok": not line.verdict,
        "verdict": line.verdict or "ok",
    }
