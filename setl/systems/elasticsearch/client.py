"""Makes clients of Elasticsearch, and translates their errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from elastic_transport import ConnectionError as NoConnection
from elastic_transport import ConnectionTimeout, TlsError
from elasticsearch import ApiError, Elasticsearch, TransportError, UnsupportedProductError
from elasticsearch.helpers import ScanError
from elasticsearch.serializer import JsonSerializer

from setl.errors import (
    ConfigurationError,
    FatalError,
    LoginRefusedError,
    SetlError,
    TransientError,
    UntrustedServerError,
)
from setl.systems.search_index.answers import BoundedNode

if TYPE_CHECKING:
    from setl.channel.fields.endpoints import ElasticsearchTarget

RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses, of a request or of one bulk item, that may be others when it is sent again."""

NO_ACCESS_STATUSES = frozenset({401, 403})
"""HTTP statuses that mean: this account, or anybody at the moment, must not do that."""


_FORGOTTEN = "search_context_missing_exception"


@dataclass(frozen=True, slots=True)
class ElasticEndpoint:
    """Where a cluster is and as whom to use it. Picklable: it travels to Spark tasks.

    Attributes:
        hosts: addresses as ``http://name:port``; may hold credentials, so they are not shown.
        user: account name, "" for none.
        password: its password.
        api_key: used instead of user and password if not "".
        ca_certs: file with the authorities that the servers' certificates must come from.
        request_timeout: seconds to wait for an answer.
    """

    hosts: tuple[str, ...] = field(repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_certs: str = ""
    request_timeout: float = 30.0

    def __str__(self) -> str:
        return " ".join(_bare(host) for host in self.hosts)


def _bare(host: str) -> str:
    """An address without credentials."""
    return urlsplit(host).netloc.rpartition("@")[2] or "?"


def elastic_endpoint(target: ElasticsearchTarget) -> ElasticEndpoint:
    """The cluster of an Elasticsearch target."""
    return ElasticEndpoint(
        hosts=tuple(target.hosts),
        user=target.user,
        password=target.password,
        api_key=target.api_key,
        ca_certs=target.ca_certs,
        request_timeout=target.request_timeout,
    )


def make_client(
    endpoint: ElasticEndpoint, *, reader: JsonSerializer | None = None
) -> Elasticsearch:
    """A client; it connects when it is first used, and keeps its connections.

    A request that finds one server down goes to another at once; waiting and trying again is
    left to the caller, who knows what may be repeated.

    Args:
        endpoint: where the cluster is.
        reader: reads answers; None for the client's own.

    Raises:
        ConfigurationError: an address or a certificate file is wrong.
    """
    options: dict[str, Any] = {}
    if reader is not None:
        options["serializers"] = {reader.mimetype: reader}
    if endpoint.api_key:
        options["api_key"] = endpoint.api_key
    elif endpoint.user:
        options["basic_auth"] = (endpoint.user, endpoint.password)
    if endpoint.ca_certs:
        options["ca_certs"] = endpoint.ca_certs
    try:
        return Elasticsearch(
            list(endpoint.hosts),
            request_timeout=endpoint.request_timeout,
            node_class=BoundedNode,
            max_retries=max(0, len(endpoint.hosts) - 1),
            retry_on_status=(),
            **options,
        )
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"no Elasticsearch client can be made from this address: {error}",
            hint="Write hosts as http://name:9200 or https://name:9200",
            server=endpoint,
        ) from error


@contextmanager
def translating(endpoint: ElasticEndpoint) -> Generator[None]:
    """Turn the client's errors inside the block into setl's, with the servers' addresses."""
    try:
        yield
    except (ApiError, TransportError, UnsupportedProductError, ScanError) as error:
        raise translate(error).at(server=endpoint) from error


def translate(error: Exception) -> SetlError:
    """The kind of setl error that an error of the client is."""
    if isinstance(error, ApiError):
        return _answered(error)
    if isinstance(error, UnsupportedProductError):
        return TransientError("the server is not Elasticsearch", hint="Check `hosts`")
    if isinstance(error, TlsError):
        untrusted = "CERTIFICATE_VERIFY_FAILED" in error.message
        kind = UntrustedServerError if untrusted else ConfigurationError
        return kind(f"Elasticsearch: {error.message}", hint="Check https, and `ca_certs`")
    if isinstance(error, ConnectionTimeout):
        return TransientError("Elasticsearch: no answer in time")
    if isinstance(error, NoConnection):
        return TransientError(f"Elasticsearch: no connection: {error.message}")
    return TransientError(f"Elasticsearch: {error}")


def _answered(error: ApiError) -> SetlError:
    return _typed(error, error.status_code).coded(error.status_code)


def _typed(error: ApiError, status: int) -> SetlError:
    reason = error_of(cast("object", error.body))
    what = f"{reason.get('type')}: {reason.get('reason')}" if reason else error.message
    text = f"Elasticsearch: {what} [{status}]"
    if status in RETRY_STATUSES or _is_forgotten(reason):
        return TransientError(text)
    if status in NO_ACCESS_STATUSES:
        # 401: it does not know the account; 403: the account must not do that.
        kind = LoginRefusedError if status == 401 else ConfigurationError
        return kind(text, hint="Check the account and its privileges")
    if status == 404:
        return ConfigurationError(text, hint="Create the index, or let setl create it")
    return FatalError(text)


def _is_forgotten(reason: dict[str, Any]) -> bool:
    """Whether a node has lost what was opened on it for reading, as after a restart."""
    causes: object = reason.get("root_cause")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cast("dict[str, Any]", cause).get("type") == _FORGOTTEN
        for cause in cast("list[object]", causes)
    )


def error_of(body: object, name: str = "error") -> dict[str, Any]:
    """The object under `name` in an answer or in another error; empty if there is none.

    Servers, and proxies before them, also answer with text there.
    """
    if not isinstance(body, dict):
        return {}
    found = cast("dict[str, object]", body).get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
