"""A door in front of a Kafka broker that knows neither SASL nor TLS: it asks for both itself.

Clients see one broker at the door's own address. Before a connection has logged in, only the
requests that lead there are answered; afterwards all pass through to the broker.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import os
import ssl
import struct
import threading
from collections import deque
from typing import Any

import kafka.protocol.sasl
from kafka.protocol import metadata

from setl_embedded.ports import HOST, free_port

API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
METADATA: Any = metadata  # kafka-python declares no types for its messages
SASL: Any = kafka.protocol.sasl
REWRITTEN = {
    3: METADATA.MetadataResponse,
    10: METADATA.FindCoordinatorResponse,
    API_VERSIONS: METADATA.ApiVersionsResponse,
}
UNSUPPORTED_MECHANISM, FAILED = 33, 58
ITERATIONS = 4096


class KafkaProxy:
    """Listens in a thread of its own; a context manager.

    `accounts` maps names to passwords; without any, nobody has to log in. With `certificate`,
    a pair of files (certificate, key), connections are TLS. `names` collects who logged in.
    `accounts` and `mechanisms` may be changed at any time; connections can be cut with `drop`.
    `verdict` changes the last message of a SCRAM login, and makes one of a refusal (None).
    """

    def __init__(
        self, broker, *, accounts=None, mechanisms=("PLAIN",), certificate=None, verdict=None
    ):
        self.server = (broker.host, broker.port)
        self.port = free_port()
        self.brokers = f"{HOST}:{self.port}"
        self.accounts = accounts or {}
        self.mechanisms = mechanisms
        self.verdict = verdict or (lambda message: message)
        self.names = []
        self._connections = set()
        self._context = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        opening = asyncio.start_server(self._accepted, HOST, self.port, ssl=self._context)
        asyncio.run_coroutine_threadsafe(opening, self._loop).result(10)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def drop(self):
        """End all connections."""

        async def end():
            for task in self._connections:
                task.cancel()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)

    async def _close(self):
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _accepted(self, reader, writer):
        task = asyncio.current_task()
        self._connections.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await Connection(self, reader, writer).run()
        self._connections.discard(task)
        writer.close()


class Connection:
    def __init__(self, proxy, reader, writer):
        self.proxy = proxy
        self.reader, self.writer = reader, writer
        self.login = None
        self.logged_in = not proxy.accounts
        self.asked = deque()  # (api, version) in order

    async def run(self):
        from_broker, to_broker = await asyncio.open_connection(*self.proxy.server)
        answers = asyncio.create_task(self._answers(from_broker))
        try:
            while True:
                frame = await read_frame(self.reader)
                api, version, correlation = struct.unpack_from(">hhi", frame)
                if api in (HANDSHAKE, AUTHENTICATE):
                    # Clients wait for each of these before they send anything else.
                    message = self._sasl(api, version, frame)
                    await send(self.writer, encoded(message, version, correlation))
                elif api == API_VERSIONS or self.logged_in:
                    self.asked.append((api, version))
                    await send(to_broker, frame)
                else:
                    return
        finally:
            answers.cancel()
            to_broker.close()

    async def _answers(self, from_broker):
        while True:
            frame = await read_frame(from_broker)
            api, version = self.asked.popleft()
            kind = REWRITTEN.get(api)
            if kind is not None:
                frame = self._rewritten(kind, version, frame)
            await send(self.writer, frame)

    def _rewritten(self, kind, version, frame):
        """The broker's answer, with the door's address in it, and what the door adds."""
        message = kind[version].decode(frame, header=True)
        if kind is METADATA.ApiVersionsResponse:
            if message.error_code == 0:
                entry = type(message.api_keys[0])
                message.api_keys += [
                    entry(api_key=HANDSHAKE, min_version=0, max_version=1, version=version),
                    entry(api_key=AUTHENTICATE, min_version=0, max_version=2, version=version),
                ]
        else:
            positions = message.brokers if kind is METADATA.MetadataResponse else [message]
            if kind is METADATA.FindCoordinatorResponse and version >= 4:
                positions = message.coordinators
            for position in positions:
                position.host, position.port = HOST, self.proxy.port
        (correlation,) = struct.unpack_from(">i", frame)
        return encoded(message, version, correlation)

    def _sasl(self, api, version, frame):
        if api == HANDSHAKE:
            request = SASL.SaslHandshakeRequest[version].decode(frame, header=True)
            known = request.mechanism in self.proxy.mechanisms
            if known:
                plain = request.mechanism == "PLAIN"
                self.login = Plain() if plain else Scram(request.mechanism)
            return SASL.SaslHandshakeResponse(
                error_code=0 if known else UNSUPPORTED_MECHANISM,
                mechanisms=list(self.proxy.mechanisms),
                version=version,
            )
        request = SASL.SaslAuthenticateRequest[version].decode(frame, header=True)
        login = self.login
        answer = login.step(request.auth_bytes, self.proxy.accounts) if login else None
        if login and (login.done or answer is None):
            answer = self.proxy.verdict(answer)
        if login and login.done:
            self.logged_in = True
            self.proxy.names.append(login.name)
        return SASL.SaslAuthenticateResponse(
            error_code=FAILED if answer is None else 0,
            error_message="Authentication failed: invalid credentials" if answer is None else None,
            auth_bytes=answer or b"",
            session_lifetime_ms=0,
            version=version,
        )


class Plain:
    """RFC 4616, on the broker's side."""

    done = False
    name = ""

    def step(self, message, accounts):
        _, self.name, password = message.decode().split("\0")
        self.done = accounts.get(self.name) == password
        return b"" if self.done else None


class Scram:
    """RFC 5802, on the broker's side."""

    done = False
    name = ""

    def __init__(self, mechanism):
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.first = b""

    def step(self, message, accounts):
        if not self.first:
            return self._challenge(message)
        return self._verdict(message, accounts.get(self.name, ""))

    def _challenge(self, message):
        bare = message.removeprefix(b"n,,")
        fields = attributes(bare)
        self.name = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self.nonce = fields["r"] + base64.b64encode(os.urandom(18)).decode()
        self.salt = os.urandom(16)
        salt = base64.b64encode(self.salt).decode()
        answer = f"r={self.nonce},s={salt},i={ITERATIONS}".encode()
        self.first = bare + b"," + answer
        return answer

    def _verdict(self, message, password):
        without_proof, _, proof = message.rpartition(b",p=")
        salted = hashlib.pbkdf2_hmac(self.hash, password.encode(), self.salt, ITERATIONS)
        signed = self.first + b"," + without_proof
        client_key = self._sign(salted, b"Client Key")
        signature = self._sign(hashlib.new(self.hash, client_key).digest(), signed)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if attributes(without_proof)["r"] != self.nonce or base64.b64decode(proof) != expected:
            return None
        self.done = True
        return b"v=" + base64.b64encode(self._sign(self._sign(salted, b"Server Key"), signed))

    def _sign(self, key, message):
        return hmac.new(key, message, self.hash).digest()


def attributes(message):
    return dict(part.split("=", 1) for part in message.decode().split(","))


def encoded(message, version, correlation):
    if message.header is None:  # those that were read have it, and it cannot be set twice
        message.API_VERSION = version
        message.with_header(correlation_id=correlation)
    return message.encode(header=True)


async def read_frame(reader):
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def send(writer, frame):
    writer.write(struct.pack(">i", len(frame)) + frame)
    await writer.drain()
