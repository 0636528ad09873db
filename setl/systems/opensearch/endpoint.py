"""Where a cluster of OpenSearch is, and what is its own. Imports no client library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from setl.errors import NodeNotReadyError
from setl.systems.opensearch.pages import Scrolls
from setl.systems.search_index.port import ClusterEndpoint, Connection, Product

if TYPE_CHECKING:
    from setl.channel.fields.endpoints import OpenSearchTarget


def is_opensearch(name: str) -> bool:
    """Whether a name that a server gives itself is OpenSearch's."""
    return "opensearch" in name.lower()


OPENSEARCH: Final = Product("OpenSearch", (2, 8), "opensearch", is_opensearch)
"""2.8 is the first version with ``unsigned_long``."""


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """By which key requests are signed for AWS.

    Attributes:
        region: where the domain is.
        access_key_id: of a fixed key; "" for what the machine has: variables, files of AWS, or the
            role of the instance.
        secret_access_key: of a fixed key.
    """

    region: str
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)


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
        return OpenSearchConnection(self)


def missing_package(package: str, extra: str, error: ModuleNotFoundError) -> NodeNotReadyError:
    """The error for a package that setl does not bring by itself."""
    return NodeNotReadyError(
        f"the Python package {package} is not installed ({error.name})",
        hint=f"pip install 'setl[{extra}]' on the nodes, on Spark's workers and where `setl check`"
        " runs",
    )


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
