"""The subcommands of `setl`: their names, where each is, and what it does in a few words.

A command is imported when it is used, so that the list of all of them, and the help or the refusal
of one, need not wait for libraries that only another needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

import click

from setl import garbage_collection


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is not imported yet.

    Attributes:
        name: as it is typed.
        location: ``module:attribute`` of the click command, the module below `setl.cli`.
        short: the first sentence of its help; a test compares the two.
        tidies_up: whether it puts things in order when it is interrupted, however long that takes.
    """

    name: str
    location: str
    short: str
    tidies_up: bool = False

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.location.partition(":")
        with garbage_collection.paused():
            command: click.Command = getattr(import_module(f"setl.cli.{module}"), attribute)
        return command


SECTIONS: Mapping[str, tuple[Entry, ...]] = {
    "Run": (
        Entry("node", "nodes.process:node", "Run a node.", tidies_up=True),
        Entry(
            "init",
            "channels.initialising:init",
            "Write a commented channel file and node configuration.",
        ),
        Entry("relay", "nodes.process:relay", "Run a relay.", tidies_up=True),
        Entry("check", "channels.checking:check", "Check a channel FILE and the servers it names."),
        Entry("plan", "channels.planning:plan", "Say what applying a channel FILE would change."),
        Entry(
            "completion",
            "terminal.completion:completion",
            "Print the script that lets SHELL complete commands.",
        ),
        Entry("apply", "channels.stored:apply", "Store a channel FILE in the cluster."),
        Entry(
            "epoch",
            "leadership.epochs:epoch",
            "Show epochs, or raise them after ZooKeeper was set up again.",
        ),
    ),
    "Look": (
        Entry("list", "inspection.views:list_", "List nodes, and pipelines with their leaders."),
        Entry(
            "topology", "inspection.views:topology", "Show who leads what, and who would be next."
        ),
        Entry(
            "status",
            "inspection.status:status",
            "Show how pipelines do: what is wrong, lag, rates.",
        ),
        Entry("history", "inspection.views:history", "Show past leaderships, the newest last."),
        Entry(
            "peek",
            "streams.peeking:peek",
            "Print the records of SOURCE, and change nothing anywhere.",
        ),
        Entry(
            "verify", "rows.verifying:verify", "Compare source and target, and name what differs."
        ),
        Entry(
            "wait",
            "streams.waiting:wait",
            "Wait until the target has all up to a position of the source.",
        ),
        Entry(
            "conflicts",
            "rows.conflicts:conflicts",
            "Show rows that both sites have changed (list, trim).",
        ),
        Entry(
            "alarm",
            "inspection.alarm:alarm",
            "Show alarms, try their receivers, or silence them (list, test, silence).",
        ),
        Entry(
            "doctor",
            "inspection.doctor:doctor",
            "Gather what a report of a fault needs, without secrets.",
        ),
    ),
    "Channels": (
        Entry("start", "channels.states:start", "Start CHANNEL, or try again what failed in it."),
        Entry("pause", "channels.states:pause", "Pause CHANNEL: load no more, keep the leaders."),
        Entry("resume", "channels.states:resume", "Let a paused CHANNEL go on."),
        Entry("stop", "channels.states:stop", "Stop CHANNEL: load no more, give leaderships up."),
        Entry(
            "show", "channels.stored:show", "Print the file of CHANNEL, as the cluster keeps it."
        ),
        Entry("remove", "channels.stored:remove", "Remove a stopped CHANNEL from the cluster."),
    ),
    "Pipelines": (
        Entry(
            "switchover",
            "leadership.handing_over:switchover",
            "Hand PIPELINE over to another node, in order.",
        ),
        Entry(
            "rebalance",
            "leadership.rebalancing:rebalance",
            "Spread the leaderships over the nodes again, in order.",
        ),
        Entry(
            "failover",
            "leadership.handing_over:failover",
            "Let another node lead PIPELINE, leader or not.",
        ),
        Entry(
            "cutover",
            "leadership.cutting_over:cutover",
            "Make a pipeline's source read-only and its target complete.",
            tidies_up=True,
        ),
        Entry(
            "signal",
            "leadership.signals:signal",
            "Ask the leader of PIPELINE for a rollback or restart.",
        ),
        Entry(
            "position",
            "streams.positions:position",
            "Show positions, or move a stopped pipeline (show, reset).",
        ),
        Entry(
            "deadletter",
            "rows.deadletter:deadletter",
            "Show faulty rows put aside, load them again, or drop them.",
        ),
        Entry(
            "load",
            "rows.loading:load",
            "Load the rows of tables while the stream goes on.",
        ),
        Entry(
            "resend",
            "rows.loading:resend",
            "Send rows of a table again, as the source has them now.",
        ),
    ),
}


def entries() -> Iterator[Entry]:
    """All commands, in the order of the help."""
    for section in SECTIONS.values():
        yield from section
