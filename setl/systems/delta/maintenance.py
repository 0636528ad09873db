"""Rewrites small files of a table into larger ones, and deletes files that nothing needs."""

from __future__ import annotations

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


def maintain(
    table: DeltaTable, folder: Folder, leadership: Leadership, *, vacuum: bool
) -> DeltaTable:
    """Optimize a table, and vacuum it; returns it as it is then.

    Files are deleted that no version younger than the table's own retention has, or that none
    ever had; delta-rs refuses less.

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
                dry_run=False,
                full=True,
                commit_properties=deltalake().CommitProperties(max_commit_retries=0),
            )
            table.update_incremental()
    return table


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
    removed = [remove_file(file, changes=False) for file in group]
    return [*removed, *add_files(folder, pa.concat_tables(rows), described, changes=False)]
