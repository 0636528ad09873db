"""Free TCP ports of 127.0.0.1 that stay free until the server takes them.

Asking the kernel for port 0 and giving it back is a race: the next outgoing connection, or
another test run on the same machine, may get the same number. So numbers come from below
the range of outgoing connections, and each is reserved by a lock that the kernel releases
when this process ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
import threading
from pathlib import Path

from setl_embedded.errors import EmbeddedError

HOST = "127.0.0.1"
_FIRST, _LAST = 15_000, 31_999  # Linux hands outgoing connections 32768 and above

_reserving = threading.Lock()
_reserved: set[int] = set()
_lock_file: int | None = None


def free_port() -> int:
    """A port that nobody listens on and that no other caller of this function has.

    Raises:
        EmbeddedError: there is none.
    """
    candidates = range(_FIRST, _LAST + 1)
    with _reserving:
        for port in random.sample(candidates, len(candidates)):
            if port not in _reserved and _lock(port) and _can_be_bound(port):
                _reserved.add(port)
                return port
    raise EmbeddedError(f"no free TCP port between {_FIRST} and {_LAST}")


def _lock(port: int) -> bool:
    """Lock the byte of that number in one file that all processes of this user share."""
    global _lock_file  # noqa: PLW0603 - closing the file anywhere would release all its locks
    if _lock_file is None:
        path = Path(tempfile.gettempdir()) / f"setl-embedded-ports-{os.getuid()}.lock"
        _lock_file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(_lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _can_be_bound(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
