"""The checks of an Elasticsearch target: version, health and indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elasticsearch import Elasticsearch

from setl.config.channel import ElasticsearchTarget
from setl.config.connections import elastic_endpoint
from setl.config.preflight.finding import Report
from setl.config.preflight.source_tables import SourceTable
from setl.elastic.client import make_client, translating

_OLDEST = 8


def check_elasticsearch_target(
    target: ElasticsearchTarget, indexes: Sequence[str], report: Report
) -> None:
    """Report everything about a cluster.

    Args:
        target: how the channel file describes it.
        indexes: the indexes that rows go to, as far as they are known.
        report: where to put it.

    Raises:
        SetlError: the cluster does not answer.
    """
    endpoint = elastic_endpoint(target)
    with translating(endpoint), make_client(endpoint) as client:
        _check_cluster(client, report)
        _check_indexes(client, indexes, report)


def indexes_of(tables: Sequence[SourceTable]) -> list[str]:
    """The indexes that the rows of these tables go to."""
    return list(dict.fromkeys(route.target[1] for table in tables for route in table.routes))


def _check_cluster(client: Elasticsearch, report: Report) -> None:
    version = str(client.info().body["version"]["number"])
    major = int(version.partition(".")[0])
    if major < _OLDEST:
        report.warning(f"Elasticsearch {version} is older than {_OLDEST}, which setl is made for")
    else:
        report.ok(f"Elasticsearch {version} answers")
    health: dict[str, Any] = client.cluster.health().body
    if health["status"] == "red":
        report.error(
            "the cluster's health is red: some indexes cannot be written to",
            "GET _cluster/allocation/explain says why",
        )


def _check_indexes(client: Elasticsearch, indexes: Sequence[str], report: Report) -> None:
    missing = [index for index in indexes if not client.indices.exists(index=index)]
    if missing:
        report.ok(f"setl will create {', '.join(missing)}, with a field for each column")
    for index in (i for i in indexes if i not in missing):
        place = report.at(f"index {index}")
        # The name may be an alias, which can stand for several indexes.
        found: dict[str, Any] = client.indices.get(index=index).body
        if len(found) > 1:
            place.error(
                f"the alias stands for {len(found)} indexes: {', '.join(sorted(found))}",
                "Let it stand for one, or name an index in `to`",
            )
        for name, described in found.items():
            _check_index(name, described.get("settings", {}).get("index", {}), place)


def _check_index(name: str, settings: dict[str, Any], place: Report) -> None:
    blocks: dict[str, Any] = settings.get("blocks", {})
    writing = ("write", "read_only", "read_only_allow_delete")
    held = [b for b in writing if str(blocks.get(b)).lower() == "true"]
    if held:
        unset = ", ".join(f'"index.blocks.{b}": null' for b in held)
        place.error(
            f"the index is blocked for writing ({', '.join(held)})",
            f"PUT /{name}/_settings {{{unset}}}, once there is room on the disks",
        )
