"""A Spark standalone cluster from PySpark's own programs: a master and its workers."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from setl_embedded.ports import HOST, free_port
from setl_embedded.server import Server

OPTIONS = "SPARK_SUBMIT_OPTS"
"""Spark's variable with options for the JVMs of sessions; those of a cluster get them too."""

_QUICK = "-XX:TieredStopAtLevel=1"  # they hand out cores; nothing there is worth optimising


class _Daemon(Server):
    """A process that PySpark's ``spark-class`` starts, and turns into."""

    def __init__(
        self,
        folder: Path | str,
        name: str,
        secret: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder, name)
        self.secret = secret
        self._environment = environment or {}
        self.port = free_port()
        self._web_port = free_port()

    def answers(self) -> bool:
        """See `Server.answers`."""
        with socket.socket() as tried:
            tried.settimeout(1)
            return tried.connect_ex((HOST, self._web_port)) == 0

    def _settings(self) -> dict[str, str]:
        """What setl's sessions ask of master and workers, see ``docs/pages/service.md``."""
        return {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self.secret,
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.authEngineVersion": "2",
            "spark.network.crypto.cipher": "AES/GCM/NoPadding",
            "spark.network.crypto.saslFallback": "false",
            "spark.master.rest.enabled": "false",
        }

    def _spark_class(self, name: str, *arguments: str) -> list[str]:
        program = resources.files("pyspark") / "bin" / "spark-class"
        # Not among the arguments, which everybody on the machine can see.
        file = self.folder / "secret.conf"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name} {value}\n" for name, value in self._settings().items()))
        options = f"{_QUICK} {os.environ.get(OPTIONS, '')}".strip()
        return [
            "/usr/bin/env",
            "SPARK_DAEMON_MEMORY=256m",
            f"SPARK_DAEMON_JAVA_OPTS={options}",
            f"SPARK_LOCAL_IP={HOST}",
            *(f"{name}={value}" for name, value in self._environment.items()),
            "bash",  # wheels do not always keep a script executable
            str(program),
            f"org.apache.spark.deploy.{name}",
            "--host",
            HOST,
            "--port",
            str(self.port),
            "--webui-port",
            str(self._web_port),
            "--properties-file",
            str(file),
            *arguments,
        ]


class SparkMaster(_Daemon):
    """The master, which hands out its workers' cores.

    Attributes:
        port: where applications and workers connect.
        secret: what they have to know, as `spark.authenticate.secret`.
    """

    def __init__(
        self,
        folder: Path | str,
        name: str = "spark-master",
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Describe it; nothing is started.

        Args:
            folder: for its log.
            name: what errors and log files call it.
            environment: further variables.
        """
        super().__init__(folder, name, secrets.token_hex(32), environment)

    @property
    def url(self) -> str:
        """What an application takes as its master."""
        return f"spark://{HOST}:{self.port}"

    def _command(self) -> list[str]:
        return self._spark_class("master.Master")


class SparkWorker(_Daemon):
    """A worker, which runs executors; they end with it."""

    def __init__(
        self,
        folder: Path | str,
        master: SparkMaster,
        name: str = "spark-worker",
        *,
        cores: int = 1,
        memory: str = "1g",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Describe it; nothing is started.

        Args:
            folder: for its log and the folders of its executors.
            master: whom it works for.
            name: what errors and log files call it.
            cores: tasks that it runs at once.
            memory: for its executors, as Spark writes it.
            environment: further variables, which its executors get too.
        """
        super().__init__(folder, name, master.secret, environment)
        self._master = master
        self._cores = cores
        self._memory = memory

    def _command(self) -> list[str]:
        return self._spark_class(
            "worker.Worker",
            "--cores",
            str(self._cores),
            "--memory",
            self._memory,
            "--work-dir",
            str(self.folder / "work"),
            self._master.url,
        )
