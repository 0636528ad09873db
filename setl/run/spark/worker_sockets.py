"""How the JVM and the Python processes of this machine talk: over Unix sockets where they can.

What they tell each other before a task begins are several small pieces, each way. Over TCP a small
task begins about 40 ms later; the likely cause is an acknowledgement that the receiver puts off,
which was not looked at in packets. Not on clusters: the path of a socket is short, and the folders
of an executor may be long.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from setl.run.spark.own_folder import make_own_folder

_ENABLED: Final = "spark.python.unix.domain.socket.enabled"
_FOLDER: Final = "spark.python.unix.domain.socket.dir"
_MOST_BYTES: Final = 103  # of a socket's path, where it is shortest
SOCKETS_PREFIX: Final = "setl-py-"
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
    folder = make_own_folder(parent, SOCKETS_PREFIX).path
    if len(str(folder).encode()) + _NAME_BYTES > _MOST_BYTES:
        folder.rmdir()
        return {}
    return {_ENABLED: "true", _FOLDER: str(folder)}
