"""Keeps stale leaders from writing (I2): the pipeline's own log, and an epoch in each table's.

A table's log is the only place that is written in one step with its rows, so a new leader puts its
epoch into the log of each table that the pipeline writes to. Which ones these are is noted in a
Delta table of the pipeline itself, ``_setl/<channel>/<pipeline>``, and a table is noted there
before the first row is written to it. The order is what counts:

1. a leader that meets a table without its epoch adds the table's name to the pipeline's own table,
   by a commit that fails where a newer leader has raised the epoch there;
2. a new leader first raises the epoch there, so that no older one adds a name any more, then reads
   the names, and raises it in each of these tables that exists.

A table that does not exist then can only be made later, and whoever writes to it has to pass the
first step again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from setl.errors import FencedError, TransientError
from setl.load.sink import Fence
from setl.model.leadership import Leadership
from setl.systems.delta.commit import (
    ATTEMPTS,
    VersionTakenError,
    check_epoch,
    commit,
    created,
    epoch_in,
)
from setl.systems.delta.files import add_file, read_table
from setl.systems.delta.location import Folder, Location, Name, translating
from setl.systems.stored_state import StoredState

if TYPE_CHECKING:
    from deltalake import DeltaTable

_NAMES: Final = pa.schema([("schema", pa.string()), ("table", pa.string())])
_AT_ONCE: Final = 16  # tables whose epoch is raised at the same time
_ENTRIES: Final = 50  # of a history, looked through for who raised an epoch


class DeltaFence(Fence):
    """The `setl.load.sink.Fence` of a pipeline, ``channel/pipeline``."""

    def __init__(self, location: Location, pipeline: str) -> None:
        """Connect to nothing yet."""
        self._location = location
        self._pipeline = pipeline

    def raise_to(self, epoch: int, nid: str) -> None:
        """See `Fence.raise_to`."""
        channel, _, pipeline = self._pipeline.partition("/")
        leadership = Leadership(channel, pipeline, nid, epoch)
        own = self._location.of_pipeline(self._pipeline)
        _raise(own, leadership, _opening(own, leadership))
        names = names_in(own)
        if not names:
            return

        def raise_one(name: Name) -> None:
            folder = self._location.of_table(name)
            _raise(folder, leadership, folder.open)

        with ThreadPoolExecutor(_AT_ONCE, "fence") as pool:
            for done in [pool.submit(raise_one, name) for name in sorted(names)]:
                done.result()

    def stored(self) -> StoredState:
        """See `TargetSystem.stored_state`."""
        folder = self._location.of_pipeline(self._pipeline)
        table = folder.open()
        if table is None:
            return StoredState()
        epoch = epoch_in(table, self._pipeline)
        with translating(folder):
            notes = [entry.get("setl") for entry in table.history(_ENTRIES)]
        nid = next((str(n["node"]) for n in map(_note, notes) if n.get("epoch") == epoch), "")
        return StoredState(fence=epoch, fenced_by=nid)


def admit(location: Location, name: Name, leadership: Leadership) -> None:
    """Step 1 of the module: note a table before the first row of a leadership goes there.

    Raises:
        FencedError: a newer leadership exists.
        TransientError: the storage does not answer.
    """
    folder = location.of_pipeline(leadership.key)
    for _ in range(ATTEMPTS):
        table = folder.open()
        if table is None or not check_epoch(table, leadership, folder):
            # Whoever leads has raised it. So somebody has removed it since, and nothing is known.
            raise FencedError(
                "the epoch of this leadership is not in the pipeline's own table",
                hint="The next leadership writes it again",
                pipeline=leadership.key,
                epoch=leadership.epoch,
                server=folder.uri,
            )
        if name in _names(folder, table):
            return
        with suppress(VersionTakenError), translating(folder):
            row = pa.table([[name[0]], [name[1]]], schema=_NAMES)
            commit(table, folder, leadership, [add_file(folder, row)])
            return
    raise _busy(folder)


def names_in(folder: Folder) -> frozenset[Name]:
    """The tables that a pipeline has written to, as its own table notes them; none without one."""
    table = folder.open()
    return frozenset() if table is None else _names(folder, table)


def _names(folder: Folder, table: DeltaTable) -> frozenset[Name]:
    with translating(folder):
        found = read_table(folder, table, _NAMES)
    return frozenset((str(row["schema"]), str(row["table"])) for row in found.to_pylist())


def _opening(folder: Folder, leadership: Leadership) -> Callable[[], DeltaTable | None]:
    """Opens the pipeline's own table, and makes it where there is none."""

    def opened() -> DeltaTable | None:
        found = folder.open()
        if found is not None:
            return found
        with suppress(VersionTakenError):
            return created(folder, _NAMES, leadership=leadership)
        return folder.open()

    return opened


def _raise(folder: Folder, leadership: Leadership, opened: Callable[[], DeltaTable | None]) -> None:
    for _ in range(ATTEMPTS):
        table = opened()
        if table is None or check_epoch(table, leadership, folder):
            return
        with suppress(VersionTakenError):
            commit(table, folder, leadership, [])
            return
    raise _busy(folder)


def _busy(folder: Folder) -> TransientError:
    return TransientError(f"others commit to it all the time, {ATTEMPTS} times", server=folder.uri)


def _note(note: Any) -> dict[str, Any]:
    if isinstance(note, str):
        with suppress(ValueError):
            note = json.loads(note)
    return cast("dict[str, Any]", note) if isinstance(note, dict) else {}
