"""The settings by which clients of Kafka reach the brokers that a channel file names."""

from __future__ import annotations

from typing import Any

from setl.channel.kafka_ends import DtsSource, DtsTarget


def kafka_settings(source: DtsSource) -> dict[str, Any]:
    """Settings of kafka-python's consumer for a DTS subscription.

    DTS calls an account ``user-sid``; the sid alone is the consumer group. What stands under
    `kafka` in the channel file wins; its names may be written with dots, as in Java.
    """
    settings: dict[str, Any] = {
        "bootstrap_servers": list(source.brokers),
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
        # What a relay wrote in a transaction that was not committed is written again after it.
        "isolation_level": "read_committed",
        "security_protocol": _protocol(source),
    }
    if source.ssl_ca:
        settings["ssl_cafile"] = source.ssl_ca
    if source.sid:
        settings["group_id"] = source.sid
    if source.user:
        name = f"{source.user}-{source.sid}" if source.sid else source.user
        settings |= {
            "sasl_mechanism": source.mechanism,
            "sasl_plain_username": name,
            "sasl_plain_password": source.password,
        }
    return settings | {name.replace(".", "_"): value for name, value in source.kafka.items()}


def librdkafka_settings(target: DtsTarget) -> dict[str, Any]:
    """Settings by which librdkafka's clients reach the brokers of a relay's topic.

    What stands under `kafka` in the channel file wins; its names may be written with underscores.
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(target.brokers),
        "security.protocol": _protocol(target),
    }
    if target.ssl_ca:
        settings["ssl.ca.location"] = target.ssl_ca
    if target.user:
        settings |= {
            "sasl.mechanism": target.mechanism,
            "sasl.username": target.user,
            "sasl.password": target.password,
        }
    return settings | {name.replace("_", "."): value for name, value in target.kafka.items()}


def _protocol(end: DtsSource | DtsTarget) -> str:
    """Kafka's word for how a connection is secured."""
    transport = "SSL" if end.ssl_ca else "PLAINTEXT"
    return f"SASL_{transport}" if end.user else transport
