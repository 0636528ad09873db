"""Checkpoints in the target database, under the same fence as the rows (I2, I12)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from pymysql.connections import Connection
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from setl.content_shape import shape
from setl.errors import FatalError, FencedError, TargetWentBackError
from setl.model.checkpoint import Checkpoint, check_progress
from setl.select.checkpoints.note import CheckpointNote, Notes, missing
from setl.select.checkpoints.owner import Owner
from setl.systems.mysql.cached_connection import once_more_if_cut_off
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.stored import writers
from setl.systems.mysql.stored.fence_errors import fence_error
from setl.systems.mysql.stored.state import forget_checkpoint

_T = TypeVar("_T")

# Share mode: every load transaction of this leadership holds the same lock, so they do not
# wait for each other, only for a new leader that raises the epoch.
# The lock is on the fence's row alone: one that waits for it blocks nobody who reads a checkpoint.
_FENCE = (
    "SELECT epoch, (SELECT c.checkpoint FROM retl.setl_checkpoint c WHERE c.pipeline = f.pipeline)"
    " FROM retl.setl_fence f WHERE pipeline = %s LOCK IN SHARE MODE"
)
# Its age by the clock that has dated it.
_STORED = (
    "SELECT checkpoint, TIMESTAMPDIFF(MICROSECOND, updated_at, CURRENT_TIMESTAMP(6))"
    " FROM retl.setl_checkpoint WHERE pipeline = %s"
)
_UPSERT = (
    "INSERT INTO retl.setl_checkpoint (pipeline, epoch, checkpoint) VALUES (%s, %s, %s)"
    " ON DUPLICATE KEY UPDATE epoch = VALUES(epoch), checkpoint = VALUES(checkpoint),"
    " updated_at = CURRENT_TIMESTAMP(6)"
)
# The same in one step, where all is as the last one has left it: the fence's row is locked in share
# mode until the commit, and what is stored is what was stored then.
_NEXT = (
    "UPDATE retl.setl_checkpoint SET checkpoint = %s, updated_at = CURRENT_TIMESTAMP(6)"
    " WHERE pipeline = %s AND epoch = %s AND checkpoint = %s AND"
    " (SELECT f.epoch FROM retl.setl_fence f WHERE f.pipeline = %s LOCK IN SHARE MODE) = %s; COMMIT"
)


class MysqlCheckpointStore:
    """Keeps a pipeline's checkpoint in ``retl.setl_checkpoint`` of its target.

    A target may be restored or replaced without that table's rows, which would look like a first
    start. So a note beside the leader lock says that there was a checkpoint (I7).

    Thread-safe. Keeps one connection, and opens another when the server has dropped it.
    """

    def __init__(
        self, endpoint: MysqlEndpoint, owner: Owner, notes: Notes, *, timeout: float = 10.0
    ) -> None:
        """Nothing is connected yet.

        Args:
            endpoint: the target.
            owner: whose checkpoint it is.
            notes: where the pipeline's note is kept.
            timeout: seconds to wait for any one answer or lock, at most those of `endpoint`.
        """
        self._owner = owner
        self._notes = notes
        self._endpoint = replace(endpoint, read_timeout=min(endpoint.read_timeout, timeout + 1.0))
        self._pipeline = owner.pipeline
        self._lock_wait = max(1, int(timeout))
        self._connection: Connection[Any] | None = None
        self._using = threading.Lock()
        # What this object has stored last, and under which epoch.
        self._stored: tuple[int, Checkpoint | None] = (0, None)
        self._stored_text = ""
        self._age: float | None = None
        self._registered = 0  # epoch under which the connection is recorded as a writer

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`.

        Raises:
            TransientError: the target does not answer.
            ConfigurationError: the table or a privilege is missing.
            FatalError: what is stored was not written by this version, or it is gone.
        """

        def run(connection: Connection[Any]) -> Checkpoint | None:
            with connection.cursor() as cursor:
                cursor.execute(_STORED, (self._pipeline,))
                row = cursor.fetchone()
            connection.rollback()
            self._age = max(0.0, row[1] / 1e6) if row else None
            return self._parsed(row[0]) if row else None

        found = self._run(run)
        if found is None:
            self._check_note()
        return found

    def age(self) -> float | None:
        """See `CheckpointStore.age`."""
        return self._age

    def _check_note(self) -> None:
        """Refuse to take a target that has lost the checkpoint for one that never had it."""
        note = self._notes.read()
        if note is not None and note.store == "target":
            raise missing(
                note,
                f"{self._endpoint} has none: it was set back, or it is another server",
                "Restore the row of retl.setl_checkpoint together with the tables",
                self._pipeline,
            )

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`.

        Raises:
            FencedError: the fence stands at a higher epoch; nothing was stored.
            TargetWentBackError: it stands at a lower one or was never raised, or the checkpoint
                that was stored last is not there any more; nothing was stored.
            FatalError: it lies before the stored one.
            TransientError: the target does not answer; it may or may not be stored.
            ConfigurationError: a table or a privilege is missing.
        """
        self._store(checkpoint, epoch)
        self._notes.keep(checkpoint, self._note(epoch))

    def _store(self, checkpoint: Checkpoint, epoch: int) -> None:
        def run(connection: Connection[Any]) -> None:
            if self._registered != epoch:
                # It will lock the fence, so a later leader must be able to end it (I2).
                writers.register(connection, self._owner.under(epoch))
                self._registered = epoch
            text = json.dumps(checkpoint.to_json())
            if self._stored_next(connection, checkpoint, text, epoch):
                return
            # The first statement begins a transaction, and the last two are sent together: each
            # answer of a server that is far away takes long. One that fails is not committed.
            try:
                with connection.cursor() as cursor:
                    stored = self._fenced(cursor, epoch)
                    self._check_stored(stored, epoch)
                    if stored is not None:
                        check_progress(stored, checkpoint)
                    cursor.execute(f"{_UPSERT}; COMMIT", (self._pipeline, epoch, text))
                    while cursor.nextset():
                        pass
            except (FencedError, FatalError, TargetWentBackError):
                connection.rollback()
                raise
            self._stored, self._stored_text = (epoch, checkpoint), text

        self._run(run)

    def _stored_next(
        self, connection: Connection[Any], checkpoint: Checkpoint, text: str, epoch: int
    ) -> bool:
        """Store it in place of the one that this object has stored last; whether that could be.

        If not, the target is not as it was, or the checkpoint may not follow that one. Who reads
        what is there can say which.
        """
        by, saved = self._stored
        if saved is None or by != epoch:
            return False
        try:
            check_progress(saved, checkpoint)
        except FatalError:
            return False
        key, before = self._pipeline, self._stored_text
        with connection.cursor() as cursor:
            stored = cursor.execute(_NEXT, (text, key, epoch, before, key, epoch))
            while cursor.nextset():
                pass
        if not stored:
            return False
        self._stored, self._stored_text = (epoch, checkpoint), text
        return True

    def _note(self, epoch: int) -> CheckpointNote:
        return CheckpointNote.of(self._owner, epoch, "target", str(self._endpoint))

    def replace(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `ReplaceableStore.replace`."""
        forget_checkpoint(self._endpoint, self._pipeline)
        self._store(checkpoint, epoch)
        self._notes.replace(checkpoint, self._note(epoch))

    def close(self) -> None:
        """Drop the connection. Safe to call twice; the next call opens another."""
        with self._using:
            self._drop()

    def _fenced(self, cursor: Cursor, epoch: int) -> Checkpoint | None:
        """Share the fence's lock until the transaction ends; returns what is stored."""
        cursor.execute(_FENCE, (self._pipeline,))
        row = cursor.fetchone()
        fence = int(row[0]) if row else None
        if row is None or fence != epoch:
            raise fence_error(epoch, fence, self._pipeline, self._endpoint)
        return self._parsed(row[1])

    def _check_stored(self, stored: Checkpoint | None, epoch: int) -> None:
        """Refuse to skip what a target that was set back to an earlier state has lost."""
        by, saved = self._stored
        if saved is None or by != epoch or (stored is not None and stored.order >= saved.order):
            return
        raise TargetWentBackError(
            f"the target has lost the checkpoint {saved}: it holds {stored or 'none'}",
            hint="It is read again from there",
            pipeline=self._pipeline,
            server=self._endpoint,
        )

    def _parsed(self, text: str | None) -> Checkpoint | None:
        if text is None:
            return None
        try:
            return Checkpoint.from_json(json.loads(text))
        except (ValueError, TypeError, AttributeError) as error:
            raise FatalError(
                f"not a stored checkpoint: {shape(text)}",
                hint="Reset the position; it was not written by this version of setl",
                pipeline=self._pipeline,
                server=self._endpoint,
            ) from error

    def _run(self, work: Callable[[Connection[Any]], _T]) -> _T:
        """Do it; once more on a new connection if the one kept had ended since the last time.

        What may have been done the first time is done again, under the same fence.
        """
        with self._using:
            who, stored = f"{self._pipeline}, for the checkpoint", self._connection is not None
            return once_more_if_cut_off(lambda: self._attempt(work), who, cached=stored)

    def _attempt(self, work: Callable[[Connection[Any]], _T]) -> _T:
        if self._connection is None:
            self._connection = connect(
                self._endpoint,
                autocommit=False,
                lock_wait=self._lock_wait,
                client_flag=CLIENT.MULTI_STATEMENTS,
            )
        try:
            with translating(self._endpoint):
                return work(self._connection)
        except (FencedError, FatalError, TargetWentBackError):
            raise  # decided here and rolled back: the connection is as good as before
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        connection, self._connection, self._registered = self._connection, None, 0
        if connection is not None and connection.open:
            connection.close()
