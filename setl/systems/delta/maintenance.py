"""Rewrites small files of a table into larger ones, and deletes files that nothing needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from setl.model.leadership import Leadership
from setl.systems.delta.commit import check_epoch, commit
from setl.systems.delta.files import (
    FILE_BYTES,
    DataFile,
    add_files,
    described_columns,
    files_of,
    read_file,
    remove_file,
    schema_of,
)
from setl.systems.delta.location import Folder, deltalake, translating

if TYPE_CHECKING:
    from deltalake import DeltaTable

SMALL: Final = FILE_BYTES // 8  # bytes, compressed; a file of all that it may have has more

LEAST_RETENTION: Final = 24
"""Hours for which files are left, even if the table's property says less.

delta-rs deletes what the version that it has read does not need, also if newer ones do: it does not
look for them. That is harm where another writer has committed meanwhile, or a leader goes on that
stood still, unless what they may miss is younger than files that are deleted.
"""

_RETENTION: Final = re.compile(r"interval (\d+) (\w+?)s?")
_HOURS: Final = {
    "nanosecond": 1e-9 / 3600, "microsecond": 1e-6 / 3600, "millisecond": 1e-3 / 3600,
    "second": 1 / 3600, "minute": 1 / 60, "hour": 1.0, "day": 24.0,
}  # fmt: skip


def maintain(
    table: DeltaTable, folder: Folder, leadership: Leadership, *, vacuum: bool
) -> DeltaTable:
    """Optimize a table, and vacuum it; returns it as it is then.

    Files are deleted that no version younger than the table's own retention has, or that none
    ever had; but see `LEAST_RETENTION`.

    Raises:
        VersionTakenError: another writer was faster; nothing is lost.
        SetlError: as `commit`.
    """
    with translating(folder):
        actions = _compacted(table, folder)
    if actions:
        table = commit(table, folder, leadership, actions)
    if vacuum:
        check_epoch(table, leadership, folder)
        with translating(folder):
            table.vacuum(
                _retention(table),
                dry_run=False,
                full=True,
                commit_properties=deltalake().CommitProperties(max_commit_retries=0),
            )
            table.update_incremental()
    return table


def _retention(table: DeltaTable) -> int | None:
    """Hours for which files are left; None for as long as the table's property says."""
    said = str(table.metadata().configuration.get("delta.deletedFileRetentionDuration", ""))
    found = _RETENTION.fullmatch(said)
    hours = _HOURS.get(found[2]) if found else None
    # What else it may say is weeks, or what delta-rs takes for its default.
    if found is None or hours is None or int(found[1]) * hours >= LEAST_RETENTION:
        return None
    return LEAST_RETENTION


def _compacted(table: DeltaTable, folder: Folder) -> list[Any]:
    schema, described = schema_of(table), described_columns(table)
    small = sorted((f for f in files_of(table) if f.size < SMALL), key=lambda file: file.size)
    actions: list[Any] = []
    group: list[DataFile] = []
    rows: list[pa.Table] = []
    for file in small:
        group.append(file)
        rows.append(read_file(folder, file.path, schema))
        if sum(part.nbytes for part in rows) >= FILE_BYTES:
            actions += _joined(folder, group, rows, described)
            group, rows = [], []
    return [*actions, *_joined(folder, group, rows, described)]


def _joined(
    folder: Folder, group: list[DataFile], rows: list[pa.Table], described: list[str]
) -> list[Any]:
    if len(group) < 2:
        return []
    removed = [remove_file(file) for file in group]
    return [*removed, *add_files(folder, pa.concat_tables(rows), described, changes=False)]
