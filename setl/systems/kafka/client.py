"""One client of a topic: librdkafka's consumer, with limits, and errors that have a kind.

What brokers are asked, and commits, are here; reading is in `setl.systems.kafka.reader`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection
from confluent_kafka import TopicPartition as ConsumerPartition
from confluent_kafka.admin import AdminClient

from setl.errors import SetlError, TransientError
from setl.model.position import KafkaOrigin
from setl.systems.kafka.connections import Connections, wrong_setting
from setl.systems.kafka.errors import commit_error, error_of, translate

_T = TypeVar("_T")

_SLICE: Final = 0.25  # seconds of a question, after which it is looked why nobody answers
_LEAST: Final = 0.05  # seconds that a question is given at least
_REACHING: Final = ("bootstrap.", "security.", "ssl.", "sasl.", "client.", "broker.", "socket.")

_DEFAULTS: Final[Mapping[str, Any]] = {
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 20,
    # Read ahead, unpacked: more would have left the processor's caches when it is used.
    "queued.max.messages.kbytes": 8 * 1024,
    # More than was asked for may come: a batch of records is never divided, and some brokers
    # send what they have. The client would refuse that answer each time, for ever.
    "receive.message.max.bytes": 1 << 30,
    "check.crcs": True,
    "reconnect.backoff.max.ms": 1000,
    "enable.partition.eof": True,
    # An expired place is an error, never a jump (I8).
    "auto.offset.reset": "error",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a partition holds.

    Attributes:
        first: the first offset that is kept.
        end: the offset of the next record to come, or of the first that is not committed.
    """

    first: int
    end: int


def admin_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of a consumer's settings, those by which any client reaches the brokers."""
    return {name: value for name, value in settings.items() if name.startswith(_REACHING)}


class TopicClient:
    """Asks brokers about one topic, and commits for a group.

    Belongs to one thread.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, timeout: float) -> None:
        """Nothing is asked yet.

        Args:
            settings: librdkafka's, see `source_settings`.
            topic: the topic.
            timeout: seconds to wait for any answer of a broker.

        Raises:
            ConfigurationError: a setting is wrong.
        """
        self._topic = topic
        self._timeout = timeout
        self._settings = {**_DEFAULTS, **settings}
        self._connections = Connections()
        self._ahead: list[Message] = []  # taken while the client was asked something else
        self._origin: KafkaOrigin | None = None
        self._admin: AdminClient | None = None
        self._committing: list[Callable[[SetlError | None], None]] = []
        own = {"error_cb": self._connections.heard, "on_commit": self._committed}
        try:
            self._consumer = Consumer({**self._settings, **own}, logger=self._connections.logger())
        except (KafkaException, TypeError, ValueError) as error:
            raise wrong_setting(error) from error

    def partitions(self) -> set[int]:
        """The numbers of the topic's partitions; none if the brokers have no such topic.

        Raises:
            SetlError: as all questions: `ConfigurationError` if the brokers refuse,
                `TransientError` if they do not answer.
        """
        found = self._metadata().topics[self._topic]
        if found.error is None:
            return set(found.partitions)
        if found.error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            return set()
        raise translate(found.error, "source")

    @property
    def origin(self) -> KafkaOrigin:
        """The cluster and topic that answered the first time that this was asked."""
        if self._origin is None:
            self._origin = self.ask_origin()
        return self._origin

    def ask_origin(self) -> KafkaOrigin:
        """The cluster and topic that answer now, as far as brokers tell."""
        return KafkaOrigin(str(self._metadata().cluster_id or ""), self._topic_id())

    def bounds(self, partition: int) -> Bounds:
        """What a partition holds now."""
        committed = ConsumerPartition(self._topic, partition)
        return Bounds(
            *self._asked(
                lambda limit: self._consumer.get_watermark_offsets(committed, timeout=limit)
            )
        )

    def offset_since(self, partition: int, seconds: float) -> int | None:
        """The first offset whose record Kafka dates at or after a time, None if there is none."""
        wanted = [ConsumerPartition(self._topic, partition, int(max(0.0, seconds) * 1000))]
        [found] = self._asked(lambda limit: self._consumer.offsets_for_times(wanted, timeout=limit))
        if found.error is not None:
            raise translate(found.error, "source")
        return None if found.offset < 0 else found.offset

    def committed(self, partition: int) -> tuple[int, str] | None:
        """The offset and the metadata that the group has committed, if it has.

        Bytes that nobody committed may follow the metadata, so only a form that says where it
        ends can be read. The client library takes it for a string of C, but other clients commit
        it without the zero at its end. (librdkafka's issue 4649; setl's own have one.)
        """
        wanted = [ConsumerPartition(self._topic, partition)]
        [found] = self._asked(lambda limit: self._consumer.committed(wanted, timeout=limit))
        if found.error is not None:
            raise translate(found.error, "source")
        return None if found.offset < 0 else (found.offset, _text(found))

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        """Commit an offset for the group, and wait for the answer.

        Raises:
            TransientError: this is no member, and the group has some; or no answer.
            SetlError: see `commit_error`.
        """
        answers: list[SetlError | None] = []
        self.send_commit(partition, offset, metadata, answers.append)
        deadline = time.monotonic() + self._timeout
        while not answers:
            if time.monotonic() > deadline:
                raise TransientError("the brokers do not answer to a commit")
            self._serve(_LEAST)
            self._connections.raise_refusal()
        if answers[0] is not None:
            raise answers[0]

    def send_commit(
        self,
        partition: int,
        offset: int,
        metadata: str,
        done: Callable[[SetlError | None], None],
    ) -> None:
        """Commit an offset; `done` is called inside `poll` with the error, None if it is done."""
        committed = ConsumerPartition(self._topic, partition, offset, metadata)
        self._committing.append(done)
        try:
            self._consumer.commit(offsets=[committed], asynchronous=True)
        except KafkaException as error:
            self._committing.pop()
            done(commit_error(error_of(error), self._settings["group.id"]))

    def close(self) -> None:
        """End it: leave the group, and commit nothing."""
        self._admin = None
        self._consumer.close()

    # -- inside -----------------------------------------------------------------------------

    def _metadata(self) -> Any:
        return self._asked(lambda limit: self._consumer.list_topics(self._topic, timeout=limit))

    def _topic_id(self) -> str:
        if self._admin is None:
            own = admin_settings(self._settings)
            self._admin = AdminClient(own, logger=self._connections.logger())
        admin, wanted = self._admin, TopicCollection([self._topic])
        try:
            # Ids of topics came with Kafka 2.8; older ones answer that they know no such request.
            asked = admin.describe_topics(wanted, request_timeout=self._timeout)
            found = asked[self._topic].result(self._timeout).topic_id
        except (KafkaException, TimeoutError):
            return ""
        bits = (found.get_most_significant_bits() << 64) + found.get_least_significant_bits()
        bits %= 1 << 128
        return str(uuid.UUID(int=bits)) if bits else ""

    def _asked(self, question: Callable[[float], _T]) -> _T:
        """The answer to a question that takes its limit, asked again while none comes."""
        deadline = time.monotonic() + self._timeout
        while True:
            began = time.monotonic()
            left = deadline - began
            try:
                return question(max(_LEAST, min(left, _SLICE)))
            except KafkaException as error:
                # The client tells now why nobody answers.
                self._serve(0)
                self._connections.raise_refusal()
                kind = translate(error_of(error), "source")
                if not isinstance(kind, TransientError):
                    raise kind from error
                if time.monotonic() >= deadline:
                    raise self._connections.instead_of(kind) from error
                time.sleep(max(0.0, min(_LEAST, left) - (time.monotonic() - began)))

    def _serve(self, pause: float) -> None:
        """Let the client report; what it gives out instead is kept."""
        message = self._consumer.poll(pause)
        if message is not None:
            self._ahead.append(message)

    def _committed(self, error: KafkaError | None, _: Any) -> None:
        """Librdkafka's `on_commit`, in the order of the commits."""
        if self._committing:
            group = self._settings["group.id"]
            self._committing.pop(0)(None if error is None else commit_error(error, group))


def _text(committed: ConsumerPartition) -> str:
    """The metadata of a committed place, with what follows it."""
    try:
        return committed.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")
