"""Makes the plan of a channel file, from what the cluster keeps and what servers have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.values import Channel
from setl.channel.file import ChannelFile
from setl.channel.reading import resolve_and_parse
from setl.channel.text.problems import ChannelFileError
from setl.operate.applying import revision_of, stored_channel
from setl.operate.check import check_channel
from setl.operate.plan import Change, Plan, plan_of
from setl.operate.positions.used_starts import without_used_starts
from setl.operate.stranded_dead_letters import stranded_letters
from setl.systems.finding import Finding
from setl.systems.pipeline_check import ExpressionCheck


def make_plan(
    arbiter: Arbiter,
    definition: Mapping[str, Any],
    channel: ChannelFile,
    environment: Mapping[str, str],
    *,
    expressions: ExpressionCheck | None = None,
    ask_servers: bool = True,
) -> Plan:
    """The plan of a channel file. Nothing is changed anywhere.

    Args:
        arbiter: keeps the channel as it is.
        definition: the channel as it is to be, as it is written.
        channel: the same, its references resolved.
        environment: where references of the stored definition get their values from.
        expressions: see `check_channel`.
        ask_servers: whether the servers that it names are asked.
    """
    seen = stored_channel(arbiter, channel.channel)
    findings: Sequence[Finding] = ()
    stranded: Sequence[Change] = ()
    if ask_servers:
        findings = check_channel(without_used_starts(channel, arbiter), expressions=expressions)
        before, _ = _read(seen, environment)
        stranded = tuple(stranded_letters(before, channel)) if before is not None else ()
    found = compared(seen, definition, channel, environment, findings)
    return replace(found, changes=(*found.changes, *stranded))


def compared(
    seen: Channel | None,
    definition: Mapping[str, Any],
    channel: ChannelFile,
    environment: Mapping[str, str],
    findings: Sequence[Finding] = (),
) -> Plan:
    """The plan of a channel file, compared with what was read of the cluster before. Pure.

    Args:
        seen: the channel as the cluster keeps it, None if it keeps none.
        definition: see `make_plan`.
        channel: see `make_plan`.
        environment: see `make_plan`.
        findings: what a check of `channel` has found.
    """
    before, unreadable = _read(seen, environment)
    return plan_of(
        before,
        channel,
        findings,
        rewritten=seen is None or bool(seen.damage) or seen.definition != dict(definition),
        unreadable=unreadable,
        base=revision_of(seen),
    )


def _read(seen: Channel | None, environment: Mapping[str, str]) -> tuple[ChannelFile | None, str]:
    """A channel as the cluster keeps it, and why it cannot be read."""
    if seen is None:
        return None, ""
    if seen.damage:
        return None, f"it {seen.damage}"
    try:
        return resolve_and_parse(seen.definition, environment), ""
    except ChannelFileError as error:
        return None, str(error)
