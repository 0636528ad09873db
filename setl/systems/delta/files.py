"""The Parquet files of a table: read, written, and described to its log.

delta-rs can do that itself, and so it could merge rows. Both go by what the log says of the least
and greatest value of each column in a file. Its version 1.6 writes no right ones for decimals of
more than 18 digits, such as an unsigned BIGINT: its own merge then overlooks rows that are there,
and inserts them twice. So files are written here, and described by values that are exact as JSON,
those of integers and dates: either of all columns that the table's properties ask for, or of none.
With some of them missing, `DeltaTable.to_pyarrow_dataset` would overlook rows.

Files are only ever added to a folder. What no commit mentions, because its version was taken, lies
there until VACUUM finds it: nobody can tell for sure that it was not committed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from setl.errors import ConfigurationError
from setl.systems.delta.location import Folder, sync

if TYPE_CHECKING:
    from deltalake import DeltaTable

FILE_BYTES: Final = 128 << 20
"""Arrow bytes of rows above which a further file is begun; compressed it is a part of that."""

_OF_FILES: Final = frozenset({"path", "size_bytes", "num_records"})
_DESCRIBED: Final = 32  # columns of which the log says something, as Delta has it by default
_ARROW_LEVEL: Final = "zstd"


class DataFile(NamedTuple):
    """A file of a table's present version.

    Attributes:
        path: as the log has it.
        size: its bytes.
        rows: how many it has, None if the log does not say.
        least: the least values of its integer columns, as far as the log says them.
        greatest: the greatest ones.
    """

    path: str
    size: int
    rows: int | None
    least: dict[str, int | None]
    greatest: dict[str, int | None]

    def may_have(self, column: str, least: int, greatest: int) -> bool:
        """Whether any value of an integer column may lie between these."""
        low, high = self.least.get(column), self.greatest.get(column)
        return low is None or high is None or (low <= greatest and high >= least)


def files_of(table: DeltaTable) -> list[DataFile]:
    """The files of a table."""
    described = pa.table(table.get_add_actions(flatten=True))
    # Nothing but integers: Python has no value for some moments of others, as of the year 0.
    wanted = [
        each.name
        for each in described.schema
        if each.name in _OF_FILES
        or (each.name.startswith(("min.", "max.")) and pa.types.is_signed_integer(each.type))
    ]
    return [
        DataFile(
            str(one["path"]),
            int(one["size_bytes"]),
            one.get("num_records"),
            {name[4:]: value for name, value in one.items() if name.startswith("min.")},
            {name[4:]: value for name, value in one.items() if name.startswith("max.")},
        )
        for one in described.select(wanted).to_pylist()
    ]


def schema_of(table: DeltaTable) -> pa.Schema:
    """The columns of a table, nullable as they are."""
    return pa.schema(table.schema().to_arrow())


def read_file(
    folder: Folder, path: str, schema: pa.Schema, names: Sequence[str] | None = None
) -> pa.Table:
    """The rows of a file, with columns that it lacks as NULL.

    Args:
        folder: of the table.
        path: of the file.
        schema: of the table.
        names: the columns to read; None for all.

    Raises:
        ConfigurationError: a column in the file is of another type.
        OSError: it cannot be read.
    """
    wanted = schema if names is None else pa.schema([schema.field(name) for name in names])
    with folder.files().open_input_file(path) as source:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        there = set(file.schema_arrow.names)
        found = file.read(columns=[name for name in wanted.names if name in there])
    return in_schema(found, wanted, path)


def read_batches(folder: Folder, path: str, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """As `read_file`, some rows at a time."""
    with folder.files().open_input_file(path) as source:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        there = set(file.schema_arrow.names)
        columns = [name for name in schema.names if name in there]
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            if columns:
                yield in_schema(pa.Table.from_batches([batch]), schema, path)


def in_schema(found: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """A table with these columns in this order."""
    columns: list[Any] = []
    for each in schema:
        if each.name not in found.column_names:
            columns.append(pa.nulls(found.num_rows, each.type))
            continue
        column = found.column(each.name)
        if column.type != each.type:
            try:
                column = column.cast(each.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ConfigurationError(
                    f"column {each.name} of {path} is {column.type}, and the table's {each.type}",
                    hint="Have the table rewritten by what wrote the file",
                ) from error
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def read_table(folder: Folder, table: DeltaTable, schema: pa.Schema) -> pa.Table:
    """All rows of a small table. Raises OSError."""
    parts = [read_file(folder, file.path, schema) for file in files_of(table)]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def described_columns(table: DeltaTable) -> list[str]:
    """The columns of which the log says the least and greatest value of each file, see the module.

    None if a table's properties ask for others than are exact, too.
    """
    asked = asked_columns(table)
    return asked if {*asked} <= {*exact_columns(schema_of(table))} else []


def asked_columns(table: DeltaTable) -> list[str]:
    """The columns that a table's properties want described."""
    schema, settings = schema_of(table), table.metadata().configuration
    named = settings.get("delta.dataSkippingStatsColumns")
    if named is not None:
        own = {name.lower(): name for name in schema.names}
        return [own.get(name.strip().strip("`").lower(), "") for name in named.split(",")]
    count = int(settings.get("delta.dataSkippingNumIndexedCols") or _DESCRIBED)
    return schema.names if count < 0 else schema.names[:count]


def exact_columns(schema: pa.Schema) -> list[str]:
    """The columns whose values are exact as JSON."""
    return [
        each.name
        for each in schema
        if pa.types.is_signed_integer(each.type) or pa.types.is_date32(each.type)
    ]


def add_file(
    folder: Folder, rows: pa.Table, described: Sequence[str] = (), *, changes: bool = True
) -> Any:
    """Write rows to a new file for good; returns the action that adds it to the table.

    Args:
        folder: of the table.
        rows: at least one.
        described: see `described_columns`.
        changes: whether the rows are not all in the table already.

    Raises:
        OSError: it cannot be written.
    """
    from deltalake.transaction import AddAction  # noqa: PLC0415 - needs the package

    path = f"part-{uuid.uuid4()}.parquet"
    with folder.files().open_output_stream(path) as out:
        pq.write_table(rows, out, compression=_ARROW_LEVEL, store_schema=False)
        size = out.tell()
    if folder.location.local:
        sync(Path(folder.uri) / path)
    return AddAction(path, size, {}, _now(), changes, json.dumps(_statistics(rows, described)))


def add_files(
    folder: Folder, rows: pa.Table, described: Sequence[str], *, changes: bool = True
) -> list[Any]:
    """As `add_file`, in files of about `FILE_BYTES`; none for no rows."""
    if not rows.num_rows:
        return []
    count = max(1, -(-rows.nbytes // FILE_BYTES))
    each = -(-rows.num_rows // count)
    parts = [rows.slice(first, each) for first in range(0, rows.num_rows, each)]
    return [add_file(folder, part, described, changes=changes) for part in parts]


def remove_file(file: DataFile) -> Any:
    """The action that takes a file out of the table.

    It is always one that changes data, even where another file gets the same rows. delta-rs looks
    for no others when its own compaction finds a newer version: it would add its file with these
    rows, too.
    """
    from deltalake.transaction import RemoveAction  # noqa: PLC0415 - needs the package

    return RemoveAction(
        file.path, data_change=True, deletion_timestamp=_now(), size=file.size, partition_values={}
    )


def _now() -> int:
    return int(time.time() * 1000)


def _statistics(rows: pa.Table, described: Sequence[str]) -> dict[str, Any]:
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in described:
        column = rows.column(name)
        nulls[name] = column.null_count
        if column.null_count < len(column):
            found = pc.min_max(column).cast(_ends(column.type)).as_py()
            least[name], greatest[name] = found["min"], found["max"]
    said = {"minValues": least, "maxValues": greatest, "nullCount": nulls} if described else {}
    return {"numRecords": rows.num_rows, **said}


def _ends(kind: pa.DataType) -> pa.DataType:
    """As JSON has them: numbers, and dates as text."""
    of = pa.string() if pa.types.is_date32(kind) else pa.int64()
    return pa.struct([("min", of), ("max", of)])
