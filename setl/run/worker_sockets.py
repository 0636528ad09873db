"""How the JVM and the Python processes of this machine talk: over Unix sockets where they can.

What they tell each other before a task begins are several small pieces, each way. Over TCP a small
task begins about 40 ms later; the likely cause is an acknowledgement that the receiver puts off,
which was not looked at in packets. Not on clusters: the path of a socket is short, and the folders
of an executor may be long.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

_ENABLED: Final = "spark.python.unix.domain.socket.enabled"
_FOLDER: Final = "spark.python.unix.domain.socket.dir"
_MOST_BYTES: Final = 103  # of a socket's path, where it is shortest
_PREFIX: Final = "setl-py-"
_GRACE: Final = 60.0  # seconds, in which whoever makes a folder locks it
_NAME_BYTES: Final = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")


def worker_sockets(parent: Path | None = None) -> dict[str, str]:
    """The settings of a session; none where a socket's path would be too long.

    Spark asks for no password on a Unix socket, so they are in a folder that nobody else can enter.
    It is removed when this process ends. One that was killed could not do that; the next one that
    starts does. Versions of Spark that know no such sockets use TCP.

    Args:
        parent: where the folder is made, instead of where temporary files are.
    """
    parent = parent or Path(tempfile.gettempdir())
    _remove_left(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    if len(str(folder).encode()) + _NAME_BYTES > _MOST_BYTES:
        folder.rmdir()
        return {}
    # Held until this process ends, however it does. Process ids would not tell: containers that
    # share a folder for temporary files number their processes alike.
    _locked(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {_ENABLED: "true", _FOLDER: str(folder)}


def _locked(folder: Path) -> int | None:
    """Lock a folder; returns what holds the lock, None if another process has it or it is gone."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _remove_left(parent: Path) -> None:
    """Remove folders of this user that no living process has locked."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            made = folder.lstat()
        except OSError:
            continue
        if made.st_uid != os.getuid() or time.time() - made.st_mtime < _GRACE:
            continue
        held = _locked(folder)
        if held is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)
