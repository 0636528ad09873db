"""Sends requests to OpenSearch with its own client, and translates that client's errors."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from opensearchpy import OpenSearch, TransportError, Urllib3HttpConnection
from opensearchpy.exceptions import (
    ConnectionError as NoConnection,
)
from opensearchpy.exceptions import (
    ConnectionTimeout,
    ImproperlyConfigured,
    OpenSearchException,
    SSLError,
)
from opensearchpy.serializer import JSONSerializer

from setl.errors import ConfigurationError, SetlError, TransientError, UntrustedServerError
from setl.systems.opensearch.product import OPENSEARCH, AwsLogin, is_opensearch
from setl.systems.opensearch.signing import signer
from setl.systems.search_index.bounded import BoundedAnswer, BoundedPool, OtherProductError, name_at
from setl.systems.search_index.errors import NOT_FOUND
from setl.systems.search_index.port import JSON, Answer, ClusterEndpoint

_OF_ELASTICSEARCH: Final = "x-elastic-product"  # is on every answer of Elasticsearch
_CONNECTIONS: Final = 10
_PORT: Final = 9200
_OK: Final = 200


class OpenSearchConnection:
    """The `Connection` over OpenSearch's client."""

    def __init__(self, endpoint: ClusterEndpoint, aws: AwsLogin | None = None) -> None:
        """Connect to nothing yet; requests are signed if `aws` is given.

        Raises:
            ConfigurationError: an address or a certificate file is wrong, or this machine has
                nothing to sign requests with.
        """
        self._endpoint = endpoint
        self._client = _client(endpoint, aws)

    def ask(
        self, method: str, path: str, params: Mapping[str, str], body: bytes | None, kind: str
    ) -> Answer:
        """See `Connection.ask`."""
        headers = {"accept": JSON, "content-type": kind}
        transport: Any = self._client.transport
        try:
            # The client takes some parameters out of what it is given.
            found = transport.perform_request(
                method, path, params=dict(params), body=body, headers=headers
            )
        except TransportError as error:
            if isinstance(error.status_code, int):
                return Answer(error.status_code, _bytes(error.info))
            raise translate(error).at(server=self._endpoint) from error
        except OpenSearchException as error:
            raise translate(error).at(server=self._endpoint) from error
        if isinstance(found, bool):
            return Answer(_OK if found else NOT_FOUND, b"")
        return Answer(_OK, _bytes(found))

    def close(self) -> None:
        """See `Connection.close`."""
        self._client.close()


def _bytes(body: object) -> bytes:
    """A body as it came; the client makes text of it."""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else b""


class _AsSent(JSONSerializer):
    """Leaves answers to those who know what is in them."""

    def loads(self, s: str) -> Any:
        """The answer's text."""
        return s


class _BoundedConnection(Urllib3HttpConnection):
    """One server, whose answers are checked; for `connection_class` of the client."""

    pool: Any

    def _create_urllib3_pool(self) -> None:
        """Called whenever there is none, also after a close."""
        super()._create_urllib3_pool()
        self._plain = self.pool
        self._is_known = False
        self.pool = BoundedPool(self._plain, self._product_of, OPENSEARCH.name)

    def _product_of(self, answer: BoundedAnswer, sent: Any) -> str:
        """OpenSearch's answers have no sign; a proxy may give them Elasticsearch's."""
        if _OF_ELASTICSEARCH in answer.headers and not self._is_known:
            name = name_at(self._plain, sent)
            if name and not is_opensearch(name):
                raise OtherProductError(f"the server is Elasticsearch ({name})")
            self._is_known = bool(name)
        return OPENSEARCH.name

    def log_request_success(self, *_: Any, **__: Any) -> None:
        """Nothing: the client would make text of each body first, rows of tables in it."""

    def log_request_fail(self, *_: Any, **__: Any) -> None:
        """Nothing: who asks says what failed, and may expect it, as where an index is missing."""

    def _raise_error(
        self, status_code: int, raw_data: str | bytes, content_type: str | None = None
    ) -> NoReturn:
        """Pass a refusal on as it came: the client fails at one that is JSON, but no object."""
        del content_type
        raise TransportError(status_code, "", raw_data)


def _client(endpoint: ClusterEndpoint, aws: AwsLogin | None) -> OpenSearch:
    options: dict[str, Any] = {}
    if aws is not None:
        options["http_auth"] = signer(aws, str(endpoint))
    try:
        if any(host.startswith("https:") for host in endpoint.hosts):
            authorities = endpoint.ca_certs or None
            options["ssl_context"] = ssl.create_default_context(cafile=authorities)
        return OpenSearch(
            [_address(host, endpoint) for host in endpoint.hosts],
            timeout=endpoint.request_timeout,
            connection_class=_BoundedConnection,
            max_retries=max(0, len(endpoint.hosts) - 1),
            retry_on_status=(),
            pool_maxsize=_CONNECTIONS,
            serializer=_AsSent(),
            **options,
        )
    except (ValueError, OSError, ImproperlyConfigured) as error:
        raise ConfigurationError(
            f"no OpenSearch client can be made from this address: {error}",
            hint="Write hosts as http://name:9200 or https://name:443, and see that `ca_certs` is"
            " a file of certificates",
            server=endpoint,
        ) from error


def _address(host: str, endpoint: ClusterEndpoint) -> dict[str, Any]:
    """One server, as the client wants it."""
    parts = urlsplit(host)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{parts.hostname or host[:40]} has no scheme and name")
    secure = parts.scheme == "https"
    found: dict[str, Any] = {
        "host": parts.hostname,
        "port": parts.port or (443 if secure else _PORT),
        "use_ssl": secure,
        "url_prefix": parts.path.rstrip("/"),
    }
    if endpoint.user:
        # The client would only take what ISO 8859-1 has.
        login = b64encode(f"{endpoint.user}:{endpoint.password}".encode()).decode()
        found["headers"] = {"authorization": f"Basic {login}"}
    return found


def translate(error: Exception) -> SetlError:
    """The kind of setl error that an error of the client is, if no server has answered."""
    if not isinstance(error, NoConnection):
        return TransientError(f"OpenSearch: {type(error).__name__}")
    cause: object = error.info
    if isinstance(cause, OtherProductError):
        return ConfigurationError(
            f"OpenSearch: {cause}", hint="Write `type: elasticsearch` for this target"
        )
    if isinstance(error, SSLError):
        untrusted = "CERTIFICATE_VERIFY_FAILED" in str(cause)
        kind = UntrustedServerError if untrusted else ConfigurationError
        return kind(f"OpenSearch: {cause}", hint="Check https, and `ca_certs`")
    if isinstance(error, ConnectionTimeout):
        return TransientError("OpenSearch: no answer in time")
    return TransientError(f"OpenSearch: no connection: {cause}")
