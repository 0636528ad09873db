"""The checks of an Elasticsearch target: TLS, version and health, then each of its indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from elasticsearch import Elasticsearch

from setl.channel.file import ElasticsearchTarget
from setl.load.identities import Identity
from setl.systems.elasticsearch.client import (
    ElasticEndpoint,
    elastic_endpoint,
    make_client,
    translating,
)
from setl.systems.finding import Report
from setl.systems.search_index.answers import part
from setl.systems.search_index.identities import index_identities
from setl.systems.search_index.preflight.arriving import Arriving
from setl.systems.search_index.preflight.indexes import check_index
from setl.systems.tls_findings import NOT_ENCRYPTED, TLS_MISSING, stays_here

_OLDEST = 8


def check_search_target(
    target: ElasticsearchTarget,
    indexes: Mapping[str, Sequence[Arriving]],
    pipeline: str,
    report: Report,
) -> None:
    """Report everything about a cluster.

    Args:
        target: how the channel file describes it.
        indexes: the indexes that rows go to, with what arrives there, as far as it is known.
        pipeline: whose rows they are, ``channel/pipeline``.
        report: where to put it.

    Raises:
        SetlError: the cluster does not answer.
    """
    endpoint = elastic_endpoint(target)
    check_transport(endpoint, report)
    with translating(endpoint), make_client(endpoint) as client:
        _check_cluster(client, report)
        for index, arriving in indexes.items():
            check_index(client, index, arriving, pipeline, report)
        _check_names(index_identities(endpoint, indexes), report)


def _check_names(found: Mapping[str, Identity], report: Report) -> None:
    """Report names that stand for one index."""
    names: dict[str, str] = {}
    for name, identity in sorted(found.items()):
        other = names.setdefault(identity.name, name)
        if other != name:
            report.error(
                f"{other} and {name} are names of one index",
                "Write the same name under `to`, so that no two rows become one document",
                code="one-index-of-two-names",
            )


def _check_cluster(client: Elasticsearch, report: Report) -> None:
    version = str(part(client.info().body, "version").get("number", "unknown"))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < _OLDEST:
        report.warning(
            f"setl is made for Elasticsearch {_OLDEST} and later; the cluster has {version}",
            code="old-server",
        )
    else:
        report.ok(f"Elasticsearch {version} answers")
    if cast("dict[str, Any]", client.cluster.health().body).get("status") == "red":
        report.error(
            "the cluster's health is red: some indexes cannot be written to",
            "GET _cluster/allocation/explain says why",
            code="cluster-red",
        )


def check_transport(endpoint: ElasticEndpoint, report: Report) -> None:
    """Report connections without TLS that leave this machine.

    With TLS the client always compares the certificate, to the system's authorities if no others
    are named.
    """
    addresses = [urlsplit(host) for host in endpoint.hosts]
    plain = [
        address
        for address in addresses
        if address.scheme == "http" and not stays_here(address.hostname or "")
    ]
    if plain:
        unused = ". `ca_certs` has no effect there" if endpoint.ca_certs else ""
        report.warning(
            f"{NOT_ENCRYPTED} ({', '.join(str(address.hostname) for address in plain)}){unused}",
            "Write https:// in `hosts`, and `ca_certs` where the authority is your own",
            code=TLS_MISSING,
        )
