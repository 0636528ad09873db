"""How far replicas of a server are behind it, as they say themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from setl.errors import SetlError
from setl.systems.mysql.connection import MysqlEndpoint, connect, is_mariadb, translating
from setl.systems.replicas import ReplicaBehind

_SECONDS = 2.0  # for an answer: a load waits for it
# Seconds_Behind_Source of MySQL, Seconds_Behind_Master of MariaDB.
_BEHIND = "seconds_behind"


def farthest_replica(primary: MysqlEndpoint, addresses: Sequence[str]) -> ReplicaBehind | None:
    """The replica that is behind most, see `ReplicatedTarget.farthest_replica`.

    Args:
        primary: the server that they replicate, whose account they have, too.
        addresses: the replicas, ``host:port``.
    """
    found = [_behind(primary, address) for address in addresses]
    return max(found, key=lambda replica: replica.seconds, default=None)


def replication_statement(*, mariadb: bool) -> str:
    """Asks a server how it replicates: a row for each server that it is a replica of.

    Source: https://mariadb.com/kb/en/show-replica-status/. MariaDB has SHOW ALL for several.
    """
    return "SHOW ALL SLAVES STATUS" if mariadb else "SHOW REPLICA STATUS"


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
    seconds = [math.inf if each is None else float(each) for each in found]
    return ReplicaBehind(address, max(seconds), "does not replicate now")


def _asked(server: MysqlEndpoint) -> list[Any]:
    with (
        closing(connect(server)) as connection,
        translating(server),
        connection.cursor() as cursor,
    ):
        cursor.execute(replication_statement(mariadb=is_mariadb(connection)))
        names = [str(column[0]).lower() for column in cursor.description or ()]
        (place,) = (i for i, name in enumerate(names) if name.startswith(_BEHIND))
        return [row[place] for row in cursor.fetchall()]
