"""The port for finding rows in a payload's bytes by their keys, without decoding all of them.

Most changes of a busy row are overwritten by later ones of the same load, so that of an update
the key is all that is ever needed of it. A codec that can tell the key alone, and where the row
lies, offers it by this port; whatever does not go by it goes by
`setl.codec.row_codec.RowCodec.decode`, which says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from setl.model.change import Row
from setl.model.schema import RowSchema


class Scanned(NamedTuple):
    """The changes at the front of a payload, in stream order: one of each sequence a change.

    Attributes:
        keys: the key's value if one column is the key, else a tuple of values.
        rows: the row after the change: decoded, or the position in the payload that
            `RowScanner.row` decodes; None for a delete.
        versions: see `setl.transform.work.WorkItem`.
        reached: place of the first record that is not among them; the payload's end if there
            is none.
    """

    keys: Sequence[Any]
    rows: Sequence[Row | int | None]
    versions: Sequence[int]
    reached: int


class RowScanner(Protocol):
    """Finds rows of one table, under one context, by one key.

    Holds nothing that changes from call to call.
    """

    @property
    def schema(self) -> RowSchema:
        """The columns of rows."""
        ...

    @property
    def key(self) -> tuple[int, ...]:
        """Indexes of the columns that are the key."""
        ...

    def scan(self, payload: bytes, at: int, version: int) -> Scanned:
        """Go through the records of a payload up to one that is out of the ordinary.

        That is a record in which an update changes the key, or an image lacks columns, or that
        cannot be decoded: nothing of it is taken. Never fails.

        Args:
            payload: see `Entry.payload`.
            at: where a record begins.
            version: of the payload's last record.
        """
        ...

    def row(self, payload: bytes, at: int, /) -> Row:
        """Decode the row that lies there; all of its values are present.

        Raises:
            ValueError, LookupError, struct.error, zlib.error, DataError: a value makes no sense.
        """
        ...
