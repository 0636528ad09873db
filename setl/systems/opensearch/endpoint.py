"""Where a cluster of OpenSearch is. Imports no client library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from setl.systems.opensearch.pages import Scrolls
from setl.systems.opensearch.product import OPENSEARCH, AwsLogin, missing_package
from setl.systems.search_index.port import ClusterEndpoint, Connection

if TYPE_CHECKING:
    from setl.channel.fields.opensearch_endpoint import OpenSearchTarget


@dataclass(frozen=True, slots=True)
class OpenSearchEndpoint(ClusterEndpoint):
    """A cluster of OpenSearch; see `ClusterEndpoint`.

    Attributes:
        aws: how requests are signed for Amazon OpenSearch Service; None if they are not.
    """

    product = OPENSEARCH
    pages = Scrolls()

    aws: AwsLogin | None = None

    @override
    def connect(self) -> Connection:
        try:
            from setl.systems.opensearch.client import (  # noqa: PLC0415 - its package is an extra
                OpenSearchConnection,
            )
        except ModuleNotFoundError as error:
            extra = "opensearch-aws" if self.aws else "opensearch"
            raise missing_package("opensearch-py", extra, error) from error
        return OpenSearchConnection(self, self.aws)


def opensearch_endpoint(target: OpenSearchTarget) -> OpenSearchEndpoint:
    """The cluster of an OpenSearch target."""
    region, id_, secret = target.aws_region, target.aws_access_key_id, target.aws_secret_access_key
    return OpenSearchEndpoint(
        hosts=tuple(target.hosts),
        user=target.user,
        password=target.password,
        ca_certs=target.ca_certs,
        request_timeout=target.request_timeout,
        aws=AwsLogin(region, id_, secret) if region else None,
    )
