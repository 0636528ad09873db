"""Kafka and Elasticsearch from ``noida-db``, one small binary that speaks both protocols."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import ClassVar

from setl_embedded.asking import NoAnswerError, ask_json
from setl_embedded.ports import HOST, free_port
from setl_embedded.programs import noida_db
from setl_embedded.server import Server


class NoidaServer(Server):
    """One service of noida-db in a process of its own, so that each can fail alone.

    It keeps its data in memory and saves them every few seconds and on `stop`. `kill` loses
    what came after the last save, even if it was acknowledged, and `stop` what is acknowledged
    while it saves: 145 of 35,265 documents in eight restarts under load, and 66 of 21,600 with
    a flush before each. Only what was acknowledged before `stop` began is kept. So to take a
    server away while anybody writes to it, use `pause` and `resume`.

    Attributes:
        host: always 127.0.0.1.
        port: TCP port, the same over restarts.
    """

    service: ClassVar[str]

    def __init__(self, folder: Path | str, name: str = "") -> None:
        super().__init__(folder, name or self.service)
        self.host = HOST
        self.port = free_port()

    def _command(self) -> list[str]:
        return [
            noida_db(), "start",
            "--data-dir", str(self.folder / "data"),
            "--host", HOST,
            "--only", self.service,
            f"--{self.service}-port", str(self.port),
        ]  # fmt: skip


class Kafka(NoidaServer):
    """A Kafka broker."""

    service = "kafka"

    @property
    def brokers(self) -> str:
        """The address in the form that clients take: ``127.0.0.1:port``."""
        return f"{self.host}:{self.port}"

    def answers(self) -> bool:
        """See `Server.answers`; asks for the API versions as every client does first."""
        # Request header v1 and an empty ApiVersions v0 body:
        # https://kafka.apache.org/protocol#The_Messages_ApiVersions
        correlation = 7
        request = struct.pack(">hhih", 18, 0, correlation, -1)
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as connection:
                connection.settimeout(2)
                connection.sendall(struct.pack(">i", len(request)) + request)
                answer = connection.makefile("rb").read(10)
        except OSError:
            return False
        if len(answer) < 10:
            return False
        _, echoed, error = struct.unpack(">iih", answer)
        return echoed == correlation and error == 0


class Elasticsearch(NoidaServer):
    """An Elasticsearch server. Overwriting documents is slow here, unlike in the real one."""

    service = "elasticsearch"

    @property
    def url(self) -> str:
        """Its address: ``http://127.0.0.1:port``."""
        return f"http://{self.host}:{self.port}"

    def answers(self) -> bool:
        """See `Server.answers`; the cluster's health must not be red."""
        try:
            health = ask_json(f"{self.url}/_cluster/health", timeout=2)
        except NoAnswerError:
            return False
        return health.get("status") in ("green", "yellow")
