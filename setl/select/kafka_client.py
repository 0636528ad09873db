"""One way to connect to Kafka, and one place where its errors get their kind."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import (
    AuthorizationError,
    CorruptRecordError,
    IllegalSaslStateError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedCodecError,
    UnsupportedSaslMechanismError,
)
from kafka.structs import TopicPartition

from setl.config.channel import DtsSource
from setl.config.connections import kafka_settings
from setl.errors import ConfigurationError, FatalError, SetlError, TransientError
from setl.model.position import KafkaOrigin

_CONFIGURATION = (
    AuthorizationError,
    IllegalSaslStateError,
    InvalidTopicError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
    UnsupportedCodecError,
    UnsupportedSaslMechanismError,
)


def client_settings(source: DtsSource, timeout: float) -> dict[str, Any]:
    """The keyword arguments of `KafkaConsumer`: ours, then the channel file's."""
    milliseconds = int(timeout * 1000)
    defaults: dict[str, Any] = {
        # Without native code a checksum costs more than all the rest of reading a record
        # (measured: 20,000 records/s with it, 139,000 without); TCP and the broker check too.
        "check_crcs": find_spec("crc32c") is not None,
        "request_timeout_ms": milliseconds,
        "bootstrap_timeout_ms": milliseconds,
        "reconnect_backoff_max_ms": 1000,
        "max_partition_fetch_bytes": 8 * 1024 * 1024,
        "metrics_enabled": False,
        # An expired place is an error, never a jump (I8).
        "auto_offset_reset": "none",
    }
    return defaults | kafka_settings(source)


def connect(source: DtsSource, timeout: float) -> Any:
    """A consumer without an assignment.

    Raises:
        ConfigurationError: a setting is wrong, or the account is refused.
        TransientError: no broker answers within `timeout` seconds.
    """
    settings = client_settings(source, timeout)
    where: dict[str, object] = {"brokers": ",".join(source.brokers), "topic": source.topic}
    try:
        return KafkaConsumer(**settings)
    except KafkaError as error:
        raise translate(error).at(**where) from error
    except (TypeError, ValueError, AssertionError, OSError) as error:
        raise ConfigurationError(
            f"a Kafka setting is wrong: {error}",
            hint="They are named and written as in kafka-python's KafkaConsumer",
        ).at(**where) from error


def origin_of(consumer: Any, topic: str) -> KafkaOrigin:
    """Which cluster and topic a consumer has last heard of, as far as brokers tell.

    kafka-python keeps both and has no call for them.
    """
    cluster = consumer._cluster  # noqa: SLF001
    # Ids of topics came with Kafka 2.8 and a newer request than clients of older ones send.
    topic_id = cluster._topic_ids.get(topic)  # noqa: SLF001
    return KafkaOrigin(str(cluster.cluster_id or ""), str(topic_id or ""))


def connection_of(consumer: Any, partition: TopicPartition) -> object | None:
    """The connection over which a partition is read, None if there is none just now.

    After a lost connection the client opens another by itself and reads on at the same
    offset, whichever brokers answer there. This object is how that is noticed.
    """
    manager = consumer._manager  # noqa: SLF001
    leader = manager.cluster.leader_for_partition(partition)
    return manager._conns.get(leader)  # noqa: SLF001


def translate(error: KafkaError) -> SetlError:
    """The kind of setl error that a kafka-python error is."""
    text = str(error)
    if isinstance(error, _CONFIGURATION):
        return ConfigurationError(
            f"Kafka refuses: {text}", hint="Check account, topic and settings of the source"
        )
    if isinstance(error, CorruptRecordError):
        return FatalError(f"Kafka delivers a damaged record: {text}")
    # The rest is retriable, or an answer that no broker should give; it may be another one
    # that answers next time.
    return TransientError(f"Kafka does not answer as it should: {text}")
