"""A node of setl that stands by for one channel, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import yaml

from arbiter.requests import change_state
from arbiter.values import ChannelState, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.cli.node_answers import status_at
from setl_embedded import ZooKeeper
from setl_embedded.ports import HOST, free_port
from setl_embedded.process import spawn
from tests.bench.waiting import wait_for

_WARM_SECONDS = 600.0  # on a machine that is busy with other things


class Node:
    """A node that stands by for one channel, which is stopped until `start`."""

    def __init__(self, pid: int, http: str, arbiter: ZooKeeperArbiter, channel: str) -> None:
        self.pid = pid
        self._http = http
        self._arbiter = arbiter
        self._channel = channel

    def start(self) -> None:
        """Start the channel as `setl start` does it, without the second a command takes."""
        change_state(self._arbiter, self._channel, ChannelState.START)

    def figures(self) -> list[dict[str, Any]]:
        """What each pipeline of the channel says about itself; none while it cannot be asked.

        Raises:
            RuntimeError: one of them has failed.
        """
        lines = (status_at(self._http) or {}).get("pipelines", ())
        found = [line["figures"] for line in lines if line["channel"] == self._channel]
        for figures in found:
            if figures["state"] == "failed":
                raise RuntimeError(f"the pipeline failed: {figures['error']}")
        return found

    def stored_position(self, pipeline: str) -> dict[str, Any] | None:
        """What ZooKeeper keeps as the checkpoint of a pipeline, None if that is not there."""
        kept = self._arbiter.stored_position(PipelineId(self._channel, pipeline))
        return kept[0] if kept else None


@contextmanager
def standby(folder: Path, channel: dict[str, Any], *, master: str) -> Iterator[Node]:
    """A node that is warm.

    Args:
        folder: where logs go.
        channel: the only channel that it knows of.
        master: Spark master of the node.

    Raises:
        RuntimeError: it does not become warm, or the channel is refused.
    """
    # A ZooKeeper that knows of no earlier run: it would still hold its state and position.
    folder = Path(mkdtemp(prefix="setl-", dir=folder))
    with ZooKeeper(folder / "zookeeper") as zookeeper:
        yield from _standby(folder, zookeeper.hosts, channel, master)


def _standby(folder: Path, hosts: str, channel: dict[str, Any], master: str) -> Iterator[Node]:
    file = folder / "bench.yaml"
    file.write_text(yaml.safe_dump(channel))
    setl = str(Path(sys.executable).with_name("setl"))
    applied = subprocess.run(
        [setl, "apply", str(file), "--zookeeper", hosts],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if applied.returncode != 0:
        raise RuntimeError(f"setl apply: {applied.stdout}{applied.stderr}")
    port = free_port()
    node = spawn(
        "setl",
        [setl, "node", "--id", "n1", "--zookeeper", hosts, "--master", master,
         "--http", f"{HOST}:{port}"],
        log=folder / "node.log", cwd=folder,
    )  # fmt: skip
    arbiter = ZooKeeperArbiter(hosts)
    try:
        http = f"http://{HOST}:{port}"
        wait_for(lambda: (status_at(http) or {}).get("warm"), _WARM_SECONDS, "the node is not warm")
        arbiter.start()
        yield Node(node.pid, http, arbiter, channel["channel"])
    finally:
        arbiter.close()
        node.stop(timeout=30)
