"""One way to make a consumer, and one place where Kafka's errors get their kind."""

from __future__ import annotations

from collections.abc import Mapping
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

from setl.errors import ConfigurationError, FatalError, SetlError, TransientError
from setl.model.position import KafkaOrigin
from setl.systems.kafka import scram
from setl.systems.kafka.aborted import heed_ends
from setl.systems.kafka.refusals import ClientMaker, RefusedError
from setl.systems.kafka.unpacking import unpack_fast

_CONFIGURATION = (
    AuthorizationError,
    IllegalSaslStateError,
    InvalidTopicError,
    SaslAuthenticationFailedError,
    UnsupportedCodecError,
    UnsupportedSaslMechanismError,
)

scram.register()

FEW: Mapping[str, Any] = {"max_partition_fetch_bytes": 256 * 1024, "fetch_max_wait_ms": 50}
"""For consumers that look at single records: less is fetched that nobody reads."""


def consumer_settings(settings: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """The keyword arguments of `KafkaConsumer`: what is always right, then `settings`."""
    milliseconds = int(timeout * 1000)
    defaults: dict[str, Any] = {
        # Without native code a checksum costs more than all the rest of reading a record
        # (measured: 20,000 records/s with it, 139,000 without); TCP and the broker check too.
        "check_crcs": find_spec("crc32c") is not None,
        "request_timeout_ms": milliseconds,
        "bootstrap_timeout_ms": milliseconds,
        "reconnect_backoff_max_ms": 1000,
        "max_partition_fetch_bytes": 8 * 1024 * 1024,
        # More than was asked for may come: a batch of records is never divided, and some brokers
        # send what they have. The client would refuse that answer each time, for ever.
        "receive_message_max_bytes": 1 << 30,
        "metrics_enabled": False,
        # An expired place is an error, never a jump (I8).
        "auto_offset_reset": "none",
    }
    return {**defaults, **settings}


def connect(settings: Mapping[str, Any], timeout: float) -> Any:
    """A consumer without an assignment.

    Args:
        settings: of kafka-python's KafkaConsumer; they win over `consumer_settings`.
        timeout: seconds to wait for any answer of a broker.

    Raises:
        ConfigurationError: a setting is wrong, or the account is refused, or the certificate is
            not trusted; after a moment, since trying again would not help.
        TransientError: no broker answers within `timeout` seconds.
    """
    maker = ClientMaker()
    make: Any = KafkaConsumer  # its settings come by name, from the channel file too
    try:
        consumer = make(**consumer_settings(settings, timeout), kafka_client=maker)
    except BaseException as error:
        maker.close()
        if isinstance(error, KafkaError):
            raise translate(error, maker.last_failure) from error
        if isinstance(error, TypeError | ValueError | AssertionError | OSError):
            raise _wrong_setting(error) from error
        raise
    unpack_fast(consumer)
    heed_ends(consumer)
    return consumer


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


def translate(error: KafkaError, last_failure: str = "") -> SetlError:
    """The kind of setl error that an error of the client is.

    Args:
        error: what kafka-python raised.
        last_failure: what the last connection failed of, where that is known.
    """
    if isinstance(error, RefusedError):
        reason = error.reason
        return ConfigurationError(reason.message, hint=reason.hint)
    if isinstance(error, KafkaConfigurationError):
        return _wrong_setting(error)
    text = str(error)
    if isinstance(error, _CONFIGURATION):
        return ConfigurationError(
            f"Kafka refuses: {text}", hint="Check account, topic and settings of the source"
        )
    if isinstance(error, CorruptRecordError):
        return FatalError(f"Kafka delivers a damaged record: {text}")
    # The rest is retriable, or an answer that no broker should give; it may be another one
    # that answers next time.
    if last_failure:
        # Brokers close a connection that speaks no TLS, or does not log in, without a word.
        return TransientError(
            f"Kafka does not answer as it should: {text}; the last connection failed: "
            f"{last_failure}",
            hint="Check `brokers`, and whether they ask for TLS (`ssl_ca`) or an account (`user`)",
        )
    return TransientError(f"Kafka does not answer as it should: {text}")


def _wrong_setting(error: BaseException) -> ConfigurationError:
    what = ", ".join(map(str, error.args))
    return ConfigurationError(
        f"a Kafka setting is wrong: {what}",
        hint="They are named and written as in kafka-python's KafkaConsumer",
    )
