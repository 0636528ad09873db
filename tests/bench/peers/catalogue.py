"""All that is compared, in the order in which it takes its turn."""

from __future__ import annotations

from typing import Any

from tests.bench.peers.dump_tools import DumpTool
from tests.bench.peers.replica import Replica
from tests.bench.peers.scripts import Bulk, Debezium, Plain
from tests.bench.peers.setl import Setl
from tests.bench.turns import Peer

CHANGES = ("replica", "replica-logging", "replica-4-threads", "bulk", "debezium", "plain",
           "setl", "setl-kafka")  # fmt: skip
"""Peers that apply changes."""

LOADS = ("mydumper", "mariadb-dump", "bulk", "debezium", "setl")
"""Peers that load whole tables."""

_ON_MYSQL = {"replica", "replica-logging", "replica-4-threads", "setl", "setl-kafka"}


def peers(
    names: tuple[str, ...], family: str = "mariadb", master: str = "local[2]", **settings: Any
) -> list[Peer]:
    """Those with these names that do it on a family of servers.

    Args:
        names: of `CHANGES`, or of `LOADS`.
        family: of the servers.
        master: Spark master of setl.
        settings: of setl's pipeline.
    """
    every: list[Peer] = [
        Replica(family),
        Replica(family, logs=True),
        Replica(family, parallel=True),
        DumpTool("mydumper"),
        DumpTool("mariadb-dump"),
        Bulk(),
        Debezium(),
        Plain(),
        Setl(master, **settings),
        Setl(master, kafka=True, **settings),
    ]
    return [
        peer
        for peer in every
        if peer.name in names and (family == "mariadb" or peer.name in _ON_MYSQL)
    ]
