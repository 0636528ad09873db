"""Makes the plan of a channel file, from what the cluster keeps and what servers have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arbiter.arbiter import Arbiter, NotFound
from setl.channel.file import ChannelFile
from setl.channel.reading import resolve_and_parse
from setl.channel.text.problems import ChannelFileError
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
    before, stored, unreadable = _stored(arbiter, channel.channel, environment)
    findings: Sequence[Finding] = ()
    if ask_servers:
        findings = check_channel(without_used_starts(channel, arbiter), expressions=expressions)
    rewritten = stored is None or dict(stored) != dict(definition)
    return plan_of(before, channel, findings, rewritten=rewritten, unreadable=unreadable)


def _stored(
    arbiter: Arbiter, name: str, environment: Mapping[str, str]
) -> tuple[ChannelFile | None, Mapping[str, Any] | None, str]:
    """A channel as the cluster keeps it, as it is written there, and why it cannot be read."""
    try:
        found = arbiter.channel(name)
    except NotFound:
        return None, None, ""
    if found.damage:
        return None, None, f"it {found.damage}"
    try:
        return resolve_and_parse(found.definition, environment), found.definition, ""
    except ChannelFileError as error:
        return None, found.definition, str(error)
