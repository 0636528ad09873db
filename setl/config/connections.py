"""The ends of a pipeline as the values with which connections are opened."""

from __future__ import annotations

from typing import Any

from setl.config.endpoints import DtsSource, ElasticsearchTarget, MysqlSource, MysqlTarget
from setl.elastic.client import ElasticEndpoint
from setl.mysql.connection import MysqlEndpoint


def mysql_endpoint(end: MysqlSource | MysqlTarget) -> MysqlEndpoint:
    """The server of a MySQL source or target."""
    return MysqlEndpoint(
        host=end.host, port=end.port, user=end.user, password=end.password, ssl_ca=end.ssl_ca
    )


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


def kafka_settings(source: DtsSource) -> dict[str, Any]:
    """Settings of kafka-python's consumer for a DTS subscription.

    With an account, DTS wants SASL PLAIN over plain text and calls it ``user-sid``; the sid
    alone is the consumer group. What stands under `kafka` in the channel file wins; its names
    may be written with dots, as in Java.
    """
    settings: dict[str, Any] = {
        "bootstrap_servers": list(source.brokers),
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }
    if source.sid:
        settings["group_id"] = source.sid
    if source.user:
        name = f"{source.user}-{source.sid}" if source.sid else source.user
        settings |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": name,
            "sasl_plain_password": source.password,
        }
    return settings | {name.replace(".", "_"): value for name, value in source.kafka.items()}
