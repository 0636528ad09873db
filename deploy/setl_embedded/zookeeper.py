"""ZooKeeper from PySpark's own jars: one server, or an ensemble."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from setl_embedded.errors import EmbeddedError
from setl_embedded.ports import HOST, free_port
from setl_embedded.programs import java, zookeeper_classpath
from setl_embedded.server import Server
from setl_embedded.zookeeper_security import ZooKeeperSecurity

_LOG4J2 = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p [%t] %c{1}: %m%n%ex{8}
"""


class ZooKeeper(Server):
    """One ZooKeeper server, alone or a member of an ensemble.

    Attributes:
        host: always 127.0.0.1.
        port: client port, the same over restarts.
        tick_ms: its tick; sessions may last from 2 ticks (at least 1 s) to 60 s.
        security: TLS and SASL, None for neither.
    """

    def __init__(
        self,
        folder: Path | str,
        name: str = "zookeeper",
        *,
        tick_ms: int = 500,
        member: int = 0,
        peers: Mapping[int, str] | None = None,
        security: ZooKeeperSecurity | None = None,
    ) -> None:
        """Describe a server; nothing is started.

        Args:
            folder: for data, configuration and log.
            name: what errors and log files call it.
            tick_ms: ZooKeeper's ``tickTime``, its unit of all timeouts. Sessions expire on
                whole ticks, so a small one makes short session timeouts exact.
            member: its number in the ensemble, 0 for a server that is alone.
            peers: member number → ``host:quorum port:election port``, the same for all members.
            security: TLS and SASL for its clients; members talk with each other in the clear.
        """
        super().__init__(folder, name)
        self.host = HOST
        self.port = free_port()
        self.tick_ms = tick_ms
        self.security = security
        self._member = member
        self._peers = dict(peers or {})

    @property
    def hosts(self) -> str:
        """The address in the form that clients take: ``127.0.0.1:port``."""
        return f"{self.host}:{self.port}"

    @property
    def mode(self) -> str:
        """``standalone``, ``leader``, ``follower``, or "" while it serves nobody."""
        context = self.security.context() if self.security else None
        try:
            answer = four_letter_word(self.host, self.port, "srvr", context=context)
        except OSError:
            return ""
        found = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
        return found[1] if found else ""

    def answers(self) -> bool:
        """See `Server.answers`; a member answers once a leader is elected."""
        return self.mode != ""

    def _prepare(self) -> None:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        settings = [
            f"dataDir={data}",
            f"tickTime={self.tick_ms}",
            "initLimit=40",
            "syncLimit=20",
            f"minSessionTimeout={max(1000, 2 * self.tick_ms)}",
            "maxSessionTimeout=60000",
            "maxClientCnxns=0",
            "4lw.commands.whitelist=*",
            "admin.enableServer=false",  # it would take port 8080
            "forceSync=no",  # nothing here has to survive a power failure
            "preAllocSize=1024",  # KiB; the default of 64 MiB a log file adds up in tests
        ]
        if self.security:
            settings += self.security.settings(self.port)
        else:
            settings += [f"clientPort={self.port}", f"clientPortAddress={HOST}"]
        settings += [f"server.{number}={peer}" for number, peer in self._peers.items()]
        (self.folder / "zoo.cfg").write_text("\n".join(settings) + "\n")
        (self.folder / "log4j2.properties").write_text(_LOG4J2)
        if self._peers:
            (data / "myid").write_text(f"{self._member}\n")

    def _command(self) -> list[str]:
        return [
            java(),
            "-Xms32m",
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",  # starts sooner, and is fast enough
            "-Djava.net.preferIPv4Stack=true",
            "-Dzookeeper.jmx.log4j.disable=true",
            f"-Dlog4j2.configurationFile={(self.folder / 'log4j2.properties').as_uri()}",
            *(self.security.java_options() if self.security else ()),
            "-cp",
            zookeeper_classpath(),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self.folder / "zoo.cfg"),
        ]


class ZooKeeperEnsemble:
    """Several ZooKeeper servers that elect a leader and keep going while most of them live.

    Attributes:
        servers: the members, each of which may be stopped, killed and started by itself.
    """

    def __init__(
        self,
        folder: Path | str,
        size: int = 3,
        *,
        tick_ms: int = 500,
        security: ZooKeeperSecurity | None = None,
    ) -> None:
        peers = {n: f"{HOST}:{free_port()}:{free_port()}" for n in range(1, size + 1)}
        self.folder = Path(folder).absolute()
        self.servers = [
            ZooKeeper(
                self.folder / f"zookeeper-{n}",
                f"zookeeper-{n}",
                tick_ms=tick_ms,
                member=n,
                peers=peers,
                security=security,
            )
            for n in peers
        ]

    @property
    def hosts(self) -> str:
        """All members' addresses, comma-separated, as clients take them."""
        return ",".join(server.hosts for server in self.servers)

    @property
    def running(self) -> bool:
        """Whether any member lives."""
        return any(server.running for server in self.servers)

    def leader(self) -> ZooKeeper:
        """The member that leads.

        Raises:
            EmbeddedError: none does at this moment.
        """
        for server in self.servers:
            if server.mode == "leader":
                return server
        raise EmbeddedError("the ZooKeeper ensemble has no leader")

    def start(self) -> Self:
        """Start the members that are not running, and wait until each serves clients.

        Raises:
            EmbeddedError: a program is missing, or a member ended or did not answer in time.
        """
        try:
            for server in self.servers:
                server.launch()  # all before the first wait: one alone never answers
            for server in self.servers:
                server.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop all members."""
        with ThreadPoolExecutor(len(self.servers)) as pool:
            list(pool.map(ZooKeeper.stop, self.servers))

    def kill(self) -> None:
        """End all members at once."""
        for server in self.servers:
            server.kill()

    def pause(self) -> None:
        """Freeze all members."""
        for server in self.servers:
            server.pause()

    def resume(self) -> None:
        """Let all members go on after `pause`."""
        for server in self.servers:
            server.resume()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def four_letter_word(
    host: str,
    port: int,
    word: str,
    timeout: float = 2.0,
    *,
    context: ssl.SSLContext | None = None,
) -> str:
    """The answer to one of ZooKeeper's four-letter commands; `context` is for TLS ports.

    Source: ZooKeeper Administrator's Guide, "The Four Letter Words".

    Raises:
        OSError: nobody answers within `timeout` seconds.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, port), timeout=timeout))
        connection.settimeout(timeout)
        if context is not None:
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname=host))
        connection.sendall(word.encode())
        parts: list[bytes] = []
        while part := connection.recv(4096):
            parts.append(part)
    return b"".join(parts).decode(errors="replace")
