"""Checks a channel's servers before `setl start` starts it, or `setl apply` changes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import Channel
from setl.cli.access.cluster import AnswerNo
from setl.cli.terminal.output import to_stderr
from setl.cli.terminal.progress import busy_with_servers

if TYPE_CHECKING:
    from setl.channel.file import ChannelFile
    from setl.operate.starting import Readiness


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
    from setl.operate.starting import readiness  # noqa: PLC0415

    with busy_with_servers(channel.name):
        found = readiness(channel, arbiter, os.environ)
    sql = f"`setl show {channel.name} > FILE` and `setl check FILE -o sql`"
    otherwise = f"`setl start {channel.name} --no-check` starts it"
    _refuse(channel.name, found, "started", otherwise, sql)


def refuse_faults(file: ChannelFile, arbiter: Arbiter, done: str, otherwise: str, sql: str) -> None:
    """Refuse to go on with a channel of which `setl check` says that something must be fixed first.

    Args:
        file: the channel, its references resolved.
        arbiter: says which pipelines have begun and need no `start` any more.
        done: what is not done to the channel, the end of a sentence.
        otherwise: how to do it all the same, the beginning of one.
        sql: what shows the statements that fix it.

    Raises:
        AnswerNo: something must be fixed; says what, where and how.
    """
    from setl.operate.starting import readiness_of_file  # noqa: PLC0415

    with busy_with_servers(file.channel):
        found = readiness_of_file(file, arbiter)
    _refuse(file.channel, found, done, otherwise, sql)


def _refuse(name: str, found: Readiness, done: str, otherwise: str, sql: str) -> None:
    from setl.operate.starting import refusal  # noqa: PLC0415

    for sentence in found.unseen:
        to_stderr(sentence)
    if found.faults:
        raise AnswerNo(f"{refusal(name, found.faults, done, sql)}\n{otherwise} all the same")
