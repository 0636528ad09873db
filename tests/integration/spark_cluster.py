"""A Spark standalone cluster for tests, and who of its processes holds which connection."""

import os
import socket
import subprocess
import sysconfig
import venv
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from setl_embedded import SparkMaster, SparkWorker
from setl_embedded.spark import OPTIONS

_OURS = ("setl", "_setl", "arbiter", "_editable")


def node_options(**conf):
    """Options of a node on such a cluster; its executors start from the classes that it has."""
    conf = {
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": os.environ.get(OPTIONS, ""),
        **conf,
    }
    given = [f"{name}={value}" for name, value in conf.items() if value]
    return [part for setting in given for part in ("--spark-conf", setting)]


def python_without_setl(folder):
    """A Python with all libraries of this one but setl, as worker machines have it."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    there = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(_OURS):
            (Path(there.stdout.strip()) / entry.name).symlink_to(entry)
    return python


@contextmanager
def spark_cluster(folder, workers=2, master_options=""):
    """A master and its workers, of one core each, that find no Python code of this process."""
    started = []
    environment = {"SPARK_MASTER_OPTS": master_options}
    with SparkMaster(folder / "master", environment=environment) as master:
        try:
            for number in range(workers):
                worker = SparkWorker(
                    folder / f"worker-{number}", master, f"spark-worker-{number}",
                    memory="700m", environment={"PYTHONPATH": ""},
                )  # fmt: skip
                started.append(worker.start())
            with patch.dict(os.environ, {"SETL_SPARK_SECRET": master.secret}):
                yield master, started
        finally:
            for worker in started:
                worker.stop()


def parents(pid):
    """The process, its parent, and so on."""
    while pid > 1:
        yield pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return


def descendants(root):
    """Processes below one, as pid → command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != root and root in parents(int(entry.name)):
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has just ended
            found[int(entry.name)] = command.replace(b"\0", b" ").decode()
    return found


def executors_of(worker):
    """The pids of a worker's executors."""
    return [
        pid
        for pid, command in descendants(worker.pid).items()
        if "CoarseGrainedExecutorBackend" in command
    ]


def holder_of_port(port, server_port):
    """The pid whose end of a local TCP connection to a server has this port, None if nobody's.

    Connections to two servers may have the same port at this end.
    """
    wanted, inodes = [port, server_port], set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if [int(end.partition(":")[2], 16) for end in fields[1:3]] == wanted:
            inodes.add(fields[9])
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        if inodes & _sockets(entry):
            return int(entry.name)
    return None


def listening_addresses(pids):
    """(address, port) of each TCP port on which one of these processes listens."""
    listening = {}
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A":
                address, _, port = local.partition(":")
                listening[inode] = (_readable(family, address), int(port, 16))
    found = set()
    for pid in pids:
        found |= {listening[inode] for inode in _sockets(Path(f"/proc/{pid}")) & listening.keys()}
    return found


def _sockets(process):
    """The inodes of a process's sockets, by its folder in /proc."""
    found = set()
    with suppress(OSError):  # it has just ended
        for handle in (process / "fd").iterdir():
            with suppress(OSError):  # it has just been closed
                link = str(handle.readlink())
                if link.startswith("socket:["):
                    found.add(link[8:-1])
    return found


def _readable(family, written):
    """An address as people write it; the kernel writes words of four bytes, each backwards."""
    words = [bytes.fromhex(written[i : i + 8])[::-1] for i in range(0, len(written), 8)]
    text = socket.inet_ntop(family, b"".join(words))
    return text.removeprefix("::ffff:")  # an address of version 4 in a socket of version 6
