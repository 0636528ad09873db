"""Hands rows to tasks of this machine in files that lie in memory.

What a job is given goes through a file, the JVM and a socket otherwise, and each copies it. Here
the job is given the names of files. Their folder belongs to this process: the next start of a node
removes what one that was killed has left.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from setl.run.spark.own_folder import make_own_folder

_log = logging.getLogger(__name__)

Hand = Callable[[bytes], bytes]
"""Takes bytes, and returns what `received` makes the same bytes of."""

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - in it is a folder that nobody else can enter
ROWS_PREFIX: Final = "setl-rows-"
_MARK: Final = b"FILE\0"  # no pickle begins so, nor do packed work items
_LEAST_BYTES: Final = 64 * 1024  # below, a file costs more than the copies
_MOST_BYTES: Final = 256 * 1024 * 1024


class SharedMemory:
    """Files of this process in memory, no more than a number of bytes at once."""

    def __init__(self, parent: Path, most_bytes: int) -> None:
        """Make nothing yet; the folder of the files will be in `parent`."""
        self._parent = parent
        self._left = most_bytes
        self._lock = threading.Lock()
        self._numbers = count()
        self._tried = False
        self._folder: Path | None = None

    def folder(self) -> Path | None:
        """Where the files are; None where there is no room. Removes what dead processes left."""
        with self._lock:
            if not self._tried:
                self._tried = True
                try:
                    self._folder = make_own_folder(self._parent, ROWS_PREFIX).path
                except OSError as error:
                    _log.debug("rows go to tasks through the JVM: %r", error)
            return self._folder

    @contextmanager
    def files(self) -> Generator[Hand]:
        """While it is entered, what is handed over may lie in files.

        Beyond the limit, and where memory is short, the bytes themselves are handed over.
        """
        paths: list[Path] = []
        taken = 0

        def hand(content: bytes) -> bytes:
            nonlocal taken
            size = len(content)
            folder = self.folder() if size >= _LEAST_BYTES else None
            if folder is None or not self._take(folder, size):
                return content
            taken += size
            path = folder / str(next(self._numbers))
            paths.append(path)
            try:
                with open(path, "xb", opener=_for_us_alone) as file:
                    file.write(content)
            except OSError:  # others have filled it meanwhile, or somebody removed the folder
                return content
            return _MARK + os.fsencode(path)

        try:
            yield hand
        finally:
            for path in paths:
                with suppress(OSError):
                    path.unlink()
            with self._lock:
                self._left += taken

    def _take(self, folder: Path, size: int) -> bool:
        """Take some of the bytes that are left; half of all memory for files is for others."""
        try:
            there = os.statvfs(folder)
        except OSError:
            return False
        free = (there.f_bavail - there.f_blocks // 2) * there.f_frsize
        with self._lock:
            if size > min(self._left, free):
                return False
            self._left -= size
            return True


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


shared_memory: Final = SharedMemory(IN_MEMORY, _MOST_BYTES)
"""That of this process."""


@contextmanager
def handing_over(context: SparkContext) -> Generator[Hand]:
    """While it is entered, bytes can be handed to tasks of the context; `received` takes them.

    Tasks that are still running behind it may miss what they were handed, and fail.
    """
    if not str(context.master).startswith("local"):
        yield bytes
        return
    with shared_memory.files() as hand:
        yield hand


def received(content: bytes) -> bytes:
    """In a task: what was handed over.

    Raises:
        OSError: it is gone. Whoever removed it, the load can be done again.
    """
    if not content.startswith(_MARK):
        return content
    name = os.fsdecode(content.removeprefix(_MARK))
    try:
        return Path(name).read_bytes()
    except OSError as error:
        # Said as what it is, a lack of the machine's: "not found" would count as a defect.
        raise OSError(f"rows in {name} cannot be read: {error.strerror}") from error
