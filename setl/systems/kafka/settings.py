"""The settings by which clients of Kafka reach the brokers that a channel file names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from setl.channel.fields.kafka_endpoints import KafkaSource, KafkaTarget

# Names of kafka-python's, which sources used to be read with, that librdkafka has others for.
# The rest differ in underscores and dots only.
_RENAMED: Final = {
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "receive_buffer_bytes": "socket.receive.buffer.bytes",
    "request_timeout_ms": "socket.timeout.ms",
    "sasl_plain_password": "sasl.password",
    "sasl_plain_username": "sasl.username",
    "send_buffer_bytes": "socket.send.buffer.bytes",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_ciphers": "ssl.cipher.suites",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}


def source_settings(source: KafkaSource) -> dict[str, Any]:
    """Settings of librdkafka's consumer for a DTS subscription.

    DTS calls an account ``user-sid``; the sid alone is the consumer group. What stands under
    `kafka` in the channel file wins; its names may be written with underscores, or be those of
    kafka-python where it has the same setting.
    """
    settings: dict[str, Any] = {
        **_brokers(source),
        # The client wants a group; without `sid` nothing is kept under it.
        "group.id": source.sid or "setl",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "allow.auto.create.topics": False,
        # What a relay wrote in a transaction that was not committed is written again after it.
        "isolation.level": "read_committed",
    }
    if source.user:
        name = f"{source.user}-{source.sid}" if source.sid else source.user
        settings |= _account(source, name)
    own: dict[str, Any] = {}
    for name, value in source.kafka.items():
        plain = name.replace(".", "_")
        if plain == "ssl_check_hostname":
            own["ssl.endpoint.identification.algorithm"] = "https" if value else "none"
        else:
            own[_RENAMED.get(plain, plain.replace("_", "."))] = value
    return _encrypted(settings, own)


def target_settings(target: KafkaTarget) -> dict[str, Any]:
    """Settings by which librdkafka's clients reach the brokers of a relay's topic.

    What stands under `kafka` in the channel file wins; its names may be written with underscores.
    """
    settings = _brokers(target)
    if target.user:
        settings |= _account(target, target.user)
    own = {name.replace("_", "."): value for name, value in target.kafka.items()}
    return _encrypted(settings, own)


def _encrypted(settings: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """All settings; with TLS where the channel file names something of it, and no protocol.

    librdkafka skips it else, and sends everything in clear.
    """
    protocol = str(settings["security.protocol"])
    if any(name.startswith("ssl.") for name in own):
        protocol = protocol.replace("PLAINTEXT", "SSL")
    return {**settings, "security.protocol": protocol, **own}


def _brokers(end: KafkaSource | KafkaTarget) -> dict[str, Any]:
    transport = "SSL" if end.ssl_ca else "PLAINTEXT"
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(end.brokers),
        "security.protocol": f"SASL_{transport}" if end.user else transport,
    }
    if end.ssl_ca:
        settings["ssl.ca.location"] = end.ssl_ca
    return settings


def _account(end: KafkaSource | KafkaTarget, name: str) -> dict[str, Any]:
    return {
        "sasl.mechanism": end.mechanism,
        "sasl.username": name,
        "sasl.password": end.password,
    }
