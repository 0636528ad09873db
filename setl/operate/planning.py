"""Makes the plan of a channel file, from what the cluster keeps and what servers have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.values import Channel
from setl.channel.file import ChannelFile
from setl.channel.reading import resolve_and_parse
from setl.channel.text.problems import ChannelFileError
from setl.operate.applying import revision_of, stored_channel
from setl.operate.check import check_channel
from setl.operate.plan import Plan, plan_of
from setl.operate.positions.used_starts import without_used_starts
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
    if ask_servers:
        findings = check_channel(without_used_starts(channel, arbiter), expressions=expressions)
    return compared(seen, definition, channel, environment, findings)


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
    before: ChannelFile | None = None
    unreadable = f"it {seen.damage}" if seen is not None and seen.damage else ""
    if seen is not None and not unreadable:
        try:
            before = resolve_and_parse(seen.definition, environment)
        except ChannelFileError as error:
            unreadable = str(error)
    return plan_of(
        before,
        channel,
        findings,
        rewritten=seen is None or bool(seen.damage) or seen.definition != dict(definition),
        unreadable=unreadable,
        base=revision_of(seen),
    )
