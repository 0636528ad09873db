"""What is OpenSearch's own, for its endpoint and its client. Imports no client library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from setl.errors import NodeNotReadyError
from setl.systems.search_index.port import Product


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


def missing_package(package: str, extra: str, error: ModuleNotFoundError) -> NodeNotReadyError:
    """The error for a package that setl does not bring by itself."""
    return NodeNotReadyError(
        f"the Python package {package} is not installed ({error.name})",
        hint=f"pip install 'setl[{extra}]' on the nodes, on Spark's workers and where `setl check`"
        " runs",
    )
