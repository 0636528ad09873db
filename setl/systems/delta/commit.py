"""Commits to a table's log that only the pipeline's present leader can make (I2).

Each commit has an entry ``txn`` in the log, ``setl:<channel>/<pipeline>`` with the epoch of the
leadership. Who commits has read the log up to some version, has found no higher epoch there, and
writes the next version or nothing: the storage refuses a version that exists, and delta-rs is told
not to try another one. (It would, for changes that it finds compatible, behind whatever a new
leader has written meanwhile.) So a new leader that has its epoch in a log knows that no older one
adds anything behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from setl.errors import FencedError
from setl.model.leadership import Leadership
from setl.systems.delta.location import Folder, deltalake, translating

if TYPE_CHECKING:
    from deltalake import DeltaTable

ATTEMPTS: Final = 20
"""How often a commit is made again whose version another writer took."""


class VersionTakenError(Exception):
    """Another writer has committed the version; what was to be committed has to be made again."""


def app_id(pipeline: str) -> str:
    """The name of a pipeline's entries in logs."""
    return f"setl:{pipeline}"


def epoch_in(table: DeltaTable, pipeline: str) -> int | None:
    """The last epoch of a pipeline in a log that was read."""
    return table.transaction_version(app_id(pipeline))


def check_epoch(table: DeltaTable, leadership: Leadership, folder: Folder) -> bool:
    """Whether a log that was read has this leadership's epoch already.

    Raises:
        FencedError: it has a newer one.
    """
    found = epoch_in(table, leadership.key)
    if found is not None and found > leadership.epoch:
        raise FencedError(
            f"a newer leadership (epoch {found}) writes to this table",
            pipeline=leadership.key,
            epoch=leadership.epoch,
            server=folder.uri,
        )
    return found == leadership.epoch


def properties(leadership: Leadership) -> Any:
    """What every commit of a leadership has; see the module."""
    module = deltalake()
    said = {"pipeline": leadership.key, "epoch": leadership.epoch, "node": leadership.nid}
    return module.CommitProperties(
        custom_metadata={"setl": said},
        max_commit_retries=0,
        app_transactions=[module.Transaction(app_id(leadership.key), leadership.epoch)],
    )


def commit(
    table: DeltaTable, folder: Folder, leadership: Leadership, actions: list[Any]
) -> DeltaTable:
    """Commit actions as the version behind the one that was read; for good when it returns.

    Returns:
        The table with them.

    Raises:
        FencedError: a newer leadership was there; nothing was committed.
        VersionTakenError: another writer was faster; nothing was committed, unless the storage
            has lost its answer.
        TransientError: the storage does not answer; it may be committed.
    """
    check_epoch(table, leadership, folder)
    return committed(
        table,
        folder,
        lambda said: table.create_write_transaction(
            actions, "append", table.schema(), commit_properties=said
        ),
        leadership,
    )


def committed(
    table: DeltaTable, folder: Folder, change: Callable[[Any], None], leadership: Leadership
) -> DeltaTable:
    """As `commit`, for any change of delta-rs that takes `properties`, after `check_epoch`."""
    read = table.version()
    with translating(folder):
        try:
            change(properties(leadership))
        except deltalake().exceptions.CommitFailedError as error:
            raise VersionTakenError(str(error)) from error
        folder.persist(read + 1)
        table.update_incremental()
    return table


def created(
    folder: Folder,
    schema: pa.Schema,
    *,
    configuration: Mapping[str, str] | None = None,
    leadership: Leadership | None = None,
) -> DeltaTable:
    """Make a table.

    Args:
        folder: where.
        schema: its columns.
        configuration: its properties.
        leadership: whose epoch is in the first version of its log; None for none. A table that
            rows go to must have none yet: with it, nobody would see that it is not noted (see
            `setl.systems.delta.fence`).

    Raises:
        VersionTakenError: another one was faster.
        TransientError, ConfigurationError: it cannot be made.
    """
    folder.make()
    folder.refuse_unsafe()
    said = None if leadership is None else properties(leadership)
    with translating(folder):
        try:
            table = deltalake().DeltaTable.create(
                folder.uri,
                schema,
                configuration=configuration,
                storage_options=folder.options,
                commit_properties=said,
            )
        except deltalake().exceptions.DeltaError as error:
            if folder.open() is not None:
                raise VersionTakenError(str(error)) from error
            raise
        folder.persist(0)
    return table
