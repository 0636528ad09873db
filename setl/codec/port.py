"""The port every codec implements for Spark tasks.

Reading headers has no common port: a binlog's headers are read from a stream of events that
depend on each other, a DTS record's from the record alone. Both end as `setl.model.Entry`.
"""

from __future__ import annotations

from typing import Protocol

from setl.model.change import DecodedRows
from setl.model.schema import RowSchema


class RowCodec(Protocol):
    """Decodes rows entries, in a Spark task or, for rows of ``retl``, in the driver.

    An implementation holds only caches, so that one object can serve a worker process for
    its whole life and decoding an entry twice gives the same rows. It keeps no order between
    calls: each call has all it needs in its arguments.
    """

    def decode(self, payload: bytes, context: tuple[bytes, ...]) -> DecodedRows:
        """Decode one rows entry, given its `Entry.payload` and `Entry.context`.

        Raises:
            DataError: the bytes cannot be understood, or hold a value that no `Kind` has.
            ConfigurationError: the source writes too little into its binlog to decode any row.
        """
        ...

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:
        """The columns of an entry's rows, for the driver: without decoding rows where possible.

        Raises:
            DataError: as `decode`.
        """
        ...
