"""The port every codec implements for Spark tasks.

Reading headers has no common port: a binlog's headers are read from a stream of events that
depend on each other, a DTS record's from the record alone. Both end as `setl.model.entry.Entry`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from setl.codec.columns.images import FoundRows, RowForm
from setl.model.change import DecodedRows, Op
from setl.model.entry import Entry
from setl.model.schema import RowSchema

DAMAGED: Final = (struct.error, LookupError, ValueError, ArithmeticError, zlib.error)
"""What reading bytes raises that make no sense, beside DataError."""


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

    def row_form(self, payload: bytes, context: tuple[bytes, ...]) -> RowForm | None:
        """How the images of a payload's table lie, for `find_rows`.

        Args:
            payload: see `Entry.payload`; whose table, and as what is known of it now.
            context: of its entry.

        Returns:
            None if rows of this table are decoded one by one.

        Raises:
            DataError, ConfigurationError: as `decode`.
        """
        ...

    def likely_rows(self, payload: bytes, context: tuple[bytes, ...], size: int) -> float:
        """About how many rows so many bytes hold, if all of them are as the first record.

        Args:
            payload: the first of them, at least one record.
            context: of its entry.
            size: the bytes.

        Returns:
            0 if nothing tells.
        """
        ...

    def find_rows(self, form: RowForm, payloads: Sequence[tuple[int, bytes]]) -> FoundRows:
        """Find the images of payloads of one table, without decoding them.

        Args:
            form: from `row_form` of this codec, for the first payload.
            payloads: in stream order, each with the version of its last record.

        Raises:
            UnfitRowsError, or one of `DAMAGED`: they have to be decoded one by one, which says
                what is wrong if something is.
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
