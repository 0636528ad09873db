"""``python -m tests.bench.many``: what pipelines cost that have nothing to do.

Each channel has one pipeline between two databases; all read the same source and write to the same
target. Nothing is written to the source but what setl writes itself. Processes, ZooKeeper and the
servers count for themselves over the same seconds, so that a busy machine changes little.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.table import Table

from setl_drills.nodes import Cluster
from setl_embedded import MariaDb, ZooKeeper
from setl_embedded.ports import free_port
from setl_embedded.zookeeper import four_letter_word
from tests.bench.report import json_option, number, write_json
from tests.bench.servers import add_system_tables, mysql_settings, scratch_folder
from tests.bench.watching import DRIVER, JVM, WORKERS, cpu_by_role, pss, role_of_each, wait_for

_WARM_SECONDS = 600.0
_QUIET_SECONDS = 40.0  # until what a take-over costs is over, and checkpoints are kept seldom
_PASSWORDS = ("MANY_SOURCE_PASSWORD", "MANY_TARGET_PASSWORD")


@dataclass(frozen=True)
class Idle:
    """What idle pipelines cost, all nodes together.

    Attributes:
        pipelines: how many.
        nodes: that share them.
        seconds: for which was measured.
        cpu: parts of a core, by role.
        packets: of ZooKeeper, received and sent, a second.
        commits: transactions in the binlog of the source, a second.
        stored: the same of the target.
        statements: questions to the source and to the target, a second.
        connections: open at the source and at the target.
        memory: bytes of the nodes with their JVMs and workers, shared pages divided.
        threads: of the nodes' Python processes.
        taken_over: seconds from SIGKILL of the first node until the others run all that it led;
            None with one node.
        moved: pipelines that it led.
    """

    pipelines: int
    nodes: int
    seconds: float
    cpu: dict[str, float]
    packets: float
    commits: float
    stored: float
    statements: tuple[float, float]
    connections: tuple[int, int]
    memory: int
    threads: int
    taken_over: float | None
    moved: int


def measure(
    zookeeper: ZooKeeper, servers: tuple[MariaDb, MariaDb], pids: list[int], seconds: float
) -> dict[str, object]:
    """The figures of `Idle` that the processes and servers tell."""
    packets, before = _packets(zookeeper), [_counted(server) for server in servers]
    spent, began = _cpu(pids), time.monotonic()
    time.sleep(seconds)
    took, used = time.monotonic() - began, _cpu(pids)
    after, moved = [_counted(server) for server in servers], _packets(zookeeper) - packets
    rates = [{name: (new[name] - old[name]) / took for name in new}
             for old, new in zip(before, after, strict=True)]  # fmt: skip
    mine = [pid for root in pids for pid in role_of_each({DRIVER: root})]
    return {
        "seconds": took,
        "cpu": {role: (used[role] - spent[role]) / took for role in used},
        "packets": moved / took,
        "commits": rates[0]["Binlog_commits"],
        "stored": rates[1]["Binlog_commits"],
        "statements": (rates[0]["Questions"], rates[1]["Questions"]),
        "connections": (after[0]["Threads_connected"], after[1]["Threads_connected"]),
        "memory": sum(map(pss, mine)),
        "threads": sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in pids),
    }


def _cpu(pids: list[int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for pid in pids:
        found.update(cpu_by_role({DRIVER: pid}))
    return found


def _packets(zookeeper: ZooKeeper) -> int:
    said = four_letter_word(zookeeper.host, zookeeper.port, "mntr")
    return sum(int(n) for n in re.findall(r"^zk_packets_(?:received|sent)\s+(\d+)", said, re.M))


def _counted(server: MariaDb) -> dict[str, int]:
    names = "'Binlog_commits', 'Questions', 'Threads_connected'"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        return {str(name): int(value) for name, value in cursor.fetchall()}


def _channel(number_: int, servers: tuple[MariaDb, MariaDb], *, shared: bool) -> dict[str, object]:
    source, target = (
        {**mysql_settings(server), "type": "mysql", "password": f"${{{name}}}"}
        for server, name in zip(servers, _PASSWORDS, strict=True)
    )
    source["shared"] = shared
    table = {"from": f"shop.t{number_}"}
    pipeline = {"name": "ab", "source": source, "target": target, "tables": [table]}
    return {"channel": f"many{number_}", "pipelines": [pipeline]}


def run(folder: Path, pipelines: int, nodes: int, seconds: float, *, shared: bool) -> Idle:
    """Start everything, wait until all pipelines run, and measure.

    Raises:
        RuntimeError: they do not all come to run.
    """
    with (
        ZooKeeper(folder / "zookeeper") as zookeeper,
        MariaDb(folder / "source", "source", 21) as source,
        MariaDb(folder / "target", "target", 22) as target,
    ):
        servers = source, target
        for server in servers:
            add_system_tables(server)
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE shop")
                for n in range(pipelines):
                    cursor.execute(f"CREATE TABLE shop.t{n} (id INT PRIMARY KEY, v INT)")
        secrets: dict[str, str] = dict(zip(_PASSWORDS, (s.password for s in servers), strict=True))
        cluster = Cluster(folder, zookeeper.hosts, secrets)
        files = [folder / f"many{n}.yaml" for n in range(pipelines)]
        for n, file in enumerate(files):
            file.write_text(yaml.safe_dump(_channel(n, servers, shared=shared)))
            cluster.run("apply", str(file))
            cluster.run("start", f"many{n}", "--no-check", "--no-wait")
        try:
            names = [f"n{n}" for n in range(nodes)]
            for name in names:
                cluster.start_node(name, free_port(), "local[1]")
            wait_for(lambda: _running(cluster, names) == pipelines, _WARM_SECONDS,
                     "not all pipelines run", every=1.0)  # fmt: skip
            time.sleep(_QUIET_SECONDS)
            pids = [cluster.nodes[name].pid for name in names]
            found = measure(zookeeper, servers, pids, seconds)
            found["moved"] = _running(cluster, names[:1])
            found["taken_over"] = _taken_over(cluster, names, pipelines) if nodes > 1 else None
        finally:
            cluster.stop()
    return Idle(pipelines, nodes, **found)  # pyright: ignore[reportArgumentType]


def _taken_over(cluster: Cluster, names: list[str], pipelines: int) -> float:
    cluster.nodes[names[0]].kill()
    began = time.monotonic()
    wait_for(lambda: _running(cluster, names[1:]) == pipelines, _WARM_SECONDS,
             "not all pipelines were taken over", every=0.25)  # fmt: skip
    return time.monotonic() - began


def _running(cluster: Cluster, names: list[str]) -> int:
    lines = [line for name in names for line in (cluster.status(name) or {}).get("pipelines", ())]
    return sum(line["mine"] and line["figures"]["state"] == "running" for line in lines)


def print_idle(found: Idle, console: Console) -> None:
    """A table, one line for each figure."""
    shown = Table(title=f"{found.pipelines} idle pipelines on {found.nodes} nodes")
    shown.add_column("what")
    shown.add_column("how much", justify="right")
    for role in (DRIVER, JVM, WORKERS):
        shown.add_row(f"CPU, {role}, % of a core", number(100 * found.cpu.get(role, 0.0), 1))
    shown.add_row("ZooKeeper packets/s", number(found.packets, 1))
    shown.add_row("binlog commits/s, source", number(found.commits, 1))
    shown.add_row("binlog commits/s, target", number(found.stored, 1))
    for end, rate, count in zip(("source", "target"), found.statements, found.connections,
                                strict=True):  # fmt: skip
        shown.add_row(f"statements/s, {end}", number(rate, 1))
        shown.add_row(f"connections, {end}", number(count))
    shown.add_row("memory, MiB", number(found.memory / 2**20))
    shown.add_row("threads of Python", number(found.threads))
    if found.taken_over is not None:
        shown.add_row(f"taken over after a kill, {found.moved} of them, s",
                      number(found.taken_over, 1))  # fmt: skip
    console.print(shown)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pipelines", default=20, show_default=True, help="Channels of one pipeline each.")
@click.option("--nodes", default=2, show_default=True, help="Nodes that share them.")
@click.option("--seconds", default=30.0, show_default=True, help="How long to measure.")
@click.option("--shared", is_flag=True, help="Pipelines of a node read on one connection.")
@json_option
def main(pipelines: int, nodes: int, seconds: float, shared: bool, file: Path | None) -> None:
    """Measure what many idle pipelines cost the nodes, ZooKeeper and the databases."""
    with scratch_folder("many") as folder:
        found = run(folder, pipelines, nodes, seconds, shared=shared)
        print_idle(found, Console(width=None if os.isatty(1) else 100))
        if file is not None:
            write_json(file, results=[asdict(found)])


if __name__ == "__main__":
    main()
