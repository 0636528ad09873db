"""What products with the API of a search index do not share: the port that each of them implements.

They answer the same requests, in the same words. How a request is sent (by which library, as whom,
and how one knows whose answer it is), and how all documents of an index are read, is theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from setl.systems.search_index.client import SearchClient

JSON = "application/json"
LINES = "application/x-ndjson"

Hit = dict[str, Any]
"""A document as a search returns it."""


class Answer(NamedTuple):
    """What a server has answered, whatever the status."""

    status: int
    data: bytes


class Connection(Protocol):
    """Sends requests to the servers of a cluster; used by several threads at once.

    It connects when it is first used, and keeps its connections. A request that finds one server
    down goes to another at once; waiting and trying again is left to the caller, who knows what
    may be repeated.
    """

    def ask(
        self, method: str, path: str, params: Mapping[str, str], body: bytes | None, kind: str
    ) -> Answer:
        """Send a request, and return whatever is answered.

        Args:
            method: of HTTP.
            path: what stands behind the server's address, quoted.
            params: the query.
            body: what is sent, None for nothing.
            kind: its content type, `JSON` or `LINES`.

        Raises:
            SetlError: there is no answer, or none of this product.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class DocumentPages(Protocol):
    """Reads all documents of an index, or those that a query finds."""

    def open(self, client: SearchClient, index: str) -> str:
        """Begin; returns what `read` needs, and `close` ends."""
        ...

    def read(
        self,
        client: SearchClient,
        opened: str,
        *,
        query: dict[str, Any] | None = None,
        slice_: tuple[int, int] | None = None,
    ) -> Iterator[list[Hit]]:
        """The documents, a page at a time.

        Args:
            client: of the cluster.
            opened: what `open` returned, perhaps to another process.
            query: which documents; None for all.
            slice_: a number, and of how many slices; each document is in exactly one of them.

        Raises:
            AnswerError: the cluster refuses it.
            TransientError: it has not read all of them.
        """
        ...

    def close(self, client: SearchClient, opened: str) -> None:
        """End; not an error if a server has forgotten it."""
        ...


@dataclass(frozen=True, slots=True)
class Product:
    """A product, as messages and checks name it.

    Attributes:
        name: its name.
        oldest: the oldest version that setl is made for.
        type: what stands under `type` in a channel file.
        knows: whether a name that a server gives itself is of this product; see `name_said`.
    """

    name: str
    oldest: tuple[int, int]
    type: str
    knows: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class ClusterEndpoint(ABC):
    """Where a cluster is and as whom to use it. Picklable: it travels to Spark tasks.

    Attributes:
        product: what it is.
        pages: how its documents are read.
        hosts: addresses as ``http://name:port``; may hold credentials, so they are not shown.
        user: account name, "" for none.
        password: its password.
        ca_certs: file with the authorities that the servers' certificates must come from.
        request_timeout: seconds to wait for an answer.
    """

    product: ClassVar[Product]
    pages: ClassVar[DocumentPages]

    hosts: tuple[str, ...] = field(repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    ca_certs: str = ""
    request_timeout: float = 30.0

    @abstractmethod
    def connect(self) -> Connection:
        """A connection, which is not made yet.

        Raises:
            ConfigurationError: an address or a certificate file is wrong, or a package is missing.
        """

    def __str__(self) -> str:
        return " ".join(_bare(host) for host in self.hosts)


def _bare(host: str) -> str:
    """An address without credentials."""
    return urlsplit(host).netloc.rpartition("@")[2] or "?"
