"""Keeps a reader of committed records from losing committed ones.

With its records a broker names the transactions that were given up: a producer, and where its
transaction began. From there on a client drops what the producer wrote, up to the record that ends
the transaction. Kafka names only those whose end the reader has still to pass. There are brokers
that name all there ever were; then the end is never met, and everything that the producer writes
from then on is dropped without a word. So here a transaction is taken off the list

* if the reader has passed its end, or
* if it began before the place where reading began. That place is behind a record that was
  committed, or at the end of what is, so no transaction stands open there that was given up.
"""

from __future__ import annotations

from typing import Any


def heed_ends(consumer: Any) -> None:
    """Make a KafkaConsumer check the transactions that brokers name; before it reads anything.

    kafka-python has no way to be told. What is replaced is the class of its fetcher that unpacks
    the records of one answer.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    fetcher.PartitionRecords = _checked(fetcher.PartitionRecords)


def _checked(base: Any) -> Any:
    course = _Course()

    def unpack(self: Any, fetch_offset: int, *args: Any, **more: Any) -> None:
        course.go_on(self, fetch_offset)
        named = more.get("aborted_transactions")
        if named:
            live = [t for t in named if course.may_be_open(t.producer_id, t.first_offset)]
            more["aborted_transactions"] = live
        base.__init__(self, fetch_offset, *args, **more)

    def is_abort(self: Any, batch: Any) -> bool:
        # Asked of every batch of a producer, so of those too that end a transaction.
        if batch.is_control_batch:
            course.ended(batch.producer_id, batch.base_offset)
        return base._contains_abort_marker(self, batch)  # noqa: SLF001

    return type("CheckedRecords", (base,), {"__init__": unpack, "_contains_abort_marker": is_abort})


class _Course:
    """What is known of the transactions in a stretch that is read without a jump."""

    def __init__(self) -> None:
        self._begun = 0
        self._ends: dict[int, int] = {}  # of each producer, the end that was passed last
        self._records: Any = None

    def go_on(self, records: Any, offset: int) -> None:
        """The records of another answer follow; at another place than expected after a jump."""
        if self._records is None or self._records.next_fetch_offset != offset:
            self._begun = offset
            self._ends.clear()
        self._records = records

    def ended(self, producer: int, offset: int) -> None:
        self._ends[producer] = offset

    def may_be_open(self, producer: int, began: int) -> bool:
        return began >= self._begun and self._ends.get(producer, -1) < began
