"""Looks at a channel's servers before it is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.values import Channel
from setl.channel.file import ChannelFile
from setl.channel.reading import resolve_and_parse
from setl.channel.text.problems import ChannelFileError
from setl.counting import count
from setl.operate.check import check_channel
from setl.operate.positions.stored import without_used_starts
from setl.systems.finding import Finding


@dataclass(frozen=True, slots=True)
class Readiness:
    """What was found of a channel that is to be started.

    Attributes:
        faults: what must be fixed first.
        unseen: what could not be looked at from here, a sentence each; nodes have their own
            variables and their own ways to the servers, so that this keeps nothing from starting.
    """

    faults: Sequence[Finding] = ()
    unseen: Sequence[str] = ()


def readiness(channel: Channel, arbiter: Arbiter, environment: Mapping[str, str]) -> Readiness:
    """Check a channel as `setl check` does, but for expressions, which need Spark.

    Args:
        channel: as the cluster keeps it.
        arbiter: says which pipelines have begun and need no `start` any more.
        environment: where its references get their values from.
    """
    try:
        file = resolve_and_parse(channel.definition, environment)
    except ChannelFileError as error:
        return Readiness(unseen=(f"not checked, since its references are not set here: {error}",))
    return readiness_of_file(file, arbiter)


def readiness_of_file(file: ChannelFile, arbiter: Arbiter) -> Readiness:
    """The same for a channel whose references are resolved."""
    file = without_used_starts(file, arbiter)
    errors = [finding for finding in check_channel(file) if finding.level == "error"]
    return Readiness(
        tuple(finding for finding in errors if not finding.unseen),
        tuple(
            f"not checked from here: {finding.where}: {finding.what}"
            for finding in errors
            if finding.unseen
        ),
    )


def refusal(name: str, faults: Sequence[Finding], done: str = "started", sql: str = "") -> str:
    """Why something is not done to a channel, and what is to be fixed, in lines.

    Args:
        name: of the channel.
        faults: what is to be fixed.
        done: what is not done to it, the end of a sentence.
        sql: what shows long statements, see `hints`.
    """
    lines = [f"channel {name} is not {done}; {len(faults)} to fix first:"]
    for fault in faults:
        ident = f" [{fault.id}]" if fault.id else ""
        ways = (f"    {line}" for line in hints(fault, sql))
        lines += [f"  {fault.where}: {fault.what}{ident}", *ways]
    return "\n".join(lines)


def hints(fault: Finding, sql: str = "") -> Sequence[str]:
    """What fixes a fault, in lines; of statements that are long, their number.

    Else what is wrong with the others has left the screen before anybody can read it.

    Args:
        fault: what is to be fixed.
        sql: what shows the statements, such as "`setl check shop.yaml -o sql`"; "" shows all here.
    """
    if not sql or not any("\n" in statement for statement in fault.statements):
        return fault.hint
    number = len(fault.statements)
    counted = count(number, "statement")
    there = f" for {fault.server}" if fault.server else ""
    them = "it" if number == 1 else "them"
    others = [line for line in fault.hint if not line.endswith(";")]
    return [*others, f"{counted}{there}; {sql} shows {them}"]
