"""Checks a channel's servers before `setl start` starts it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from arbiter.arbiter import Arbiter
from arbiter.values import Channel
from setl.cli.cluster import AnswerNo
from setl.systems.finding import Finding


def refuse_unready(channel: Channel, arbiter: Arbiter) -> None:
    """Refuse to start a channel of which `setl check` says that something must be fixed first.

    What cannot be seen from here is said and starts all the same: nodes have their own variables
    and their own ways to the servers. Expressions are left to `setl check`, since they need Spark.

    Args:
        channel: as the cluster keeps it.
        arbiter: says which pipelines have begun and need no `start` any more.

    Raises:
        AnswerNo: something must be fixed; says what, where and how.
    """
    # Imported late: servers' clients take a second that a refusal need not wait.
    from setl.channel.problems import ChannelFileError  # noqa: PLC0415
    from setl.channel.reading import resolve_and_parse  # noqa: PLC0415
    from setl.operate.check import check_channel  # noqa: PLC0415
    from setl.operate.positions.used_starts import without_used_starts  # noqa: PLC0415

    try:
        file = resolve_and_parse(channel.definition, os.environ)
    except ChannelFileError as error:
        click.echo(f"not checked, since its references are not set here: {error}", err=True)
        return
    file = without_used_starts(file, arbiter)
    errors = [finding for finding in check_channel(file) if finding.level == "error"]
    for finding in errors:
        if finding.unseen:
            click.echo(f"not checked from here: {finding.where}: {finding.what}", err=True)
    faults = [finding for finding in errors if not finding.unseen]
    if faults:
        raise AnswerNo("\n".join(_lines(channel.name, faults)))


def _lines(name: str, faults: Sequence[Finding]) -> list[str]:
    lines = [f"channel {name} is not started; {len(faults)} to fix first:"]
    for fault in faults:
        lines += [f"  {fault.where}: {fault.what}", *(f"    {fix}" for fix in fault.fix)]
    return [*lines, f"`setl start {name} --no-check` starts it all the same"]
