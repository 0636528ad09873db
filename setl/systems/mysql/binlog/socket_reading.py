"""How bytes of a binlog connection are waited for, or taken as they have come; with TLS or not."""

from __future__ import annotations

import socket
import ssl
import struct


def limit_silence(stream: socket.socket, seconds: float) -> None:
    """Let `recv` wait so long at most.

    With Python's own limit it would ask first whether there is anything, and take its turn among
    all threads twice. A heartbeat wakes the threads of sixty quiet pipelines at once.
    """
    if isinstance(stream, ssl.SSLSocket):
        stream.settimeout(seconds)  # what is decrypted already cannot be waited for in the system
        return
    whole = int(seconds)
    limit = struct.pack("ll", whole, max(1, int((seconds - whole) * 1e6)))
    stream.settimeout(None)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def received_now(stream: socket.socket, most: int, silence: float) -> bytes | None:
    """What has come, without waiting.

    Args:
        stream: the connection.
        most: bytes at most.
        silence: as given to `limit_silence`.

    Returns:
        b"" if the connection has ended, which `recv` tells again; None if nothing has come.
    """
    try:
        if not isinstance(stream, ssl.SSLSocket):
            return stream.recv(most, socket.MSG_DONTWAIT)
        stream.settimeout(0.0)
        try:
            return stream.recv(most)
        finally:
            stream.settimeout(silence)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    except OSError:
        return b""


def holds_decrypted(stream: socket.socket) -> bool:
    """Whether something is there already that the system does not tell of."""
    return isinstance(stream, ssl.SSLSocket) and stream.pending() > 0
