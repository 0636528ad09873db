"""How much room a cluster has on the disks of its data nodes.

API: nodes stats, ``fs``
(https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-nodes-stats). What the
watermarks of a disk do: https://www.elastic.co/docs/reference/elasticsearch/configuration-reference/cluster-level-shard-allocation-routing-settings#disk-based-shard-allocation
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from setl.errors import ConfigurationError, FatalError
from setl.systems.expiry import ServerDisk
from setl.systems.search_index.answers import each, number, part
from setl.systems.search_index.client import SearchClient, make_client
from setl.systems.search_index.errors import AnswerError, translating
from setl.systems.search_index.port import ClusterEndpoint
from setl.systems.search_index.watermarks import DISK, with_watermarks

_SECONDS = 10.0
_WANTED = "nodes.*.name,nodes.*.roles,nodes.*.fs.total,nodes.*.fs.data"


def look_at_disks(endpoint: ClusterEndpoint) -> Sequence[ServerDisk] | None:
    """Ask the cluster, in a few seconds; None if it does not tell this account.

    Raises:
        SetlError: it does not answer in time.
    """
    client = make_client(replace(endpoint, request_timeout=min(endpoint.request_timeout, _SECONDS)))
    try:
        with translating(endpoint):
            stats = client.node_stats("fs", _WANTED)
            found = list(_disks(stats, str(endpoint)))
            if any(disk.needed is None for disk in found):
                found = _by_settings(client, found)
    except (ConfigurationError, FatalError):
        return (
            None  # the account has no `monitor`, or it is another server that has no such figures
        )
    finally:
        client.close()
    return found or None


def _by_settings(client: SearchClient, disks: list[ServerDisk]) -> list[ServerDisk]:
    """The disks with what the cluster's settings say must be free, if they may be read."""
    try:
        settings = client.cluster_settings(f"*.{'.'.join(DISK)}")
    except AnswerError:
        return disks
    return [with_watermarks(disk, settings) for disk in disks]


def _disks(body: object, cluster: str) -> Iterator[ServerDisk]:
    for node in each(body, "nodes"):
        if not _stores_rows(node):
            continue
        found = [_disk(path, f"{node.get('name', '?')} of {cluster}") for path in _paths(node)]
        known = [disk for disk in found if disk.size > 0]
        if known:
            # A node with several paths is as full as the fullest: shards do not move between them.
            yield min(known, key=lambda disk: disk.free / disk.size)


def _stores_rows(node: dict[str, Any]) -> bool:
    roles: object = node.get("roles")
    if not isinstance(roles, list):
        return True
    return any(str(role).startswith("data") for role in cast("list[object]", roles))


def _paths(node: dict[str, Any]) -> list[dict[str, Any]]:
    """What is told of each path, or of all together."""
    fs = part(node, "fs")
    data: object = fs.get("data")
    paths = cast("list[object]", data) if isinstance(data, list) else []
    return [cast("dict[str, Any]", path) for path in paths if isinstance(path, dict)] or [
        part(fs, "total")
    ]


def _disk(path: dict[str, Any], of: str) -> ServerDisk:
    return ServerDisk(
        of=of,
        size=number(path, "total_in_bytes"),
        free=number(path, "available_in_bytes"),
        # Below it the cluster moves shards away; below the last one indexes take no writes.
        needed=number(path, "high_watermark_free_space_in_bytes") or None,
        last=number(path, "flood_stage_free_space_in_bytes") or None,
    )
