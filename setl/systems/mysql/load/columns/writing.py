"""Goes over the columns of a statement, and has each become pieces of the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.fields import UnfitValuesError
from setl.codec.columns.texts import Texts
from setl.codec.columns.values import WHOLE, MadeText, listed
from setl.codec.columns.window import Mask
from setl.model.labels import LABELLED
from setl.model.schema import Column, Kind
from setl.systems.mysql.load.columns.fit import Fit, refuse_changed, refuse_found
from setl.systems.mysql.load.columns.pieces import Choice, JoinedRows, Piece, joined_rows
from setl.systems.mysql.load.packed import BYTES
from setl.systems.mysql.values.literals import fills_year


class ColumnWriter(ABC):
    """Writes rows in one form. What derives from it says what a value of each sort looks like."""

    def __init__(self, fit: Fit, rows: ColumnRows) -> None:
        """Nothing is written yet; there is at least one row."""
        self._fit = fit
        self._rows = rows
        self._values = rows.values
        self._pieces: list[Piece] = []

    def joined(self) -> JoinedRows:
        """All rows.

        Raises:
            UnfitValuesError, DataError, ValueError, LookupError, OverflowError: a value has no
                such form, or the target may change it. The rows are written one by one then, which
                finds it again and names it.
        """
        values, textual = self._values, list[int]()
        if any(self._rows.column(i) in values.nulls for i in self._fit.never_null):
            raise UnfitValuesError("a value that identifies a row is NULL")
        for i in range(len(self._fit.columns)):
            self._add(i, textual)
        values.require_utf8(textual)
        return joined_rows(values.window, values.count, [*self._pieces, *self._behind()])

    def _add(self, i: int, textual: list[int]) -> None:
        fit, values = self._fit, self._values
        column, index = fit.columns[i], self._rows.column(fit.picks[i])
        kind, guards = values.kind(index), fit.guards.get(i, ())
        null = values.nulls.get(index)
        self._pieces += self._in_front(i)
        if kind in LABELLED:
            held, which = values.labels(index)
            numbers = fit.numbers.get(i)
            held = held if numbers is None else numbers.of(held)
            texts = self._rendered(column, held)
            refuse_changed(guards, held)
            self._pieces.append(Choice(texts, which))
        elif kind in WHOLE:
            found = values.whole(index)
            if fills_year(column) and (found == 0).any():
                raise UnfitValuesError("the year 0000 is written as text")
            if guards:
                refuse_changed(guards, listed(found, null))
            self._pieces.append(self._whole(found, null))
        elif kind is Kind.FLOAT or self._renders(column):
            pieces, held = self._by_value(column, index, null)
            refuse_changed(guards, held)
            self._pieces.append(pieces)
        else:
            given = values.texts(index)
            refuse_found(guards, values, index, given)
            if given is None:
                self._pieces.append(self._made(values.made(index), null))
                return
            if kind not in BYTES:
                textual.append(index)
            self._pieces += self._text(given, null, is_bytes=kind in BYTES)

    def _in_front(self, i: int) -> Sequence[Piece]:  # noqa: ARG002
        """What stands in front of a value."""
        return ()

    def _behind(self) -> Sequence[Piece]:
        """What stands behind a row."""
        return ()

    def _renders(self, column: Column) -> bool:  # noqa: ARG002
        """Whether values of a column are rendered one by one."""
        return False

    @abstractmethod
    def _rendered(self, column: Column, held: Sequence[Any]) -> list[bytes]:
        """Some values, each as it is within a row."""

    @abstractmethod
    def _whole(self, numbers: NDArray[Any], null: Mask | None) -> Piece:
        """Whole numbers."""

    @abstractmethod
    def _by_value(
        self, column: Column, index: int, null: Mask | None
    ) -> tuple[Piece, Sequence[Any]]:
        """Floating-point numbers, or what is rendered one by one; and the values as rows hold them.

        A guard looks at those.
        """

    @abstractmethod
    def _made(self, text: MadeText, null: Mask | None) -> Piece:
        """Text that is made of values."""

    @abstractmethod
    def _text(self, texts: Texts, null: Mask | None, *, is_bytes: bool) -> Sequence[Piece]:
        """Text or bytes."""
