"""Commands about alarms: list, test, silence."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import AlarmSender, NodeInfo
from setl.alarms.alarm_state import Silence
from setl.alarms.asking import (
    ask_for_test,
    end_silence,
    silence,
    silences_at,
    stored_alarms,
)
from setl.alarms.deciding import firing
from setl.alarms.guide import section_of
from setl.alarms.rules import RULES
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    channel_named,
    cluster_options,
    joined,
    output_option,
    requester,
    timeout_option,
)
from setl.cli.terminal.output import console, print_rows, print_value
from setl.cli.terminal.times import parse_time
from setl.counting import count
from setl.node.alarm_status import failing_in
from setl.node.cluster.view import look_at, moment
from setl.node.console.links import docs_link
from setl.node.stored import pipelines_of
from setl.waiting import polling

_COLUMNS = ("severity", "rule", "about", "lasts", "text", "last_sent")
_SILENCE_COLUMNS = ("id", "about", "rule", "until", "by", "reason")
_POLL = 0.5


@click.group()
def alarm() -> None:
    """Show alarms, try their receivers, or silence them (list, test, silence)."""


@alarm.command("list")
@click.option("--silences", is_flag=True, help="The silences, not the alarms.")
@cluster_options
@output_option
def list_(silences: bool, zookeeper: str, root: str, output: str) -> None:
    """List the alarms that are raised, the worst first."""
    with joined(zookeeper, root) as arbiter:
        now = time.time()
        quiet = silences_at(arbiter, now)
        if silences:
            print_rows(
                [_silence_row(each) for each in quiet],
                _SILENCE_COLUMNS,
                output,
                nothing="Nothing is silenced.",
            )
            return
        alarm_state, sender = stored_alarms(arbiter), arbiter.alarms.sender()
        nodes = arbiter.facts().nodes
    rows = [
        {
            "severity": each.severity,
            "rule": each.key.rule,
            "about": each.key.about,
            "channel": each.key.channel,
            "pipeline": each.key.pipeline,
            "subject": each.key.subject,
            "since": moment(each.since),
            "lasts": each.lasts(now),
            "text": each.text,
            "hint": each.hint,
            "docs": section_of(each.key.rule),
            "last_sent": "silenced"
            if any(s.covers(each.key, now) for s in quiet)
            else moment(each.last_sent_at or None),
        }
        for each in firing(alarm_state.alarms)
    ]
    print_rows(rows, _COLUMNS, output, nothing="No alarm is raised.")
    if output != "table":
        return
    for line in _advice(rows, _docs_address(nodes, sender)):
        console().print(line, soft_wrap=True)  # terminals open an address that is whole
    if sender is None:
        console().print("No node sends alarms: none is running, or none is warm yet.")
        return
    whom = ", ".join(sender.receivers) or "nobody: its configuration names no receiver"
    console().print(f"{sender.nid} sends alarms to {whom}.")
    if alarm_state.notices:
        waiting = (
            count(len(alarm_state.notices), "message waits", "messages wait") + " for a receiver"
        )
        console().print(f"{waiting}; `setl alarm test` shows which")


def _docs_address(nodes: Mapping[str, NodeInfo], sender: AlarmSender | None) -> str:
    """The address of the docs on a node, that of the sender if it has one; "" if none has."""
    first = sender.nid if sender else ""
    by_choice = sorted(nodes.values(), key=lambda node: (node.nid != first, node.nid))
    return next((f"{node.http.rstrip('/')}{docs_link('')}" for node in by_choice if node.http), "")


def _advice(rows: Sequence[Mapping[str, Any]], address: str) -> Iterator[str]:
    """What to do about each rule's alarms, and where the docs say more; once for each rule."""
    for rule in dict.fromkeys(row["rule"] for row in rows):
        hints = dict.fromkeys(row["hint"] for row in rows if row["rule"] == rule and row["hint"])
        section = section_of(rule)
        where = f"{address}{section}" if address else f"{section} in the docs"
        more = [f"see {where}"] if section else []
        if said := "; ".join([*hints, *more]):
            yield f"{rule}: {said}"


@alarm.command()
@timeout_option
@cluster_options
@output_option
def test(timeout: float, zookeeper: str, root: str, output: str) -> None:
    """Send a message to all receivers, and wait until they have it.

    Exit status 1 if one does not take it in time.
    """
    ident = secrets.token_hex(16)
    with joined(zookeeper, root) as arbiter:
        sender = arbiter.alarms.sender()
        if sender is None:
            raise AnswerNo("no node sends alarms: none is running, or none is warm yet")
        if not sender.receivers:
            raise AnswerNo(
                f"{sender.nid} sends alarms, and its configuration names no receiver; see `alarms:`"
                " of `setl node --config`"
            )
        with acting(arbiter, "alarm test", "alarms"):
            ask_for_test(arbiter, ident, requester().by, time.time())
        missing = _wait(arbiter, ident, sender.receivers, timeout)
        failing = failing_in(look_at(arbiter)) if missing else dict[str, str]()
    rows: Mapping[str, Any] = {
        "node": sender.nid,
        "receivers": {
            name: "delivered" if name not in missing else failing.get(name, "not delivered in time")
            for name in sender.receivers
        },
    }
    if output == "table":
        for name, outcome in rows["receivers"].items():
            console().print(f"{name}: {outcome}")
    else:
        print_value(rows, output)
    if missing:
        have = "has" if len(missing) == 1 else "have"
        receivers = count(len(sender.receivers), "receiver")
        raise AnswerNo(f"{len(missing)} of {receivers} {have} no message")


@alarm.command("silence")
@click.argument("name", required=False, metavar="[CHANNEL[/PIPELINE]]")
@click.option("--rule", type=click.Choice(RULES), metavar="RULE", help="Only of this rule.")
@click.option(
    "--until",
    default="+2h",
    show_default=True,
    metavar="TIME",
    help="When it ends: +30m, +2h, +1d, or a time.",
)
@click.option("--reason", default="", help="Why, for others.")
@click.option("--end", metavar="ID", help="End a silence; `setl alarm list --silences` has the id.")
@cluster_options
def silence_(  # noqa: PLR0917 - click passes options by name
    name: str | None,
    rule: str | None,
    until: str,
    reason: str,
    end: str | None,
    zookeeper: str,
    root: str,
) -> None:
    """Tell nobody of alarms for a while: of a channel, a pipeline, or everything.

    What is raised meanwhile is still listed, and is told afterwards if it lasts.
    """
    now = time.time()
    with joined(zookeeper, root) as arbiter:
        if end is not None:
            with acting(arbiter, "alarm silence --end", end):
                ended = end_silence(arbiter, end, now)
            if ended is None:
                raise click.UsageError(f"there is no silence {end!r}")
            console().print(f"The silence of {ended.about} is over.")
            return
        channel, _, pipeline = (name or "").partition("/")
        if channel:
            known = [ident.pipeline for ident in pipelines_of(channel_named(arbiter, channel))]
            if pipeline and pipeline not in known:
                raise click.UsageError(f"{channel} has no pipeline {pipeline!r}")
        at = parse_time(until, now)
        if at <= now:
            raise click.UsageError("--until lies in the past")
        wanted = Silence(
            secrets.token_hex(3), at, channel, pipeline, rule or "", requester().by, reason
        )
        with acting(arbiter, "alarm silence", name or "alarms"):
            silence(arbiter, wanted, now)
    console().print(
        f"Nothing is told of {wanted.about} until {moment(at)} (silence {wanted.id}).",
    )


def _wait(
    arbiter: Arbiter, ident: str, receivers: tuple[str, ...], timeout: float
) -> tuple[str, ...]:
    """The receivers that do not have a message in time."""
    missing: tuple[str, ...] = ()
    for _ in polling(timeout, _POLL):
        found = next((n for n in stored_alarms(arbiter).notices if n.id == ident), None)
        missing = () if found is None else tuple(set(receivers) - set(found.delivered))
        if not missing:
            break
    return missing


def _silence_row(each: Silence) -> dict[str, Any]:
    return {
        "id": each.id,
        "about": each.about,
        "channel": each.channel,
        "pipeline": each.pipeline,
        "rule": each.rule,
        "until": moment(each.until),
        "by": each.by,
        "reason": each.reason,
    }
