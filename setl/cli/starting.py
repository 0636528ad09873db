"""Checks a channel's servers before `setl start` starts it."""

from __future__ import annotations

import os

import click

from arbiter.arbiter import Arbiter
from arbiter.values import Channel
from setl.cli.cluster import AnswerNo


def refuse_unready(channel: Channel, arbiter: Arbiter) -> None:
    """Refuse to start a channel of which `setl check` says that something must be fixed first.

    What cannot be seen from here is said and starts all the same.

    Args:
        channel: as the cluster keeps it.
        arbiter: says which pipelines have begun and need no `start` any more.

    Raises:
        AnswerNo: something must be fixed; says what, where and how.
    """
    # Imported late: servers' clients take a second that a refusal need not wait.
    from setl.operate.starting import readiness, refusal  # noqa: PLC0415

    found = readiness(channel, arbiter, os.environ)
    for sentence in found.unseen:
        click.echo(sentence, err=True)
    if found.faults:
        way = f"`setl start {channel.name} --no-check` starts it all the same"
        raise AnswerNo(f"{refusal(channel.name, found.faults)}\n{way}")
