"""One place where the errors of librdkafka get their kind, and where its log goes."""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from setl.errors import ConfigurationError, DataError, FencedError, SetlError, TransientError

LOGGER: Final = logging.getLogger(__name__.rpartition(".")[0] + ".librdkafka")
"""Where clients write what they would print otherwise. They leave passwords out."""

# A transaction that outlived its limit at the broker is answered in the same way as one of a
# former leader. It cannot be told apart, and to try again might fence the leader that there is.
_FENCED = frozenset({
    KafkaError._FENCED,  # noqa: SLF001 - librdkafka's own errors are named so
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
})  # fmt: skip
_UNSUPPORTED = frozenset({
    KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    KafkaError.UNSUPPORTED_VERSION,
})  # fmt: skip
_CONFIGURATION = _UNSUPPORTED | {
    KafkaError._AUTHENTICATION,  # noqa: SLF001
    KafkaError._INVALID_ARG,  # noqa: SLF001
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_REQUIRED_ACKS,
    KafkaError.INVALID_TRANSACTION_TIMEOUT,
    KafkaError.POLICY_VIOLATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_REFUSED = frozenset({
    KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP
})  # fmt: skip
# Warnings at each start, about settings that are meant: that a guarantee is experimental, and
# that the consumer, which is given the producer's settings too, has no use for them.
_MEANT = ("enable.gapless.guarantee is experimental", "is a producer property")


def _worth_logging(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    return not any(phrase in text for phrase in _MEANT)


LOGGER.addFilter(_worth_logging)


def error_of(exception: KafkaException) -> KafkaError:
    """What an exception of librdkafka carries."""
    return exception.args[0]


def translate(error: KafkaError) -> SetlError:
    """The kind of setl error that an error of librdkafka is."""
    code, text = error.code(), f"{error.str()} [{error.name()}]"
    if code in _FENCED:
        return FencedError(f"another relay writes to the topic now: {text}")
    if code in _UNSUPPORTED:
        return ConfigurationError(
            f"the brokers cannot do what is asked: {text}",
            hint="Write `delivery: idempotent`, or `one_in_flight` if that is refused too",
        )
    if code in _CONFIGURATION:
        return ConfigurationError(
            f"Kafka refuses: {text}", hint="Check account, topic and settings of the target"
        )
    if code in _TOO_LARGE:
        return DataError(
            f"a record is too large: {text}",
            hint="Raise `max.message.bytes` of the topic, and above 16 MiB `message.max.bytes`"
            " under `kafka` too",
        )
    if code in _REFUSED:
        return DataError(f"Kafka refuses a record: {text}")
    # The rest is retriable, or an answer that no broker should give; a new producer, and
    # perhaps another broker, may do better.
    return TransientError(f"Kafka does not answer as it should: {text}")


class Complaints:
    """What clients report beside their answers: why no broker answers, above all.

    librdkafka goes on trying after a refused login, so the call that waits only ends with its
    limit; the reason was told here.

    Attributes:
        count: of all complaints so far.
    """

    def __init__(self) -> None:
        self._last: KafkaError | None = None
        self.count = 0

    def heard(self, error: KafkaError) -> None:
        """Keep an error; librdkafka's `error_cb`, called inside `poll`."""
        self._last = error
        self.count += 1

    def instead_of(self, late: SetlError, since: int) -> SetlError:
        """The error to raise for a wait without an answer, which began at that `count`."""
        if self._last is None or self.count == since:
            return late
        reason = translate(self._last)
        if isinstance(reason, ConfigurationError):
            return reason
        return TransientError(f"{late.message}: {self._last.str()}")
