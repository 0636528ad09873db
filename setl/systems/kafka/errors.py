"""One place where the errors of librdkafka get their kind, and where its log goes."""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from setl.errors import (
    ConfigurationError,
    DataError,
    FatalError,
    FencedError,
    SetlError,
    TransientError,
)

LOGGER: Final = logging.getLogger(__name__.rpartition(".")[0] + ".librdkafka")
"""Where clients write what they would print otherwise. They leave passwords out."""

# Errors go by their names here: the constants of librdkafka's own begin with an underscore.
# A transaction that outlived its limit at the broker is answered in the same way as one of a
# former leader. It cannot be distinguished, and to try again might fence the leader that there is.
_FENCED = frozenset(("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"))
_UNSUPPORTED = frozenset(
    ("_UNSUPPORTED_FEATURE", "UNSUPPORTED_FOR_MESSAGE_FORMAT", "UNSUPPORTED_VERSION")
)
_CONFIGURATION = _UNSUPPORTED | {
    "_AUTHENTICATION", "_INVALID_ARG", "_SSL", "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED", "ILLEGAL_SASL_STATE", "INVALID_CONFIG", "INVALID_PARTITIONS",
    "INVALID_REPLICATION_FACTOR", "INVALID_REQUIRED_ACKS", "INVALID_TRANSACTION_TIMEOUT",
    "POLICY_VIOLATION", "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED",
    "TOPIC_EXCEPTION", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "UNSUPPORTED_COMPRESSION_TYPE",
    "UNSUPPORTED_SASL_MECHANISM",
}  # fmt: skip
_MEMBERS = (
    "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
    "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID",
)  # fmt: skip
_TOO_LARGE = frozenset(("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"))
_REFUSED = frozenset(("INVALID_MSG", "INVALID_RECORD", "INVALID_TIMESTAMP"))
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


def translate(error: KafkaError, end: str = "target") -> SetlError:
    """The kind of setl error that an error of librdkafka is.

    Args:
        error: the client's.
        end: of which end of a pipeline, as hints call it.
    """
    code, text = error.name(), f"{error.str()} [{error.name()}]"
    if code in _FENCED:
        return FencedError(f"another relay writes to the topic now: {text}")
    if code in _UNSUPPORTED:
        return ConfigurationError(
            f"the brokers cannot do what is asked: {text}",
            hint="Write `delivery: idempotent`, or `one_in_flight` if that is refused too",
        )
    if code in _CONFIGURATION:
        return ConfigurationError(
            f"Kafka refuses: {text}", hint=f"Check account, topic and settings of the {end}"
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


def commit_error(error: KafkaError, group: str) -> SetlError:
    """The kind of setl error that a refused commit is."""
    name = error.name()
    if name in _MEMBERS:
        return TransientError(
            f"Kafka takes commits for the group {group} from its present members only:"
            f" {error.str()}",
            hint="End the other clients of the group, or choose `mode: subscribe`; a client that"
            " was killed counts as a member until its session ends",
        )
    if name in ("OFFSET_METADATA_TOO_LARGE", "INVALID_COMMIT_OFFSET_SIZE"):
        return FatalError(
            f"the broker refuses the size of a checkpoint: {error.str()}",
            hint="Raise offset.metadata.max.bytes there, or choose another `checkpoint`",
        )
    return translate(error, "source")


class ClientErrors:
    """What clients report beside their answers: why no broker answers, above all.

    librdkafka goes on trying after a refused login, so the call that waits only ends with its
    limit; the reason was told here. That all brokers are down, which it tells after the reason why
    it could not use them, is no reason by itself.

    Attributes:
        count: of all complaints so far.
    """

    def __init__(self) -> None:
        self._last: KafkaError | None = None
        self._last_at = 0
        self.count = 0

    def heard(self, error: KafkaError) -> None:
        """Keep an error; librdkafka's `error_cb`, called inside `poll`."""
        self.count += 1
        if error.name() != "_ALL_BROKERS_DOWN":
            self._last, self._last_at = error, self.count

    def instead_of(self, late: SetlError, since: int) -> SetlError:
        """The error to raise for a wait without an answer, which began at that `count`."""
        if self.count == since:
            return late
        if self._last is None or self._last_at <= since:
            return TransientError(f"{late.message}: all brokers are down")
        reason = translate(self._last)
        if isinstance(reason, ConfigurationError):
            return reason
        return TransientError(f"{late.message}: {self._last.str()}")
