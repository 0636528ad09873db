"""How far replicas of a server are behind it, as they say themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from setl.errors import SetlError
from setl.systems.mysql.connection import MysqlEndpoint, connect, is_mariadb, translating
from setl.systems.mysql.server_kind import SHOWS_REPLICAS, version_numbers
from setl.systems.replicas import ReplicaBehind

_SECONDS = 2.0  # for an answer: a load waits for it
# Seconds_Behind_Source; Seconds_Behind_Master of MariaDB and of MySQL before 8.0.22.
_BEHIND = "seconds_behind"
_DELAY = "sql_delay"


def farthest_replica(primary: MysqlEndpoint, addresses: Sequence[str]) -> ReplicaBehind | None:
    """The replica that is behind most, see `ReplicatedTarget.farthest_replica`.

    Args:
        primary: the server that they replicate, whose account they have, too.
        addresses: the replicas, ``host:port``.
    """
    found = replicas_behind(primary, addresses)
    return max(found, key=lambda replica: replica.seconds, default=None)


def replicas_behind(primary: MysqlEndpoint, addresses: Sequence[str]) -> Sequence[ReplicaBehind]:
    """How far each replica is behind; see `farthest_replica`."""
    return [_behind(primary, address) for address in addresses]


def replication_statement(*, mariadb: bool, version: tuple[int, ...]) -> str:
    """Asks a server how it replicates: a row for each server that it is a replica of.

    Source: https://mariadb.com/kb/en/show-replica-status/. MariaDB has SHOW ALL for several.
    """
    if mariadb:
        return "SHOW ALL SLAVES STATUS"
    return f"SHOW {'REPLICA' if version >= SHOWS_REPLICAS else 'SLAVE'} STATUS"


def _behind(primary: MysqlEndpoint, address: str) -> ReplicaBehind:
    host, _, port = address.rpartition(":")
    server = replace(
        primary, host=host, port=int(port), connect_timeout=_SECONDS, read_timeout=_SECONDS
    )
    try:
        found = _asked(server)
    except SetlError as error:
        return ReplicaBehind(address, math.inf, f"cannot be asked: {error.message}")
    if not found:
        return ReplicaBehind(address, math.inf, "replicates nothing")
    # It may have several sources. NULL: replication is stopped, or cannot connect.
    seconds = [math.inf if each is None else float(each) for each, *_ in found]
    delay = max((float(each or 0) for _, *delays in found for each in delays), default=0.0)
    return ReplicaBehind(address, max(seconds), "does not replicate now", delay)


def _asked(server: MysqlEndpoint) -> list[tuple[Any, ...]]:
    """For each server that it is a replica of: seconds behind, and the delay on purpose if told."""
    with (
        closing(connect(server)) as connection,
        translating(server),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT VERSION()")
        version = version_numbers(str((cursor.fetchone() or ("",))[0]))
        mariadb = is_mariadb(connection)
        cursor.execute(replication_statement(mariadb=mariadb, version=version))
        names = [str(column[0]).lower() for column in cursor.description or ()]
        (index,) = (i for i, name in enumerate(names) if name.startswith(_BEHIND))
        # Servers of long ago keep no replica behind on purpose, and do not tell.
        delays = [i for i, name in enumerate(names) if name == _DELAY]
        return [(row[index], *(row[i] for i in delays)) for row in cursor.fetchall()]
