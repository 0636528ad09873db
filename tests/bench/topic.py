"""A workload as DTS records on Kafka, put there by setl's own relay before anything is measured."""

from __future__ import annotations

import threading
import time
from uuid import uuid4

from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.model.leadership import Leadership
from setl.run.progress import Progress
from setl.run.relay_assembly import build_relay_run
from setl_embedded import Kafka, MariaDb
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.bench.servers import mysql_settings
from tests.bench.watching import wait_for
from tests.bench.workloads import SCHEMA, Written

_LOOK_SECONDS = 0.01


def relayed(source: MariaDb, written: Written, kafka: Kafka) -> str:
    """Put what was written into a topic of its own, with one partition; returns its name.

    Raises:
        RuntimeError: the relay fails or hangs.
    """
    topic = f"{written.workload.name}-{uuid4().hex[:8]}"
    relay(source, written, kafka, topic)
    return topic


def relay(source: MariaDb, written: Written, kafka: Kafka, topic: str) -> float:
    """Put what was written into a topic, see `relayed`; returns the seconds that it took."""
    pipeline = {
        "name": "r",
        "source": {"type": "mysql", **mysql_settings(source), "start": written.start._asdict(),
                   "heartbeat": 0},
        "target": {"type": "dts", "brokers": [kafka.brokers], "topic": topic},
        "tables": [{"from": f"{SCHEMA}.*"}],
    }  # fmt: skip
    file = parse_channel({"channel": topic, "pipelines": [pipeline]})
    arbiter, clock = MemoryArbiter(MemoryCluster()), SystemClock()
    arbiter.put_channel(topic, {})
    progress = Progress(clock)
    run = build_relay_run(
        file, Leadership(topic, "r", "n1", 1), arbiter=arbiter, progress=progress, clock=clock
    )
    thread = threading.Thread(target=run.run, daemon=True)
    began = time.perf_counter()
    thread.start()

    def done() -> bool:
        figures = progress.figures()
        if not thread.is_alive():
            raise RuntimeError(f"the relay ended: {figures.error}")
        return figures.rows_total >= written.workload.changes

    try:
        wait_for(done, 60 + written.workload.changes / 500, "the relay is not done",
                 every=_LOOK_SECONDS)  # fmt: skip
        return time.perf_counter() - began
    finally:
        run.stop()
        thread.join(30)
