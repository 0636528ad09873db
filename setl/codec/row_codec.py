"""The port every codec implements for Spark tasks.

Reading headers has no common port: a binlog's headers are read from a stream of events that
depend on each other, a DTS record's from the record alone. Both end as `setl.model.entry.Entry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from setl.codec.scanning import RowScanner
from setl.model.change import DecodedRows, Op
from setl.model.entry import Entry
from setl.model.schema import RowSchema


class RowCodec(Protocol):
    """Decodes rows entries, in a Spark task or, for rows of ``retl``, in the driver.

    An implementation holds only caches, so that one object can serve a worker process for
    its whole life and decoding an entry twice gives the same rows. It keeps no order between
    calls: each call has all it needs in its arguments.
    """

    def records(self, payload: bytes) -> Sequence[tuple[int, bytes]]:
        """The records that an `Entry.payload` holds, one or several, in stream order.

        What goes by single records (their places, their faults, their changes one by one) goes
        through it. Never fails: bytes that are no record are given as one, for `decode` to
        refuse.

        Returns:
            Of each, by how much its version, and the offset of its position, is below the
            entry's, 0 for the last; and the record's bytes, a payload of their own.
        """
        ...

    def joins(self, payload: bytes, offset: int) -> bool:
        """Whether a payload may be given to `join` with others.

        Args:
            payload: see `Entry.payload`.
            offset: of the entry's position.
        """
        ...

    def join(self, payloads: Sequence[tuple[int, bytes]]) -> bytes:
        """One payload of several, for which `joins` holds, each with its offset.

        They are of entries of one context and one file or partition, in stream order. What else
        lies between them does not matter: `records` tells the same versions of their records as
        of each payload alone, counted from the last one.
        """
        ...

    def likely_inserts(self, payload: bytes) -> bool:
        """Whether the records of a payload are of new rows, as far as a glance tells.

        For the driver: it costs next to nothing. Nothing may rest on it but what is tried first.

        Args:
            payload: see `Entry.payload`.
        """
        ...

    def operation(self, payload: bytes) -> tuple[Op, bool] | None:
        """What a record does to its rows, and whether actions of foreign keys ran with it.

        For the driver: it costs next to nothing, and only looks at the record's front.

        Args:
            payload: one record.

        Returns:
            None if the record's front does not say.
        """
        ...

    def decode(
        self, payload: bytes, context: tuple[bytes, ...], *, keys_alone: bool = False
    ) -> DecodedRows:
        """Decode one record.

        Args:
            payload: its bytes.
            context: the `Entry.context` of its entry.
            keys_alone: whether nothing but keys is asked for, so that images need not tell all
                that a row is. What they leave out is `ABSENT`.

        Raises:
            DataError: the bytes cannot be understood, or hold a value that no `Kind` has.
            ConfigurationError: the source writes too little into its binlog to decode any row.
        """
        ...

    def scanner(
        self,
        context: tuple[bytes, ...],
        key: Callable[[RowSchema], tuple[int, ...]],
        payload: bytes = b"",
    ) -> RowScanner | None:
        """What finds the rows of entries of this context by their keys.

        Args:
            context: see `Entry.context`.
            key: gives indexes of the columns that are the key; what it raises is raised.
            payload: of an entry without a context: whose table, and as what is known of it now.

        Returns:
            None if there is nothing that can: then each record has to be decoded.

        Raises:
            DataError, ConfigurationError: as `decode`.
        """
        ...

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:
        """The columns of a record's rows, for the driver: without decoding rows where possible.

        Raises:
            DataError: as `decode`.
        """
        ...


def single_entries(codec: RowCodec, entry: Entry) -> Iterator[Entry]:
    """The records of a rows entry as entries of their own; mostly that is the entry itself.

    Their numbers of rows are their share of the entry's.
    """
    records = codec.records(entry.payload)
    if len(records) == 1:
        yield entry
        return
    rows, total = max(entry.rows, len(records)), max(1, len(entry.payload))
    position, given, size = entry.position, 0, 0
    for number, (older, payload) in enumerate(records, 1):
        size += len(payload)
        # By bytes, at least one each, and in all as many as the entry has.
        upto = number + (rows - len(records)) * size // total
        yield entry._replace(
            position=replace(position, offset=position.offset - older),
            rows=upto - given,
            payload=payload,
        )
        given = upto
