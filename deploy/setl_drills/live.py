"""Drills on a live cluster: only what an operator may do at any time.

Everything goes through the `setl` command, as the person at the keyboard would do it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from setl_drills.drill import DrillResult

Command = Callable[..., tuple[int, str, str]]
"""Runs `setl` with arguments: exit status, standard output, standard error."""

HARMLESS = ("switchover",)
"""Drills that may be run on a live cluster: nothing is killed, cut off or written."""


def setl_command(environment: Mapping[str, str]) -> Command:
    """Runs the `setl` of this installation with further variables."""
    program = str(Path(sys.executable).with_name("setl"))

    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )
        return done.returncode, done.stdout, done.stderr

    return run


def pipelines_of(channel: str, command: Command) -> dict[str, str]:
    """The pipelines of a channel, and who leads each.

    Raises:
        RuntimeError: the cluster does not know the channel, or cannot be reached.
    """
    status, out, err = command("status", channel, "-o", "json")
    if status != 0:
        raise RuntimeError(err.strip() or out.strip() or f"setl status exited with {status}")
    return {row["pipeline"]: row["leader"] for row in json.loads(out)}


def switchover_live(channel: str, command: Command, say: Callable[[str], None]) -> DrillResult:
    """Hand every pipeline of a channel to another node and back; nothing may be redelivered."""
    result = DrillResult("switchover", 0)
    begun = time.monotonic()
    for pipeline, leader in pipelines_of(channel, command).items():
        if not leader:
            result.problems.append(f"{pipeline} has no leader, so there is nothing to hand over")
            continue
        if _hand_over(result, command, say, pipeline):
            _hand_over(result, command, say, pipeline, "--to", leader)
    result.seconds = time.monotonic() - begun
    return result


def _hand_over(
    result: DrillResult,
    command: Command,
    say: Callable[[str], None],
    pipeline: str,
    *options: str,
) -> bool:
    """One switchover; returns whether it was done."""
    status, out, err = command("switchover", pipeline, *options, "--yes", "-o", "json")
    outcome: dict[str, Any] = json.loads(out) if out.strip() else {}
    result.evidence.setdefault("commands", []).append(
        {"pipeline": pipeline, "options": options, "exit": status, "outcome": outcome}
    )
    if status != 0:
        why = outcome.get("reason") or err.strip()
        result.problems.append(f"{pipeline} was not handed over: {why}")
        return False
    seconds, redelivered = outcome.get("seconds"), outcome.get("redelivered")
    say(
        f"{pipeline}: {outcome.get('from')} → {outcome.get('to')} in {seconds} s,"
        f" {redelivered} rows redelivered"
    )
    if seconds is not None:
        result.outages.append(float(seconds))
    result.redelivered += int(redelivered or 0)
    if redelivered:
        result.problems.append(f"{pipeline}: {redelivered} rows were redelivered")
    elif redelivered is None:
        result.notes.append(f"{pipeline}: the new leader does not say what it redelivered")
    return True
