"""Images of rows among bytes, and the port by which a format says how they lie there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.values import ColumnValues
from setl.codec.columns.window import Positions, Window
from setl.errors import DataError
from setl.model.change import Row
from setl.model.schema import RowSchema


class UnfitRowsError(DataError):
    """Rows cannot be read by column: damaged, or of a kind that is read one by one.

    Attributes:
        position: offset in the payload of the event or row that it is about.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message}, at byte {position} of the rows")
        self.position = position


class RowForm(Protocol):
    """How the images of one table lie in their bytes.

    Two forms are equal if images of one are images of the other. It is small when it is pickled.
    """

    @property
    def schema(self) -> RowSchema:
        """The columns of rows."""
        ...

    def values(self, images: RowImages, starts: Positions) -> ColumnValues:
        """The values of the images that begin at these positions."""
        ...

    def rows(self, images: RowImages, starts: Positions) -> Iterable[Row]:
        """Decode a few images, which begin at these positions. Raises as `ColumnValues` says."""
        ...


@dataclass(frozen=True, slots=True)
class RowImages:
    """Bytes that hold images of one table, which begin wherever somebody says.

    Attributes:
        form: how they lie.
        window: the bytes.
    """

    form: RowForm
    window: Window

    @property
    def data(self) -> bytes:
        """The same bytes, as they were given."""
        return self.window.payload


@dataclass(frozen=True, slots=True)
class FoundRows(RowImages):
    """The images of some events; those of an update come in pairs, before and after.

    Attributes:
        starts: where each image begins in `data`, in stream order.
        values: of all of them.
        events: for each image the number of its event.
        updated: of each event whether it holds updates.
        deleted: of each event whether it holds deletes.
        versions: of each event its version, see `setl.transform.work.WorkItem`.
    """

    starts: Positions
    values: ColumnValues
    events: NDArray[np.int64]
    updated: NDArray[np.bool_]
    deleted: NDArray[np.bool_]
    versions: NDArray[np.int64]
