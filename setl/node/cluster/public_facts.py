"""What anybody may read of what the arbiter knows: the same without the texts of errors. Pure."""

from __future__ import annotations

from dataclasses import replace

from arbiter.values import Facts
from setl.error_text import HIDDEN, public


def public_facts(facts: Facts) -> Facts:
    """What the arbiter knows, as anybody may read it."""
    nodes, channels = facts.nodes, facts.channels
    if any(node.not_ready for node in nodes.values()):
        nodes = {
            nid: replace(node, not_ready=dict.fromkeys(node.not_ready, HIDDEN))
            for nid, node in nodes.items()
        }
    if any(channel.damage for channel in channels.values()):
        channels = {
            name: replace(channel, damage=public(channel.damage))
            for name, channel in channels.items()
        }
    damaged = dict.fromkeys(facts.damaged, f"cannot be read; {HIDDEN}")
    if nodes is facts.nodes and channels is facts.channels and not damaged:
        return facts
    return replace(facts, nodes=nodes, channels=channels, damaged=damaged)
