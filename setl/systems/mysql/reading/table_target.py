"""The target side of a comparison when it is a MySQL table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from setl.bulk.chunks import Chunk
from setl.bulk.comparing import key_values
from setl.bulk.pairs import Pair
from setl.bulk.table_shape import TableShape
from setl.model.schema import Column
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.values.conditions import Condition


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A MySQL table as a target; see `setl.bulk.target_reader.TargetReader`."""

    reader: TableReader
    shape: TableShape

    @property
    def name(self) -> str:
        """See `TargetReader.name`."""
        return self.reader.name

    def parts(self, rows_per_part: int) -> Sequence[Condition]:
        """See `TargetReader.parts`."""
        return self.reader.parts(rows_per_part)

    def parts_of_keys(self, keys: Sequence[str]) -> Sequence[Condition]:
        """See `TargetReader.parts_of_keys`."""
        columns = [self.shape.columns[i] for i in self.shape.key]
        return self.reader.parts_of_keys(columns, [key_values(key) for key in keys])

    def part(self, columns: Sequence[Column], chunk: Chunk) -> Condition:
        """See `RangedTarget.part`."""
        return self.reader.part(columns, chunk)

    def read(self, part: Condition) -> Iterator[list[Pair]]:
        """See `TargetReader.read`."""
        return map(self.shape.pairs, self.reader.read(self.shape.columns, part))

    def close(self) -> None:
        """See `TargetReader.close`; a table holds nothing open."""
