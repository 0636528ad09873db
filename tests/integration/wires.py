"""A stranger who knocks at the ports of Spark's processes, without any secret.

Source of the frames: `org.apache.spark.network.protocol.MessageWithHeader` and `RpcRequest`; of
the token of PySpark's gateway: `py4j.protocol.AUTH_COMMAND_NAME`; of its workers and accumulators:
`pyspark/worker.py` and `pyspark/accumulators.py`.
"""

import socket
import struct
from contextlib import suppress

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

NO_SECRET = "Expected SaslMessage, received something else"
"""What Spark answers to whoever does not prove first that it knows the secret."""

NO_HANDSHAKE = "Unknown challenge message"
"""What it answers instead where connections are encrypted, and nothing else will do."""

_RPC_REQUEST, _RPC_FAILURE, _STREAM_REQUEST, _STREAM_RESPONSE = 3, 5, 6, 7


def answer(port, data, host="127.0.0.1", seconds=30.0, quiet=0.5, whole=None):
    """What comes back for some bytes: all until the other side closes, or is silent.

    It may be silent for `seconds` until something comes, and for `quiet` from then on. If `whole`
    says what has to come, all that may take `seconds`, and nothing is waited for behind it.
    """
    found = b""
    with socket.create_connection((host, port), seconds) as connection, suppress(OSError):
        connection.sendall(data)
        connection.settimeout(seconds)
        while len(found) < 100_000 and (piece := connection.recv(65536)):
            found += piece
            if whole is None:
                connection.settimeout(quiet)
            elif whole(found):
                break
    return found


def spark_request(port, host="127.0.0.1", body=b"hello"):
    """What a Spark process answers to a request of a stranger; "" if it is none."""
    head = bytes([_RPC_REQUEST]) + struct.pack(">qi", 7, len(body))
    found = answer(port, _framed(head + body), host, whole=_is_whole)
    failed = len(found) > 21 and found[8] == _RPC_FAILURE and found[9:17] == struct.pack(">q", 7)
    return found[21:].decode(errors="replace") if failed else ""


def spark_stream(name, port, host="127.0.0.1"):
    """What a Spark process answers to a stranger who asks for a file that it serves."""
    wanted = name.encode()
    head = bytes([_STREAM_REQUEST]) + struct.pack(">i", len(wanted)) + wanted
    return answer(port, _framed(head), host, whole=_is_whole)


def _framed(message):
    return struct.pack(">q", 8 + len(message)) + message


def _is_whole(found):
    """Whether a frame is there, and behind it the file that it announces, if it does."""
    if len(found) < 9:
        return False
    (size,) = struct.unpack_from(">q", found)
    if len(found) >= size and found[8] == _STREAM_RESPONSE:
        size += struct.unpack_from(">q", found, size - 8)[0]
    return len(found) >= size


def gateway_obeys(port, host="127.0.0.1"):
    """Whether a JVM does what a stranger wants; None if no gateway listens there.

    To be asked before `spark_request`: Spark closes at once what is none of its messages, and a
    gateway waits for the rest of a line.
    """
    if not answer(port, b"A\nwrong-token\n", host).startswith(b"!"):
        return None
    gateway = JavaGateway(gateway_parameters=GatewayParameters(host, port))
    try:
        return bool(gateway.jvm.java.lang.System.currentTimeMillis())  # pyright: ignore
    except Py4JError:
        return False
    finally:
        with suppress(Exception):
            gateway.close()


def worker_refuses(port):
    """Whether PySpark's daemon ends the worker that a stranger has asked for."""
    # The daemon answers first, and then the worker that it has forked, which closes.
    return (
        answer(port, struct.pack(">i", 5) + b"wrong", seconds=20.0, quiet=20.0)[4:]
        == b"\0\0\0\3err"
    )


def accumulators_answer(port):
    """What PySpark's driver answers to a stranger who sends figures of tasks."""
    # Silence is an answer, too, which another one has to come before.
    return answer(port, b"x" * 4096, seconds=5.0)
