"""What a relay's kinds of delivery cost, next to kafka-python's producer, near and far.

Run as ``python -m tests.bench.producer``. The competitors take turns, several rounds, on one
embedded broker: first directly, then over a link that delays every byte, as a broker in another
data centre does. A record is about 500 bytes. Rates are for comparing within one run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import struct
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial

from kafka import KafkaProducer

from setl.channel.kafka_endpoints import DtsTarget
from setl.codec.dts.relayed import HEADER, LAST, RelayPlace, RelayTransaction
from setl.systems.kafka.relay.log import KafkaRelayLog
from setl_embedded import Kafka
from setl_embedded.ports import HOST, free_port

_VALUE = b"x" * 420


class FarBroker:
    """A broker as seen over a link that takes a while; a context manager.

    Answers name the broker's own port, to which clients would go directly; it is replaced by
    the link's on the way.
    """

    def __init__(self, port: int, delay: float) -> None:
        self.port = free_port()
        self._server, self._delay = port, delay
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FarBroker:
        self._thread.start()
        listening = asyncio.start_server(self._accepted, HOST, self.port)
        asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(HOST, self._server)
        mine, other = struct.pack(">i", self._server), struct.pack(">i", self.port)
        # A client that leaves does not wait for answers, and `_end` waits for nobody.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(
                self._pass_on(reader, there_writer, lambda data: data),
                self._pass_on(there_reader, writer, lambda data: data.replace(mine, other)),
            )

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        change: Callable[[bytes], bytes],
    ) -> None:
        """Half of the delay in each direction; what is on its way does not hold up the next."""
        while data := await reader.read(1 << 18):
            self._loop.call_later(self._delay / 2, writer.write, change(data))
        self._loop.call_later(self._delay / 2, writer.close)


def relay_rate(delivery: str, flush_every: int, brokers: str, records: int) -> float:
    """Records per second through a `KafkaRelayLog`, all flushed."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    settings = {"type": "dts", "brokers": [brokers], "topic": name, "delivery": delivery}
    log = KafkaRelayLog(DtsTarget.model_validate(settings), f"setl/{name}")
    try:
        log.take_over()
        now = int(time.time() * 1000)
        head = RelayPlace(RelayTransaction(1, "binlog.000001", 4), LAST).encoded()
        log.append(0, _VALUE, head, None, now)
        log.flush()  # connections and the producer's id, which is got once
        began = time.perf_counter()
        for number in range(1, records + 1):
            log.append(0, _VALUE, head, b"key-%d" % number, now)
            if not number % flush_every:
                log.flush()
        log.flush()
        return records / (time.perf_counter() - began)
    finally:
        log.close()


def kafka_python_rate(brokers: str, records: int) -> float:
    """Records per second through kafka-python, a quarter of them: it is so much slower."""
    records //= 4
    name = f"bench-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=5)
    try:
        now = int(time.time() * 1000)
        head = RelayPlace(RelayTransaction(1, "binlog.000001", 4), LAST).encoded()
        producer.send(name, _VALUE, None, [(HEADER, head)], 0, now)
        producer.flush()
        began = time.perf_counter()
        for number in range(records):
            producer.send(name, _VALUE, b"key-%d" % number, [(HEADER, head)], 0, now)
        producer.flush()
        return records / (time.perf_counter() - began)
    finally:
        producer.close(1)


COMPETITORS: dict[str, Callable[[str, int], float]] = {
    "one_in_flight, flushed every 5,000": partial(relay_rate, "one_in_flight", 5_000),
    "idempotent, flushed every 5,000": partial(relay_rate, "idempotent", 5_000),
    "idempotent, flushed at the end": partial(relay_rate, "idempotent", 1 << 40),
    "transactional, flushed every 5,000": partial(relay_rate, "transactional", 5_000),
    "transactional, flushed every 50,000": partial(relay_rate, "transactional", 50_000),
    "kafka-python, flushed at the end": kafka_python_rate,
}


def measure(brokers: str, records: int, rounds: int) -> dict[str, list[float]]:
    """The rates of all competitors, who take turns; the first round's order is turned round."""
    rates: dict[str, list[float]] = {name: [] for name in COMPETITORS}
    for turn in range(rounds):
        for name in list(COMPETITORS)[:: -1 if turn % 2 else 1]:
            rates[name].append(COMPETITORS[name](brokers, records))
    return rates


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.005, help="seconds there and back")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        broker = stack.enter_context(Kafka(folder))
        far = stack.enter_context(FarBroker(broker.port, options.delay))
        for where, brokers in {
            "near": broker.brokers,
            f"{options.delay * 1000:g} ms away": f"{HOST}:{far.port}",
        }.items():
            write = sys.stdout.write
            write(f"{where}: records/s, median of {options.rounds} (lowest to highest)\n")
            rates = measure(brokers, options.records, options.rounds)
            for name, found in rates.items():
                write(
                    f"  {name:38} {statistics.median(found):10,.0f}"
                    f"  ({min(found):,.0f} to {max(found):,.0f})\n"
                )


if __name__ == "__main__":
    main()
