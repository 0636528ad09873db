"""The checks of an index target: TLS, version and health, then each of its indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from setl.load.identities import Identity
from setl.systems.finding import Report
from setl.systems.search_index.answers import name_said, part
from setl.systems.search_index.client import SearchClient, make_client
from setl.systems.search_index.errors import translating
from setl.systems.search_index.identities import index_identities
from setl.systems.search_index.port import ClusterEndpoint, Product
from setl.systems.search_index.preflight.arriving import Arriving
from setl.systems.search_index.preflight.indexes import check_index
from setl.systems.tls_findings import NOT_ENCRYPTED, TLS_MISSING, stays_here


def check_search_target(
    endpoint: ClusterEndpoint,
    indexes: Mapping[str, Sequence[Arriving]],
    pipeline: str,
    report: Report,
) -> None:
    """Report everything about a cluster.

    Args:
        endpoint: where it is.
        indexes: the indexes that rows go to, with what arrives there, as far as it is known.
        pipeline: whose rows they are, ``channel/pipeline``.
        report: where to put it.

    Raises:
        SetlError: the cluster does not answer.
    """
    check_transport(endpoint, report)
    with translating(endpoint), make_client(endpoint) as client:
        if not _check_cluster(client, endpoint.product, report):
            return
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


def _check_cluster(client: SearchClient, product: Product, report: Report) -> bool:
    """Report version and health; returns whether it is a cluster of the product at all."""
    info = client.info()
    about = part(info, "version")
    version = str(about.get("number", "unknown"))
    named = name_said(info)
    if not product.knows(named):
        report.error(
            f"the server is not {product.name}: it calls itself {named or 'nothing'}, {version}",
            f"Correct `hosts`, or write another `type` than {product.type}",
            code="other-product",
        )
        return False
    if _numbers(version) < product.oldest:
        oldest = ".".join(map(str, product.oldest)).removesuffix(".0")
        report.warning(
            f"setl is made for {product.name} {oldest} and later; the cluster has {version}",
            code="old-server",
        )
    else:
        report.ok(f"{product.name} {version} answers")
    if client.health() == "red":
        report.error(
            "the cluster's health is red: some indexes cannot be written to",
            "GET _cluster/allocation/explain says why",
            code="cluster-red",
        )
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = version.split(".")[:2]
    return tuple(int(number) for number in found if number.isdecimal())


def check_transport(endpoint: ClusterEndpoint, report: Report) -> None:
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
