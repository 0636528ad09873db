"""Tells of single records whether they were committed, wherever reading began.

With its records a broker names the transactions that were given up and from where on. A client
that begins to read in the middle of one cannot tell by that whether it is still open there: see
`setl.systems.kafka.aborted`. The marks that end transactions in the log itself tell more: the first
one of a producer behind its record says what became of the record. Both together leave one case
open, since a broker may also give a transaction up without a mark: one that is named, that began
before reading did, and behind which a commit stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Any


class Outcomes:
    """Follows a KafkaConsumer of committed records, which then delivers all of them.

    Sees one partition. Whoever asks has read on to the end of what is committed.
    """

    def __init__(self, consumer: Any) -> None:
        """Look over the shoulder of a consumer that has not read anything yet.

        kafka-python has no way to be told; see `setl.systems.kafka.aborted.heed_ends`.
        """
        self._begun = 0
        self._producers: list[tuple[int, int]] = []  # offset → who wrote from there on
        self._ends: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        self._given_up: defaultdict[int, list[int]] = defaultdict(list)  # where they began
        fetcher = consumer._fetcher  # noqa: SLF001
        fetcher.PartitionRecords = self._noting(fetcher.PartitionRecords)

    def begin(self, offset: int) -> None:
        """Reading begins at an offset; what was read before is forgotten."""
        self._begun = offset
        for known in (self._producers, self._ends, self._given_up):
            known.clear()

    def committed(self, offset: int) -> bool | None:
        """Whether a record that was read counts; None if reading began too late to tell."""
        at = bisect_right(self._producers, (offset, _EVERY)) - 1
        producer = self._producers[at][1] if at >= 0 else _NOBODY
        if producer == _NOBODY:
            return True
        ends = self._ends[producer]
        after = bisect_right(ends, (offset, True))
        if after < len(ends) and ends[after][1]:
            return False
        given_up = sorted(self._given_up[producer])
        at = bisect_right(given_up, offset) - 1
        if at < 0 or (after and ends[after - 1][0] > given_up[at]):
            return True  # none, or its end lies before the record
        return False if given_up[at] >= self._begun else None

    def _noting(self, base: Any) -> Any:
        producers, ends, given_up = self._producers, self._ends, self._given_up

        def unpack(records: Any, *args: Any, **more: Any) -> None:
            for named in more.pop("aborted_transactions", None) or ():
                if named.first_offset not in given_up[named.producer_id]:
                    given_up[named.producer_id].append(named.first_offset)
            base.__init__(records, *args, **more)

        def is_abort(records: Any, batch: Any) -> bool:
            # Asked of every batch that names its producer.
            aborts = bool(base._contains_abort_marker(records, batch))  # noqa: SLF001
            if batch.is_control_batch:
                ends[batch.producer_id].append((batch.base_offset, aborts))
            else:
                by = batch.producer_id if batch.is_transactional else _NOBODY
                producers.append((batch.base_offset, by))
            return aborts

        return type(
            "NotedRecords", (base,), {"__init__": unpack, "_contains_abort_marker": is_abort}
        )


_NOBODY = -1  # what is in no transaction counts at once
_EVERY = 1 << 62
