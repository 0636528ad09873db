"""A script's side of being measured: settings, ready, go, its answer, and waiting to be let go."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_turns: list[int] = []  # the file descriptor that takes the place of standard output


def settings() -> dict[str, Any]:
    """What it is told, the first line of standard input.

    From now on whatever else is printed goes to standard error: a JVM in this process logs to
    standard output.
    """
    _turns.append(os.dup(1))
    os.dup2(2, 1)
    told: dict[str, Any] = json.loads(sys.stdin.readline())
    return told


def wait_for_go() -> None:
    """Say that everything is ready, and wait."""
    _say("ready")
    sys.stdin.readline()


def answer(rows: int, seconds: float) -> None:
    """Say what it took, and stay until what this process used has been noted."""
    _say(json.dumps({"rows": rows, "seconds": seconds}))
    sys.stdin.readline()


def _say(line: str) -> None:
    os.write(_turns[0], f"{line}\n".encode())
