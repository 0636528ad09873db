"""Reads a table as a whole, for comparison with what goes into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from setl.bulk.comparing import Form
from setl.bulk.pairs import Pair
from setl.bulk.table_shape import TableShape
from setl.errors import ConfigurationError
from setl.model.schema import Column
from setl.systems.delta.files import files_of, read_batches, schema_of
from setl.systems.delta.location import Folder, translating
from setl.systems.delta.values import CALENDAR, ZeroDates, form_or_null, values_of

_ROWS = 8_192


class Files(NamedTuple):
    """A part of a table: some files of one version.

    Attributes:
        paths: theirs.
        keys: the keys that count; empty for all.
    """

    paths: tuple[str, ...]
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeltaReader:
    """The `setl.bulk.target_reader.TargetReader` of a table.

    Attributes:
        folder: the table's.
        shape: how its rows are compared.
        schema: the columns to read, in the order of those of the shape.
    """

    folder: Folder
    shape: TableShape
    schema: pa.Schema

    @classmethod
    def build(
        cls, folder: Folder, columns: Sequence[Column], key: Sequence[str], zero_dates: ZeroDates
    ) -> DeltaReader:
        """Reads these columns; `key` names some of them.

        Raises:
            ConfigurationError: there is no such table, or it lacks columns.
        """
        table = folder.open()
        if table is None:
            raise ConfigurationError(f"there is no Delta table in {folder.uri}")
        schema = schema_of(table)
        own = {name.lower(): name for name in schema.names}
        missing = [column.name for column in columns if column.name.lower() not in own]
        if missing:
            raise ConfigurationError(
                f"the Delta table has no column {', '.join(missing)}",
                hint=f"Add what is missing; its columns are {', '.join(schema.names)}",
                server=folder.uri,
            )
        wanted = pa.schema([schema.field(own[column.name.lower()]) for column in columns])
        shape = TableShape.of_columns(columns, key)
        if zero_dates == "as_null":
            shape = replace(shape, into=tuple(_forms_or_null(shape, wanted)))
        return cls(folder, shape, wanted)

    @property
    def name(self) -> str:
        """See `TargetReader.name`."""
        return self.folder.path.replace("/", ".")

    def parts(self, rows_per_part: int) -> Sequence[Files]:
        """See `TargetReader.parts`; all are of one version."""
        parts: list[Files] = []
        paths: list[str] = []
        rows = 0
        for path, count in self._files():
            paths.append(path)
            rows += rows_per_part if count is None else count
            if rows >= rows_per_part:
                parts.append(Files(tuple(paths)))
                paths, rows = [], 0
        return [*parts, Files(tuple(paths))] if paths else parts

    def parts_of_keys(self, keys: Sequence[str]) -> Sequence[Files]:
        """See `TargetReader.parts_of_keys`."""
        return [Files(tuple(path for path, _ in self._files()), frozenset(keys))]

    def read(self, part: Files) -> Iterator[list[Pair]]:
        """See `TargetReader.read`."""
        for path in part.paths:
            batches = read_batches(self.folder, path, self.schema, _ROWS)
            while True:
                with translating(self.folder):
                    batch = next(batches, None)
                if batch is None:
                    break
                values = map(values_of, self.shape.columns, batch.columns)
                pairs = self.shape.pairs(list(zip(*values, strict=True)))
                yield [pair for pair in pairs if not part.keys or pair.key in part.keys]

    def close(self) -> None:
        """See `TargetReader.close`; nothing is held open."""

    def _files(self) -> list[tuple[str, int | None]]:
        table = self.folder.open()
        with translating(self.folder):
            return [] if table is None else [(file.path, file.rows) for file in files_of(table)]


def _forms_or_null(shape: TableShape, schema: pa.Schema) -> Iterator[Form]:
    """The forms in which a source's values are compared, of columns that lack some dates."""
    for i, (form, field) in enumerate(zip(shape.into, schema, strict=True)):
        dates = shape.columns[i].kind in CALENDAR and not pa.types.is_string(field.type)
        # Keys are refused, as they could become one.
        yield partial(form_or_null, form, field.type) if dates and i not in shape.key else form
