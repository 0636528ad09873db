"""Puts a workload on Kafka, before anything is measured that reads it from there."""

from __future__ import annotations

import threading
from uuid import uuid4

from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.model.leadership import Leadership
from setl.run.measured.progress import Progress
from setl.run.relay.assembly import build_relay_run
from setl_embedded import Kafka, MariaDb
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.bench.servers import mysql_settings
from tests.bench.watching import wait_for
from tests.bench.workloads import SCHEMA, Written


def relayed(source: MariaDb, written: Written, kafka: Kafka) -> str:
    """Put what was written into a topic of its own, with one partition; returns its name.

    Raises:
        RuntimeError: the relay fails or hangs.
    """
    topic = f"{written.workload.name}-{uuid4().hex[:8]}"
    pipeline = {
        "name": "r",
        "source": {"type": "mysql", **mysql_settings(source), "start": written.start._asdict(),
                   "heartbeat": 0},
        "target": {"type": "dts", "brokers": [kafka.brokers], "topic": topic},
        "tables": [{"from": f"{SCHEMA}.*"}],
    }  # fmt: skip
    file = parse_channel({"channel": topic, "pipelines": [pipeline]})
    arbiter, clock = MemoryArbiter(MemoryCluster()), SystemClock()
    arbiter.channels.put(topic, {})
    progress = Progress(clock)
    run = build_relay_run(
        file, Leadership(topic, "r", "n1", 1), arbiter=arbiter, progress=progress, clock=clock
    )
    thread = threading.Thread(target=run.run, daemon=True)
    thread.start()

    def done() -> bool:
        figures = progress.figures()
        if not thread.is_alive():
            raise RuntimeError(f"the relay ended: {figures.error}")
        return figures.rows_total >= written.workload.changes

    try:
        wait_for(done, 60 + written.workload.changes / 500, "the relay is not done")
    finally:
        run.stop()
        thread.join(30)
    return topic
