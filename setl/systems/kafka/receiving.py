"""Takes Kafka's answers from a connection with fewer copies.

kafka-python asks the socket for 4 KB at a time, and copies an answer five times until its records
can be looked at. A reader that is behind gets large answers, of which that costs more than
unpacking their records. So here bytes are taken from the system in larger pieces and put
where the answer is then read.
"""

from __future__ import annotations

import logging
from ssl import SSLWantReadError, SSLWantWriteError
from typing import Any, Final

from kafka.errors import KafkaConnectionError
from kafka.protocol.frame import KafkaBytes  # pyright: ignore[reportMissingTypeStubs]

_LOG = logging.getLogger(__name__)

_PIECE: Final = 64 * 1024  # bytes asked for at a time; for larger ones memory comes from the system
_TOGETHER: Final = 1024 * 1024  # bytes after which what has come is looked at
_LENGTH: Final = 4  # bytes of an answer's length, which stands before it
_NOTHING_YET: Final = (BlockingIOError, InterruptedError, SSLWantReadError, SSLWantWriteError)
_Bytes: Final[Any] = KafkaBytes


def receive_fast(manager: Any) -> None:
    """Make all connections of kafka-python's connection manager receive this way.

    The library has no way to be told. Before its manager has opened any, so that none is left out.
    """
    get = manager.get_connection

    def get_connection(node_id: Any, *args: Any, **more: Any) -> Any:
        known = manager._conns.get(node_id)  # noqa: SLF001
        connection = get(node_id, *args, **more)
        if connection is not known:
            _change(connection)
        return connection

    manager.get_connection = get_connection


def _change(connection: Any) -> None:
    """Make one connection receive so.

    It gets its transport, and makes its parser, in `connection_made`; nothing is received before.
    """
    made = connection.connection_made

    def connection_made(transport: Any) -> None:
        transport._sock_recv = Receiver(transport)  # noqa: SLF001
        made(transport)
        connection.parser.receive_bytes = Answers(connection.parser)

    connection.connection_made = connection_made


class Receiver:
    """In place of a transport's ``_sock_recv``."""

    def __init__(self, transport: Any) -> None:
        """For a transport that is connected, and has done its handshake if it uses TLS."""
        self._transport = transport

    def __call__(self) -> tuple[bytes, Exception | None]:
        """Bytes that have come, and why no more will, None if more may."""
        sock = self._transport._sock  # noqa: SLF001
        if sock is None:
            return b"", KafkaConnectionError("the connection was closed here")
        # TLS may hold bytes already, of which the system would not tell when asked to wait.
        pending = getattr(sock, "pending", int)
        pieces, size = list[bytes](), 0
        error: Exception | None = None
        try:
            while size < _TOGETHER or pending():
                piece = sock.recv(_PIECE)
                if not piece:
                    error = KafkaConnectionError("the broker has closed the connection")
                    break
                pieces.append(piece)
                size += len(piece)
        except _NOTHING_YET:
            pass
        except OSError as raised:
            error = KafkaConnectionError(raised)
        if error is not None:
            _LOG.debug("%s: %s", self._transport, error)
        return b"".join(pieces), error


class Answers:
    """In place of a parser's ``receive_bytes``."""

    def __init__(self, parser: Any) -> None:
        """For a parser that has received nothing."""
        self._parser = parser
        self._length = bytearray()
        self._answer: Any = None

    def __call__(self, data: bytes) -> list[tuple[int, Any]]:
        """Take in bytes; gives the answers that are complete, each with the number of its request.

        Raises:
            KafkaProtocolError: the bytes make no sense.
        """
        parser, view, at = self._parser, memoryview(data), 0
        answers: list[tuple[int, Any]] = []
        while at < len(view):
            if self._answer is None:
                taken = view[at : at + _LENGTH - len(self._length)]
                at += len(taken)
                self._length += taken
                if len(self._length) < _LENGTH:
                    break
                size = int.from_bytes(self._length, signed=True)
                self._length.clear()
                parser._validate_frame_size(size)  # noqa: SLF001
                self._answer = _Answer(size)
            answer = self._answer
            taken = view[at : at + len(answer) - answer.tell()]
            at += len(taken)
            answer.write(taken)
            if answer.tell() == len(answer):
                answer.seek(0)
                self._answer = None
                answers.append(parser._process_response(answer))  # noqa: SLF001
        return answers


class _Answer(_Bytes):
    """The bytes of an answer, of which the rest can be read without a copy."""

    def read(self, nbytes: int | None = None) -> Any:
        if nbytes is not None:
            return _Bytes.read(self, nbytes)
        rest = memoryview(self)[self.tell() :]
        self.seek(len(self))
        return rest
