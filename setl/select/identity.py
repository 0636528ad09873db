"""Numbers that a pipeline is known by at its source."""

from __future__ import annotations

import secrets
from zlib import crc32

_REPLICA_RANGE = 0x8000_0000
_HEARTBEAT_RANGE = 0x7FFF_FFFF


def replica_id(channel: str, pipeline: str, nid: str) -> int:
    """The ``server_id`` with which a node reads a binlog for a pipeline.

    A server ends the older of two connections that read its binlog under one id, so every
    node of every pipeline has its own: CRC-32 of the three names in the range 2147483648 to
    4294967294. Real servers are usually numbered from 1, or by the last bytes of an address,
    so that this half stays clear of most of them. With a hundred readers the chance that two
    share an id is about 1 in 400,000; then, `server_id` in the channel file decides.
    """
    # 4294967295 is left out: some tools take it for "none".
    return _REPLICA_RANGE + crc32(f"{channel}/{pipeline}@{nid}".encode()) % (_REPLICA_RANGE - 1)


def temporary_server_id() -> int:
    """A ``server_id`` for one connection, another one at every call; see `replica_id`.

    For connections that must not wait for a former one. Before MariaDB sends a binlog, it ends the
    connection that reads it under the same id, and waits until that is gone; one that is stuck in
    sending, since nobody takes what it sends, is so only after ``net_write_timeout``, a minute.
    That happens to readers that were closed, too: a client that closes while the server has much
    more to send may leave it with a connection that takes nothing and does not end.
    """
    return _REPLICA_RANGE + secrets.randbelow(_REPLICA_RANGE - 1)


def heartbeat_id(host: str, port: int) -> int:
    """The ID of a source's row in ``retl.xdual``, from 1 to 2147483647.

    The same for all pipelines that read the source, and on every node: one write serves them all,
    and a failover leaves no row behind. A server that replicates this one has another, so that
    what arrives there late is not taken for its own.

    Args:
        host: of the source, as the channel files name it.
        port: its port.
    """
    return 1 + crc32(f"{host}:{port}".encode()) % _HEARTBEAT_RANGE
