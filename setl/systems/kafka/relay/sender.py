"""A producer of librdkafka from its start to its first error, one class for each delivery.

librdkafka is the accumulator and the sender: it queues records by partition and sends them in
batches from a thread of its own. What is decided here is when a record counts as written, and
that nothing is written behind a record that was not.

Callbacks are run by `poll`, which stops when the client has a fatal error to raise. `flush` and
`commit_transaction` go on and call them with the exception pending, which Python does not
bear. So these two are called only when no callback is left, or no fatal error can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from setl.codec.dts.relayed import HEADER
from setl.errors import SetlError, TransientError
from setl.systems.kafka.errors import LOGGER, error_of, translate
from setl.systems.kafka.relay.topic import MAX_RECORD
from setl.systems.kafka.relay.waiting import Waiting

_POLL_EVERY: Final = 256  # records; a delivery that was not polled for counts as queued
_GOODBYE: Final = 2.0  # seconds
_SHORT_GOODBYE: Final = 0.2  # seconds, where somebody waits for the end of all writing
_BATCH_BYTES: Final = 900_000  # below the 1 MB that brokers take by default
_BATCH_RECORDS: Final = 5_000
_OVERHEAD: Final = 200  # bytes beside value and key: header, lengths, timestamp

# What only says that something else failed before.
_CONSEQUENCE = frozenset(
    ("_FATAL", "_GAPLESS_GUARANTEE", "_PURGE_INFLIGHT", "_PURGE_QUEUE", "_STATE")
)


class IdempotentSender:
    """For brokers with idempotent producers: several batches in flight, each taken in order, once.

    Where a batch is refused for good, the client stops. It would drop the batch and go on with
    those behind it otherwise.
    """

    def __init__(
        self, settings: Mapping[str, Any], topic: str, waiting: Waiting, transactional_id: str
    ) -> None:
        """Start the producer; nobody is asked yet.

        Args:
            settings: how the brokers are reached, and what the channel file says.
            topic: the topic.
            waiting: the log's.
            transactional_id: the same for all leaders of the relay, and for nobody else.

        Raises:
            ConfigurationError: a setting is wrong.
        """
        defaults = {
            "queue.buffering.max.kbytes": 64 * 1024,
            "message.max.bytes": MAX_RECORD,
        }
        own = {**self._promise(transactional_id), "error_cb": waiting.complaints.heard}
        try:
            self._producer = Producer({**defaults, **settings, **own}, logger=LOGGER)
        except KafkaException as error:
            raise translate(error_of(error)) from error
        self._topic = topic
        self._waiting = waiting
        self._sent = 0
        self._delivered = 0
        self._refused: KafkaError | None = None

    def _promise(self, _transactional_id: str) -> Mapping[str, Any]:
        """The settings that nothing in the channel file may loosen."""
        return {
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            # A batch that waited too long would be dropped in spite of it: none may. The limit
            # is that of `flush`.
            "message.timeout.ms": 0,
        }

    def fence(self) -> None:
        """Keep former leaders from writing, as far as this delivery can."""

    def end_hanging(self, partition: int) -> None:
        """End what a former leader left open in a partition, if a transaction hangs there."""

    def send(
        self,
        partition: int,
        value: bytes | None,
        position: bytes,
        key: bytes | None,
        timestamp_ms: int,
    ) -> None:
        """See `RelayLog.append`; after an error only `close` may be called."""
        for pause in self._waiting.slices("take what is queued"):
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition,
                    on_delivery=self._on_delivery,
                    timestamp=timestamp_ms,
                    headers=[(HEADER, position)],
                )
            except BufferError:
                self._make_room(pause)
            except KafkaException as error:
                raise self._cause(error_of(error)) from error
            else:
                break
        self._sent += 1
        if not self._sent % _POLL_EVERY:
            self._poll(0)

    def flush(self, check: Callable[[], object] | None = None) -> None:
        """See `RelayLog.flush`; after an error only `close` may be called.

        Args:
            check: called while records are on their way; what it raises ends the flush.
        """
        for pause in self._waiting.slices(f"confirm {len(self._producer)} records"):
            if not len(self._producer):
                break
            self._poll(pause)
            if check is not None:
                check()
        if self._delivered != self._sent:
            raise TransientError(f"Kafka confirmed {self._delivered} of {self._sent} records")

    def purge(self) -> None:
        """Drop what is queued and do not repeat what is in flight; from any thread."""
        self._producer.purge(blocking=False)

    def close(self) -> None:
        """Drop what was not flushed."""
        self.purge()
        # Each record in the queue holds its callback, and thereby this object.
        while len(self._producer):
            try:
                if not self._producer.poll(_GOODBYE):
                    break
            except KafkaException as error:
                LOGGER.debug("a producer ends with: %s", error)

    def _poll(self, pause: float) -> None:
        """Let deliveries be reported, and raise the first that failed."""
        try:
            self._producer.poll(pause)
        except KafkaException as error:
            raise self._cause(error_of(error)) from error
        if self._refused is not None:
            raise self._cause(self._refused)

    def _make_room(self, pause: float) -> None:
        """Wait a little for a position in the queue."""
        self._poll(pause)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._delivered += 1
        elif self._refused is None or self._refused.name() in _CONSEQUENCE:
            self._refused = error

    def _cause(self, error: KafkaError) -> SetlError:
        """The error to raise for one that may only follow from another, still to be reported."""
        self._waiting.check()  # what `abandon` dropped failed because of that
        while error.name() in _CONSEQUENCE and len(self._producer):
            try:
                if not self._producer.poll(_GOODBYE):
                    break
            except KafkaException as another:
                error = error_of(another)
            else:
                error = error if self._refused is None else self._refused
        return translate(error)


class TransactionalSender(IdempotentSender):
    """For brokers with transactions: what is flushed at once is seen at once, or never.

    Brokers count the leaders that use a transactional id, and refuse all but the last.
    """

    _open = False

    def _promise(self, transactional_id: str) -> Mapping[str, Any]:
        return {
            "transactional.id": transactional_id,
            # The longest that readers are held up by a leader that died and has no successor.
            # Records that wait longer fail, and their transaction with them.
            "transaction.timeout.ms": 60_000,
        }

    def fence(self) -> None:
        """Fence former leaders, and end the transaction that one may have left open."""
        self._asked_again("end the former relay's transaction", self._producer.init_transactions)

    def end_hanging(self, partition: int) -> None:
        """Abort a transaction with one record, which nobody sees, in that partition.

        A batch may still be on its way when its transaction is aborted. It then opens one in the
        partition that the coordinator does not know of, and readers wait before it for ever.
        (KIP-890 is about this; brokers before Kafka 4 let it happen.) The mark that ends the
        producer's next transaction in this partition ends that one, too.
        """
        try:
            self._producer.begin_transaction()
            self._open = True
            self._producer.produce(self._topic, None, None, partition)
        except KafkaException as error:
            raise self._cause(error_of(error)) from error
        for pause in self._waiting.slices("take a record to abort"):
            if not len(self._producer):
                break
            self._poll(pause)
        self._asked_again("abort", self._producer.abort_transaction)
        self._open = False

    def send(
        self,
        partition: int,
        value: bytes | None,
        position: bytes,
        key: bytes | None,
        timestamp_ms: int,
    ) -> None:
        """See `RelayLog.append`; the first record begins a transaction."""
        if not self._open:
            try:
                self._producer.begin_transaction()
            except KafkaException as error:
                raise self._cause(error_of(error)) from error
            self._open = True
        super().send(partition, value, position, key, timestamp_ms)

    def flush(self, check: Callable[[], object] | None = None) -> None:
        """See `RelayLog.flush`; commits."""
        super().flush(check)
        if self._open:
            self._asked_again("commit", self._producer.commit_transaction)
            self._open = False

    def close(self) -> None:
        """Drop what was not flushed, and abort, so that readers need not wait for a successor.

        After `abandon` too: a client that is let go while it still has a partition to add to its
        transaction ends the process (librdkafka 2.16, an assertion on `txn_req_cnt`). Once it
        aborts, it adds none.
        """
        super().close()
        if self._open:
            limit = _SHORT_GOODBYE if self._waiting.abandoned else _GOODBYE
            try:
                self._producer.abort_transaction(limit)
            except KafkaException as error:
                # The broker aborts it after its timeout, or a successor does when it takes over.
                LOGGER.debug("a transaction was left to the broker: %s", error)

    def _asked_again(self, what: str, call: Callable[[float], None]) -> None:
        """Call what goes on where it was when its limit was over."""
        for pause in self._waiting.slices(what):
            try:
                call(pause)
            except KafkaException as error:
                if not error_of(error).retriable():
                    raise self._cause(error_of(error)) from error
            else:
                break


class OneInFlightSender(IdempotentSender):
    """For brokers without idempotent producers: one batch of a partition at a time.

    One request in flight is not enough. When a batch is refused for good, the client sends the
    next one before anybody can stop it, and the partition has a gap. So what is queued fits into
    one batch of each partition, and no more is queued until all of it is confirmed.
    """

    _bytes = 0
    _records = 0

    def _promise(self, _transactional_id: str) -> Mapping[str, Any]:
        return {
            "acks": "all",
            "enable.idempotence": False,
            "max.in.flight": 1,
            "message.timeout.ms": 0,
            "retries": (1 << 31) - 1,
            # A batch goes when it is complete, by `flush`, which does not wait for this.
            "linger.ms": 900_000,
            "batch.size": 2 * _BATCH_BYTES,
            "batch.num.messages": 2 * _BATCH_RECORDS,
        }

    def send(
        self,
        partition: int,
        value: bytes | None,
        position: bytes,
        key: bytes | None,
        timestamp_ms: int,
    ) -> None:
        """See `RelayLog.append`; sends what is queued if this record does not fit to it."""
        size = len(value or b"") + len(key or b"") + _OVERHEAD
        full = self._bytes + size > _BATCH_BYTES or self._records == _BATCH_RECORDS
        if self._records and full:
            self.flush()
        self._bytes += size
        self._records += 1
        super().send(partition, value, position, key, timestamp_ms)

    def flush(self, check: Callable[[], object] | None = None) -> None:
        """See `RelayLog.flush`; sends the batches of all partitions."""
        for pause in self._waiting.slices(f"confirm {len(self._producer)} records"):
            if not self._producer.flush(pause):
                break
            self._poll(0)
        self._poll(0)
        self._bytes = self._records = 0
        super().flush(check)

    def _make_room(self, pause: float) -> None:
        """Send what is queued; the client would wait for more."""
        del pause
        self.flush()
