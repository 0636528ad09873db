"""The setl nodes and commands of a run, as the processes a person would start."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from setl.node.cluster.answers import status_at
from setl_embedded.process import ServerProcess, spawn

SESSION_TIMEOUT = 6.0


class Cluster:
    """Nodes and commands that share a ZooKeeper and an environment.

    Attributes:
        folder: where logs are.
        zookeeper: the servers' addresses, ``host:port,host:port``.
        nodes: the processes by node id, those that ended included.
        http: the address of each node's HTTP interface.
    """

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        environment: Mapping[str, str],
        *,
        session_timeout: float = SESSION_TIMEOUT,
    ) -> None:
        self.folder = folder
        self.zookeeper = zookeeper
        self.session_timeout = session_timeout
        self.setl = str(Path(sys.executable).with_name("setl"))
        self.nodes: dict[str, ServerProcess] = {}
        self.http: dict[str, str] = {}
        self._environment = {
            "SETL_HTTP_TOKEN": secrets.token_hex(16), **environment, "SETL_ZOOKEEPER": zookeeper
        }  # fmt: skip

    @property
    def token(self) -> str:
        """What a request shows that changes something, and a person who logs in."""
        return self._environment["SETL_HTTP_TOKEN"]

    def start_node(
        self,
        nid: str,
        port: int,
        master: str = "local[2]",
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> ServerProcess:
        """Start a node; returns at once.

        Args:
            nid: its id.
            port: of its HTTP interface.
            master: the Spark master.
            environment: variables of this node alone; they win over those of the cluster.
            options: further options of ``setl node``.
        """
        return self._start(["node", "--master", master, *options], nid, port, environment)

    def start_relay(
        self, nid: str, port: int, environment: Mapping[str, str] | None = None
    ) -> ServerProcess:
        """Start a relay process; as `start_node`."""
        return self._start(["relay"], nid, port, environment)

    def _start(
        self, what: list[str], nid: str, port: int, environment: Mapping[str, str] | None
    ) -> ServerProcess:
        command = [
            self.setl, *what, "--id", nid, "--http", f"127.0.0.1:{port}",
            "--session-timeout", str(self.session_timeout),
        ]  # fmt: skip
        process = spawn(
            nid,
            command,
            log=self.folder / f"{nid}.log",
            cwd=self.folder,
            environment={**self._environment, **(environment or {})},
        )
        self.nodes[nid] = process
        self.http[nid] = f"http://127.0.0.1:{port}"
        return process

    def status(self, nid: str, timeout: float = 1.0) -> dict[str, Any] | None:
        """What a node says of itself, the texts of errors too; None if it does not answer."""
        return status_at(self.http[nid], timeout, {"Authorization": f"Bearer {self.token}"})

    def run(
        self, *arguments: str, check: bool = True, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a setl command; with `check`, a failure is an error that shows its output."""
        done = subprocess.run(
            [self.setl, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, **self._environment},
            timeout=timeout,
        )
        if check and done.returncode != 0:
            raise RuntimeError(
                f"setl {' '.join(arguments)} exited with {done.returncode}:\n"
                f"{done.stdout}{done.stderr}"
            )
        return done

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a setl command; what it says on standard error can be read line by line."""
        return subprocess.Popen(
            [self.setl, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, **self._environment},
        )

    def stop(self) -> None:
        """Stop all nodes that still run, asking first."""
        for process in self.nodes.values():
            process.stop(timeout=20)
