"""The cluster of a target, as its channel file describes it."""

from __future__ import annotations

from setl.channel.fields.endpoints import ElasticsearchTarget
from setl.systems.elasticsearch.client import ElasticEndpoint


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
