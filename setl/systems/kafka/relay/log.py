"""The log of a relay as a topic of Kafka."""

from __future__ import annotations

from typing import Any

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.codec.dts.relayed import RelayPosition
from setl.errors import FencedError, SetlError, TransientError
from setl.systems.kafka.relay.sender import IdempotentSender, OneInFlightSender, TransactionalSender
from setl.systems.kafka.relay.tail import inquirer, last_positions
from setl.systems.kafka.relay.topic import made_topic
from setl.systems.kafka.relay.waiting import Waiting
from setl.systems.kafka.settings import target_settings

_SENDERS = {
    "transactional": TransactionalSender,
    "idempotent": IdempotentSender,
    "one_in_flight": OneInFlightSender,
}


class KafkaRelayLog:
    """A topic that one leader at a time appends to; see `setl.relay.ports.RelayLog`.

    Attributes:
        partitions: how many the topic has, from `take_over` on; 0 before.
    """

    def __init__(self, target: KafkaTarget, transactional_id: str, *, limit: float = 30.0) -> None:
        """Describe the log; nothing is opened.

        Args:
            target: the topic.
            transactional_id: names the relay to the brokers, who let only its last leader
                write: the same for all nodes, and no other relay's.
            limit: seconds after which a call gives up.
        """
        self.partitions = 0
        self._target = target
        self._transactional_id = transactional_id
        self._settings: dict[str, Any] = {
            "compression.type": target.compression,
            **target_settings(target),
        }
        self._waiting = Waiting(limit)
        self._sender: IdempotentSender | None = None
        self._error: SetlError | None = None
        self._unflushed = False  # whether anything was appended since
        self._quiet = 0  # complaints when all was well
        self._doubted = False  # whether a transaction was given up for that

    def take_over(self) -> tuple[RelayPosition | None, ...]:
        """See `RelayLog.take_over`."""
        self.close()
        self._waiting.check()
        target, waiting = self._target, self._waiting
        try:
            with inquirer(self._settings, waiting) as consumer:
                partitions = made_topic(
                    consumer, self._settings, target.topic, target.partitions, waiting
                )
                self._sender = _SENDERS[target.delivery](
                    self._settings, target.topic, waiting, self._transactional_id
                )
                self._sender.fence()
                positions = last_positions(
                    consumer, target, range(partitions), waiting, self._sender.end_hanging
                )
        except SetlError as error:
            self._end(error)
            raise
        self.partitions = partitions
        self._error = None
        self._unflushed = False
        self._quiet = waiting.complaints.count
        return positions

    def append(
        self,
        partition: int,
        value: bytes | None,
        position: bytes,
        key: bytes | None,
        timestamp_ms: int,
    ) -> None:
        """See `RelayLog.append`."""
        sender = self._writing()
        try:
            sender.send(partition, value, position, key, timestamp_ms)
            self._unflushed = True
        except SetlError as error:
            self._end(error)
            raise

    def flush(self) -> None:
        """See `RelayLog.flush`."""
        sender = self._writing()
        try:
            if not self._unflushed:
                return
            self._doubted = not self._check_connection()
            # The client tells of a lost connection while it waits. At once, for a server that
            # forgets transactions keeps what comes behind its return as one that nobody ends.
            sender.flush(self._check_connection)
            self._check_connection()
            self._unflushed = False
            self._quiet = self._waiting.complaints.count
        except SetlError as error:
            self._end(error)
            raise

    def abandon(self) -> None:
        """See `RelayLog.abandon`."""
        self._waiting.abandon()
        sender = self._sender
        if sender is not None:
            sender.purge()

    def close(self) -> None:
        """See `RelayLog.close`."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def _writing(self) -> IdempotentSender:
        if self._error is not None:
            raise self._error
        if self._sender is None:
            raise FencedError("the relay has not taken its log over")
        return self._sender

    def _check_connection(self) -> bool:
        """See that the connection held since the last flush; whether there was no complaint.

        A server that speaks Kafka's protocol and does not keep transactions over its restart may
        abort one, take the rest of it and confirm its commit. So what was sent while connections
        failed is sent once more. If they fail again, with a broker that is gone for good, that
        says nothing any more.
        """
        quiet = self._waiting.complaints.count == self._quiet
        if quiet or self._target.delivery != "transactional" or self._doubted:
            return quiet
        self._doubted = True
        raise TransientError("the connection to Kafka was lost inside a transaction")

    def _end(self, error: SetlError) -> None:
        """Let nothing be written behind what was not; every later call says why."""
        self._error = error.at(topic=self._target.topic, brokers=",".join(self._target.brokers))
        if self._sender is not None:
            self._sender.purge()
