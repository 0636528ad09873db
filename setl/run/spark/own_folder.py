"""Folders that belong to one process, and the removal of those that dead ones left."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A folder that nobody else can enter.

    Attributes:
        path: where it is.
        lock: file descriptor that says that the folder is in use, until it is closed in every
            process that has it; None where the file system has no locks.
    """

    path: Path
    lock: int | None


def make_own_folder(parent: Path, prefix: str) -> OwnFolder:
    """Make a folder, and remove those of the same prefix that nobody uses any more.

    It is removed when this process ends. One that was killed could not do that; the next one that
    starts does.

    Args:
        parent: where the folder is made.
        prefix: of its name; folders of this user with that prefix are made here only.

    Raises:
        OSError: no folder can be made there.
    """
    remove_left(parent, prefix)
    folder, held = _made(parent, prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return OwnFolder(folder, held)


def _made(parent: Path, prefix: str) -> tuple[Path, int | None]:
    # Held until this process ends, however it does. Process ids would not tell: containers that
    # share a folder for temporary files number their processes alike.
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        held = _locked(folder)
        if held is not None:
            return folder, held
        # Another process that starts found it before it was locked, and removes it.
        shutil.rmtree(folder, ignore_errors=True)
    # A file system without locks: nobody can lock a folder there to remove it.
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent)), None


def _locked(folder: Path) -> int | None:
    """Lock a folder; returns what holds the lock, None if another process has it or it is gone."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()  # another process may have removed it between the two lines above
    except OSError:
        os.close(held)
        return None
    return held


def remove_left(parent: Path, prefix: str) -> None:
    """Remove folders of this user that no living process has locked."""
    for folder in parent.glob(f"{prefix}*"):
        try:
            made = folder.lstat()
        except OSError:
            continue
        if made.st_uid != os.getuid():
            continue
        held = _locked(folder)
        if held is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)
