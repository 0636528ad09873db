"""Sends requests to Elasticsearch with its own client, and translates that client's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from elastic_transport import ConnectionError as NoConnection
from elastic_transport import (
    ConnectionTimeout,
    NodeConfig,
    TlsError,
    TransportError,
    Urllib3HttpNode,
)
from elasticsearch import ApiError, Elasticsearch, UnsupportedProductError
from elasticsearch.serializer import JsonSerializer
from typing_extensions import override

from setl.errors import ConfigurationError, SetlError, TransientError, UntrustedServerError
from setl.systems.elasticsearch.pages import PointsInTime
from setl.systems.search_index.bounded import (
    BoundedAnswer,
    BoundedPool,
    OtherProductError,
    is_object,
    name_at,
)
from setl.systems.search_index.port import JSON, Answer, ClusterEndpoint, Product

if TYPE_CHECKING:
    from setl.channel.fields.endpoints import ElasticsearchTarget


def _is_own(name: str) -> bool:
    # An OpenSearch that claims to be Elasticsearch 7.10, for old clients, still says its name.
    return "opensearch" not in name.lower()


ELASTICSEARCH: Final = Product("Elasticsearch", (8, 0), "elasticsearch", _is_own)

_HEADER: Final = "x-elastic-product"  # is on every answer of Elasticsearch


@dataclass(frozen=True, slots=True)
class ElasticEndpoint(ClusterEndpoint):
    """A cluster of Elasticsearch; see `ClusterEndpoint`.

    Attributes:
        api_key: used instead of user and password if not "".
    """

    product = ELASTICSEARCH
    pages = PointsInTime()

    api_key: str = field(default="", repr=False)

    @override
    def connect(self) -> ElasticConnection:
        return ElasticConnection(self)


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


class ElasticConnection:
    """The `Connection` over Elasticsearch's client."""

    def __init__(self, endpoint: ElasticEndpoint) -> None:
        """Connect to nothing yet.

        Raises:
            ConfigurationError: an address or a certificate file is wrong.
        """
        self._endpoint = endpoint
        self._client = _client(endpoint)

    def ask(
        self, method: str, path: str, params: Mapping[str, str], body: bytes | None, kind: str
    ) -> Answer:
        """See `Connection.ask`."""
        headers = {"accept": JSON} if body is None else {"accept": JSON, "content-type": kind}
        try:
            answer = self._client.perform_request(
                method, path, params=params, headers=headers, body=body
            )
        except ApiError as error:
            return Answer(error.meta.status, _bytes(error.body))
        except (TransportError, UnsupportedProductError) as error:
            raise translate(error).at(server=self._endpoint) from error
        return Answer(answer.meta.status, _bytes(answer.body))

    def close(self) -> None:
        """See `Connection.close`."""
        self._client.close()


def _bytes(body: object) -> bytes:
    """A body as it came; that of a HEAD is whether the answer was a good one."""
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else b""


class _AsSent(JsonSerializer):
    """Leaves answers to those who know what is in them."""

    def loads(self, data: bytes) -> Any:
        """The answer's bytes."""
        return data


def _client(endpoint: ElasticEndpoint) -> Elasticsearch:
    options: dict[str, Any] = {}
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
            node_class=_BoundedNode,
            max_retries=max(0, len(endpoint.hosts) - 1),
            retry_on_status=(),
            serializers={JSON: _AsSent()},
            **options,
        )
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"no Elasticsearch client can be made from this address: {error}",
            hint="Write hosts as http://name:9200 or https://name:9200",
            server=endpoint,
        ) from error


class _BoundedNode(Urllib3HttpNode):
    """One server, whose answers are checked; for `node_class` of the client."""

    def __init__(self, config: NodeConfig) -> None:
        """See `Urllib3HttpNode`."""
        super().__init__(config)
        plain: Any = self.pool

        def whose(answer: BoundedAnswer, sent: Any) -> str:
            if _HEADER in answer.headers:
                return ELASTICSEARCH.name
            # 406: OpenSearch does not know the content types of Elasticsearch.
            if answer.status == 406 or (200 <= answer.status < 300 and is_object(answer)):
                name = name_at(plain, sent)
                if not _is_own(name):
                    raise OtherProductError(f"the server is {name}")
            return ""

        self.pool: Any = BoundedPool(plain, whose, ELASTICSEARCH.name)


def translate(error: Exception) -> SetlError:
    """The kind of setl error that an error of the client is."""
    if isinstance(error, UnsupportedProductError):
        return TransientError("the server is not Elasticsearch", hint="Check `hosts`")
    for cause in _causes(error):
        if isinstance(cause, OtherProductError):
            return ConfigurationError(
                f"Elasticsearch: {cause}", hint="Write `type: opensearch` for this target"
            )
    if isinstance(error, TlsError):
        untrusted = "CERTIFICATE_VERIFY_FAILED" in error.message
        kind = UntrustedServerError if untrusted else ConfigurationError
        return kind(f"Elasticsearch: {error.message}", hint="Check https, and `ca_certs`")
    if isinstance(error, ConnectionTimeout):
        return TransientError("Elasticsearch: no answer in time")
    if isinstance(error, NoConnection):
        return TransientError(f"Elasticsearch: no connection: {error.message}")
    return TransientError(f"Elasticsearch: {error}")


def _causes(error: Exception) -> Iterator[BaseException | None]:
    """What an error of the client was made of: with several servers, those of each of them."""
    others: tuple[Exception, ...] = getattr(error, "errors", ())
    for each in (error, *others):
        yield each.__cause__
