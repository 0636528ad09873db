"""Checkpoints in a file on the node, for pipelines that one machine leads."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from setl.content_shape import shape
from setl.errors import ConfigurationError, FatalError, FencedError, SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.select.checkpoints.folder import confined
from setl.select.checkpoints.note import CheckpointNote, Notes, missing
from setl.select.checkpoints.owner import Owner
from setl.select.checkpoints.succession import StoredCheckpoint, Succession
from setl.waiting import polling

_PERMANENT = frozenset({
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EROFS,
    errno.ENAMETOOLONG, errno.ELOOP,
})  # fmt: skip
_MODE = 0o600
_LOCK_SECONDS = 5.0
_LOCK_STEP = 0.05


class FileCheckpointStore:
    """Keeps a pipeline's checkpoint as JSON in one file.

    A new content is written beside the file, forced to disk, and put in its place by one
    rename, which is forced to disk too. So at every instant there is the old checkpoint or the
    new one, whole. A lock beside the file makes comparing and replacing one step among the
    processes of a machine; the file says which epoch wrote it.

    Another machine has no such file, or an old one. The note beside the leader lock says which
    machine has written it last, so a node elsewhere stops with an error instead of beginning
    at `start` (I7); see `setl.select.checkpoints.note`.

    Belongs to one thread.
    """

    def __init__(self, path: Path | str, notes: Notes, owner: Owner, folder: Path) -> None:
        """Nothing is read yet.

        Args:
            path: the file; its folder exists.
            notes: where the pipeline's note is kept.
            owner: whose checkpoint it is.
            folder: below which it has to be, see `setl.select.checkpoints.folder`.
        """
        self._folder = folder
        self._path = Path(path)
        self._owner = owner
        self._notes = notes
        self._succession = Succession()
        self._known = False
        self._age: float | None = None

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`.

        Raises:
            TransientError: the arbiter does not answer, or the disk fails.
            ConfigurationError: the file may not be read, or is another pipeline's.
            FatalError: the checkpoint lies on another machine, or was not written by this
                version.
        """
        note = self._notes.read()
        stored = self.peek()
        if note is not None and note.store == "file":
            self._check(stored, note)
        self._succession.loaded(stored)
        self._known = True
        self._age = self._seconds_old() if stored else None
        return stored.checkpoint if stored else None

    def age(self) -> float | None:
        """See `CheckpointStore.age`."""
        return self._age

    def _seconds_old(self) -> float | None:
        try:
            return max(0.0, time.time() - self._path.stat().st_mtime)
        except OSError:  # it was read a moment ago, and is all that is needed
            return None

    def peek(self) -> StoredCheckpoint | None:
        """What is in the file, None without one. Raises what `load` raises."""
        with self._translating():
            confined(self._path, self._folder)
            try:
                # Of a pipe nobody would ever write into, a reader would wait for ever.
                with _opened(self._path, os.O_RDONLY | os.O_NONBLOCK) as file:
                    text = file.read()
            except FileNotFoundError:
                return None
            except UnicodeDecodeError as error:
                raise self._unreadable(f"{shape(error.object)} that are no text") from None
        return self._parsed(text)

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`.

        Raises:
            FencedError: a higher epoch has written the file, or one on another machine.
            FatalError: it lies before the stored one.
            TransientError: the arbiter does not answer, or the disk fails; it may or may not
                be stored.
            ConfigurationError: the file may not be written.
        """
        if not self._known:
            self.load()
        with self._translating(), self._locked():
            stored = self.peek()
            try:
                newest = self._succession.decide(stored, checkpoint, epoch)
            except (FatalError, FencedError) as error:
                raise error.at(**self._where()) from None
            self._replace(newest, epoch)
        self._succession.loaded(StoredCheckpoint(newest, epoch))
        # Afterwards: a note about a file that is not there would stop the next leader.
        self._notes.keep(newest, self._note(epoch))

    def replace(self, checkpoint: Checkpoint, epoch: int) -> None:
        """Store over whatever is there, which may not be readable.

        Raises:
            TransientError: as `store`.
            ConfigurationError: as `store`.
        """
        with self._translating(), self._locked():
            self._replace(checkpoint, epoch)
        self._notes.replace(checkpoint, self._note(epoch))

    def _note(self, epoch: int) -> CheckpointNote:
        return CheckpointNote.of(self._owner, epoch, "file", str(self._path))

    def close(self) -> None:
        """See `CheckpointStore.close`; nothing is kept open."""

    def _check(self, stored: StoredCheckpoint | None, note: CheckpointNote) -> None:
        """See that the file is the one that was written last."""
        hint = f"Copy {note.location} from {note.host} to {self._path}"
        if stored is None:
            what = f"there is no {self._path} on {self._owner.host}"
            raise missing(note, what, hint, self._owner.pipeline)
        here = (note.host, note.location) == (self._owner.host, str(self._path))
        if stored.epoch < note.epoch and not here:
            what = f"{self._path} on {self._owner.host} is older, of epoch {stored.epoch}"
            raise missing(note, what, hint, self._owner.pipeline)

    def _replace(self, checkpoint: Checkpoint, epoch: int) -> None:
        value = {
            "version": 1,
            "pipeline": self._owner.pipeline,
            "epoch": epoch,
            "checkpoint": checkpoint.to_json(),
        }
        confined(self._path, self._folder)
        beside = self._path.with_name(f"{self._path.name}.new")
        with _opened(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            file.write(json.dumps(value) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _parsed(self, text: str) -> StoredCheckpoint:
        try:
            value: Any = json.loads(text)
            stored = StoredCheckpoint(
                Checkpoint.from_json(value["checkpoint"]), int(value["epoch"])
            )
            pipeline = str(value["pipeline"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._unreadable(shape(text)) from error
        if pipeline != self._owner.pipeline:
            raise ConfigurationError(
                f"the file keeps the checkpoint of {pipeline}",
                hint="Give each pipeline a `checkpoint_file` of its own",
            ).at(**self._where())
        return stored

    def _unreadable(self, what: str) -> FatalError:
        return FatalError(
            f"not a stored checkpoint: {what}",
            hint="Reset the position; it was not written by this version of setl",
        ).at(**self._where())

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other processes of this machine out; a frozen one must not hold a leader up."""
        confined(self._path, self._folder)
        beside = self._path.with_name(f"{self._path.name}.lock")
        with _opened(beside, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as lock:
            for _ in polling(_LOCK_SECONDS, _LOCK_STEP):
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
            else:
                raise TransientError(
                    "another process holds the lock of the checkpoint file",
                    hint="A setl process on this machine hangs; end it",
                )
            yield

    @contextmanager
    def _translating(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            kind = ConfigurationError if error.errno in _PERMANENT else TransientError
            raise kind(
                f"the checkpoint file: {error.strerror or error}",
                hint="Its folder must exist, and the user that setl runs as must be able to"
                " write there",
            ).at(**self._where()) from error
        except SetlError as error:
            raise error.at(**self._where()) from None

    def _where(self) -> dict[str, object]:
        owner = self._owner
        return {"pipeline": owner.pipeline, "file": self._path, "host": owner.host}


@contextmanager
def _opened(path: Path, flags: int) -> Generator[IO[str]]:
    """A file of nobody but this user. A link in its place is an error, wherever it leads to."""
    number = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
    mode = "r" if flags & os.O_ACCMODE == os.O_RDONLY else "w"
    with os.fdopen(number, mode, encoding="utf-8") as file:
        if flags & os.O_CREAT:
            os.fchmod(number, _MODE)  # one of an earlier release may be open to others
        yield file
