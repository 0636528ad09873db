"""The result of comparing a target with its source."""

from __future__ import annotations

from dataclasses import dataclass, field

from setl.bulk.comparing import key_text
from setl.bulk.comparison import Difference, What
from setl.model.change import Row, Value
from setl.printable import BYTES_OF_TEXT, printable

_SHOWN = 200  # characters of a value


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column in which the two rows of one key differ.

    Attributes:
        name: the target's column or field.
        source: the value that the source says should be there, as `for_people` shows it.
        target: the value that is there, likewise.
    """

    name: str
    source: int | float | str | None
    target: int | float | str | None


def row_text(values: Row) -> str:
    """A row without a key as text, as `key_text` writes keys; long values are cut."""
    return key_text(tuple(map(_brief, values)))


def _brief(value: Value) -> Value:
    long = isinstance(value, (str, bytes)) and len(value) > _SHOWN
    return for_people(value) if long else value


def for_people(value: Value) -> int | float | str | None:
    """A value as it can be printed or written as JSON; bytes in hexadecimal, long text cut."""
    if value is None or isinstance(value, (int, float)):
        return value
    text = f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
    if text.startswith(BYTES_OF_TEXT):
        text = printable(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """A key on which the two sides do not agree.

    Attributes:
        key: the key as text: numbers bare, text in quotes, several columns in brackets. Of a row
            without a key all of its values, or a digest of them if it is gone by now.
        what: which side has the row, or that both have it with other values.
        columns: what differs, when both sides have the row and were still different when they
            were read again to show it.
        source_rows: how many rows the source has under the key; 0 if both sides agreed when they
            were read again to show it. Without a key, how often the row is there.
        target_rows: the same of the target.
    """

    key: str
    what: What
    columns: tuple[ColumnDifference, ...] = ()
    source_rows: int = 0
    target_rows: int = 0


@dataclass(frozen=True, slots=True)
class DifferingKeys:
    """Keys on which the two sides do not agree, as the source knows them.

    Attributes:
        columns: the source's key columns.
        keys: their values and how the sides differ, of keys whose values are known; not more than
            were read again.
        unknown: keys of the target of which nobody can say what they are at the source.
        undecided: values of the keys that changed at every look.
        keyless: whether rows have no key by which any of them could be sent.
    """

    columns: tuple[str, ...] = ()
    keys: tuple[tuple[Row, What], ...] = ()
    unknown: int = 0
    undecided: tuple[Row, ...] = ()
    keyless: bool = False


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """The outcome for one target table or index.

    Attributes:
        table: the source tables that go into it, ``schema.table``, joined by commas.
        target: the target table or index.
        source_rows: rows that the source says it should have.
        target_rows: rows that it has.
        missing: keys that only the source has.
        extra: keys that only the target has.
        different: keys that both have, with other values, or with another number of rows.
        merged: rows of the source that are one row of the target with another one, as the channel
            file has it: several tables go into one, a mapping names the `key`, or a processor makes
            the rows.
        caught_up: keys that differed at first and agreed when they were read again.
        undecided: keys whose row at the source changed at every look, so that nobody can tell.
        sample_keys: some of the keys that differ, sorted.
        undecided_keys: some of the undecided ones, as text.
        note: why a key may count as different although its row is only on its way, "" if none can.
        differing: what `setl verify --repair` sends again; empty where several tables come
            together, since nobody knows from which one a row should come.
        further: keys that were not read again, which `TargetComparison.compare_keys` takes; those
            that count but are not remembered are in neither of the two.
    """

    table: str
    target: str
    source_rows: int
    target_rows: int
    missing: int
    extra: int
    different: int
    merged: int = 0
    caught_up: int = 0
    undecided: int = 0
    sample_keys: tuple[KeyDifference, ...] = ()
    undecided_keys: tuple[str, ...] = ()
    note: str = ""
    differing: DifferingKeys = field(default=DifferingKeys(), repr=False)
    further: tuple[Difference, ...] = field(default=(), repr=False)

    @property
    def differences(self) -> int:
        """Keys on which the two sides do not agree."""
        return self.missing + self.extra + self.different

    @property
    def agrees(self) -> bool:
        """Whether each row of the source is known to be in the target, which has no other.

        Rows that are merged are in the target by one of them.
        """
        differs = self.differences or self.undecided
        return not differs and self.source_rows == self.target_rows + self.merged

    @property
    def equal(self) -> bool:
        """Whether both sides are known to have the same rows, each as many times."""
        return self.agrees and not self.merged
