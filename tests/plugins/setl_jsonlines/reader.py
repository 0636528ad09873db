"""Reads a file as a table, for comparison with its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from setl.bulk.pairs import Pair
from setl.bulk.table_shape import TableShape
from setl.errors import ConfigurationError
from setl_jsonlines.lines import original, rows_in


@dataclass(frozen=True, slots=True)
class JsonLinesReader:
    """The `setl.bulk.target_reader.TargetReader` of a file; it is read as one part."""

    file: Path
    shape: TableShape

    @property
    def name(self) -> str:
        """See `TargetReader.name`."""
        return self.file.stem

    def parts(self, rows_per_part: int) -> Sequence[frozenset[str]]:
        """See `TargetReader.parts`: one, without a choice of keys."""
        return [frozenset()]

    def parts_of_keys(self, keys: Sequence[str]) -> Sequence[frozenset[str]]:
        """See `TargetReader.parts_of_keys`."""
        return [frozenset(keys)]

    def read(self, part: frozenset[str]) -> Iterator[list[Pair]]:
        """See `TargetReader.read`."""
        try:
            found = rows_in(self.file)
        except OSError as error:
            raise ConfigurationError(f"{self.file} cannot be read: {error}") from error
        pairs = self.shape.pairs([original(row, self.shape.names) for row in found.values()])
        yield [pair for pair in pairs if not part or pair.key in part]

    def close(self) -> None:
        """See `TargetReader.close`."""
