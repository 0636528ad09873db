"""Rounds for a while, on servers of their own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from setl_drills.oracle.rounds import Round, Servers, play
from setl_embedded import DatabaseServer, MariaDb, MySql


@contextmanager
def own_servers(sites: str, seed: int, folder: Path | None = None) -> Iterator[Servers]:
    """Start what a run needs; of `mixed`, an even seed has MySQL as the source, an odd MariaDB.

    Args:
        sites: a key of `setl_drills.world.SITES`.
        seed: the run's.
        folder: where data and logs go; None for a temporary folder.
    """
    place = folder or Path(tempfile.mkdtemp(prefix="setl-oracle-"))
    mysql_first = sites == "mysql" or (sites == "mixed" and seed % 2 == 0)
    with ExitStack() as stack:

        def started(name: str, number: int, *, mysql: bool) -> DatabaseServer:
            kind = MySql if mysql else MariaDb
            return stack.enter_context(kind(place / name, name, number))

        source = started("source", 731, mysql=mysql_first)
        replica = started("replica", 732, mysql=mysql_first)
        target = started("target", 733, mysql=not mysql_first) if sites == "mixed" else replica
        servers = Servers(source, replica, target)
        servers.prepare()
        yield servers


def play_for(
    servers: Servers, seed: int, seconds: float, say: Callable[[str], None], first: int = 1
) -> list[Round]:
    """Play rounds until the time is over, at least one; says each that has failed."""
    ends = time.monotonic() + seconds
    rounds: list[Round] = []
    while not rounds or time.monotonic() < ends:
        one = play(servers, f"{seed}.{first + len(rounds)}")
        rounds.append(one)
        for fault in one.faults:
            say(f"round {one.number}: {fault}\n  {one.table}")
    return rounds


def summary(rounds: list[Round]) -> str:
    """What came of a run, in a line."""
    stopped = sum(bool(one.setl) for one in rounds)
    both = sum(bool(one.setl and one.replica) for one in rounds)
    return (
        f"{len(rounds)} rounds, {sum(one.statements for one in rounds)} statements:"
        f" {len(rounds) - stopped} ended equal, {stopped} stopped with an error ({both} with the"
        f" replica), {sum(bool(one.faults) for one in rounds)} failed"
    )
