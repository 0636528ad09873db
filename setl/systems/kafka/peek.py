"""Looking at a topic of DTS records.

Partitions are assigned, never subscribed to, and nothing is committed: a consumer group, if the
account needs one named, neither gains a member nor moves.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from setl.channel.file import KafkaSource, OffsetStart, TimestampStart
from setl.clock import Clock, SystemClock
from setl.codec.dts.envelope import Envelope, read_envelope
from setl.codec.dts.header import row_name
from setl.codec.dts.relayed import HEADER, relay_position_of
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import ConfigurationError, DataError, SetlError, TransientError
from setl.model.position import KafkaPosition
from setl.model.typed import TypedChange, typed_changes
from setl.select.start_point import StartPoint
from setl.systems.kafka.by_time import SEARCH_SECONDS, first_since
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.partition import PartitionView
from setl.systems.kafka.reader import TopicReader, reader_and_partitions
from setl.systems.kafka.record import Record
from setl.systems.kafka.record_describer import StandaloneDescriber
from setl.systems.kafka.source.search_by_record import first_written_since, partition_view
from setl.systems.seen_record import UNREADABLE, SeenRecord, Wanted

_SLICE = 0.5  # seconds that one poll may take
_AT_ONCE = 500  # records that it gives
_SILENCE = 3.0  # seconds without records after which the brokers are asked for a sign of life
_PATIENCE = 15.0  # seconds without records, of those that the brokers say are there
_ROWS = frozenset(("INSERT", "UPDATE", "DELETE", "INIT"))
_MOST_BACK = 20_000  # records of each partition that are read to find the last wanted ones


class TopicPeek:
    """Reads one topic, for one thread; a context manager that closes its connections."""

    def __init__(
        self,
        config: KafkaSource,
        partitions: Sequence[int] = (),
        *,
        timeout: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            config: which topic, and how to reach it.
            partitions: which of its partitions; empty for all.
            timeout: seconds to wait for any answer of a broker.
            clock: for the signs of life.
        """
        self._config = config
        self._asked = partitions
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._reader: TopicReader | None = None
        self._partitions: list[int] = []

    def __enter__(self) -> TopicPeek:
        """Connect.

        Raises:
            ConfigurationError: there is no such topic or partition, or the account is refused.
            TransientError: no broker answers.
        """
        self._reader, there = reader_and_partitions(self._config, self._timeout)
        try:
            self._partitions = self._chosen(there)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections, and commit nothing."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def read_from(self, start_point: StartPoint, *, follow: bool) -> Iterator[SeenRecord | None]:
        """Records from a position on, in the order of each partition.

        Args:
            start_point: where to begin, in every partition.
            follow: whether to wait for more at the end of what is there now.

        Yields:
            A record, or None when none came for a moment.

        Raises:
            ConfigurationError: the position is an offset that is not there, or of no one partition.
            TransientError: the brokers do not answer.
        """
        with self._placing():
            bounds = self._bounds()
            starts = {p: self._start(start_point, p, b) for p, b in bounds.items()}
        return self._read(starts, None if follow else {p: b.end for p, b in bounds.items()})

    def last(self, count: int, wanted: Wanted, *, follow: bool) -> Iterator[SeenRecord | None]:
        """The last `count` wanted records that are there, and with `follow` all that come.

        Looks back over at most 20,000 records of each partition. Yields and raises as `read_from`.
        """
        with self._placing():
            bounds = self._bounds()
        ends = {p: b.end for p, b in bounds.items()}
        found: list[SeenRecord] = []
        back = max(100, 4 * count)
        while True:
            starts = {p: max(b.first, b.end - back) for p, b in bounds.items()}
            found = [r for r in self._read(starts, ends) if r is not None and wanted.shows(r)]
            complete = len(found) >= count or all(starts[p] == b.first for p, b in bounds.items())
            if complete or back >= _MOST_BACK:
                break
            back = min(back * 8, _MOST_BACK)
        # Partitions have no order among each other but the time at which Kafka took a record.
        found.sort(key=lambda record: record.written)
        yield from found[-count:]
        if follow:
            yield from self._read(ends, None)

    def _chosen(self, there: set[int]) -> list[int]:
        missing = sorted(set(self._asked) - there)
        if missing or not there:
            what = f"partition {missing[0]} in this topic" if there else "such topic"
            raise ConfigurationError(
                f"the brokers have no {what}", hint="Check the topic's name and the account"
            ).at(**self._where())
        return sorted(self._asked or there)

    def _start(self, start_point: StartPoint, partition: int, bounds: Bounds) -> int:
        start = start_point.start
        if isinstance(start, OffsetStart):
            if len(self._partitions) > 1:
                raise ConfigurationError(
                    f"an offset is of one partition, and the topic has {len(self._partitions)}",
                    hint="Name the partition: kafka://HOST:PORT/TOPIC/PARTITION",
                )
            if not bounds.first <= start.offset <= bounds.end:
                raise ConfigurationError(
                    f"offset {start.offset} is not there; the topic holds {bounds.first} to "
                    f"{bounds.end}"
                )
            return start.offset
        if isinstance(start, TimestampStart):
            deadline = self._clock.monotonic() + SEARCH_SECONDS
            search = first_written_since if self._config.stands_alone else first_since
            found = search(self._view(partition), bounds, start.timestamp, deadline)
            return bounds.end if found is None else found.offset
        return bounds.first if start == "earliest" else bounds.end

    def _read(
        self, starts: dict[int, int], ends: dict[int, int] | None
    ) -> Iterator[SeenRecord | None]:
        """Records from `starts` on, up to `ends` or for ever."""
        alone = self._config.stands_alone
        describe = (StandaloneDescriber if alone else RecordDescriber)(self._config).describe
        reader, clock = self._open, self._clock
        reader.seek(starts)
        silent = unasked = 0.0
        while ends is None or self._before(ends):
            began = clock.monotonic()
            with self._placing():
                found = reader.poll(_AT_ONCE, _SLICE)
            # Not counted: what whoever takes the records does in between.
            spent = clock.monotonic() - began
            for record in found:
                if ends is None or record.offset < ends[record.partition]:
                    yield from describe(record)
            if found:
                silent = unasked = 0.0
                continue
            yield None
            silent, unasked = silent + spent, unasked + spent
            if unasked > _SILENCE:
                # A broker that is gone looks like an idle one to the client.
                with self._placing():
                    self._bounds()
                unasked = 0.0
            if ends is not None and silent > _PATIENCE:
                raise TransientError(
                    "the brokers do not deliver all that they say is there",
                    hint="A transaction may be open that holds it back",
                ).at(**self._where())

    def _before(self, ends: dict[int, int]) -> bool:
        return any(self._open.position(partition) < end for partition, end in ends.items())

    def _bounds(self) -> dict[int, Bounds]:
        return {partition: self._open.bounds(partition) for partition in self._partitions}

    def _view(self, partition: int) -> PartitionView:
        return partition_view(
            self._config, self._open, partition, timeout=self._timeout, clock=self._clock
        )

    @property
    def _open(self) -> TopicReader:
        if self._reader is None:
            raise ConfigurationError("the topic is not open")
        return self._reader

    @contextmanager
    def _placing(self) -> Generator[None]:
        try:
            yield
        except SetlError as error:
            raise error.at(**self._where()) from error.__cause__

    def _where(self) -> dict[str, object]:
        return {"brokers": ",".join(self._config.brokers), "topic": self._config.topic}


class RecordDescriber:
    """Makes of the records of partitions, in their order, what is to be seen of them."""

    def __init__(self, config: KafkaSource) -> None:
        self._topic = config.topic
        self._logical_names = config.logical_names
        self._codec = DtsRowCodec(logical_names=config.logical_names)
        self._gtids: dict[int, str] = {}

    def describe(self, record: Record) -> Sequence[SeenRecord]:
        """One record. Never fails: what cannot be read is shown so."""
        return (self._described(record),)

    def _described(self, record: Record) -> SeenRecord:
        value: bytes = record.value or b""
        headers = record.headers
        envelope: Envelope | None = None
        change: TypedChange | None = None
        problem = ""
        try:
            envelope = read_envelope(value)
            if envelope.operation in _ROWS:
                change = next(typed_changes(self._codec.decode(value, ())))
        except DataError as error:
            problem = str(error)
        schema, table = self._name(envelope)
        return SeenRecord(
            position=KafkaPosition(self._topic, record.partition, record.offset),
            operation=envelope.operation if envelope and not problem else UNREADABLE,
            timestamp=float(envelope.timestamp) if envelope else 0.0,
            schema=schema,
            table=table,
            transaction=self._gtid(record.partition, envelope, headers),
            size=len(value),
            change=change,
            statement=envelope.statement if envelope else "",
            problem=problem,
            payload=value if problem else b"",
            envelope=envelope,
            headers=tuple([(name, value or b"") for name, value in headers]),
            written=max(record.timestamp, 0) / 1000,
        )

    def _name(self, envelope: Envelope | None) -> tuple[str, str]:
        if envelope is None or not envelope.object_name:
            return "", ""
        return row_name(envelope.object_name, envelope.tags if self._logical_names else {})

    def _gtid(
        self,
        partition: int,
        envelope: Envelope | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> str:
        """The GTID, which DTS tells at BEGIN only, and a relay beside every record."""
        own = envelope.tags.get("GTID", "") if envelope else ""
        operation = envelope.operation if envelope else ""
        if not own and any(name == HEADER for name, _ in headers):
            try:
                position = relay_position_of(headers)
                own = position.transaction.gtid if position else ""
            except DataError:
                own = ""  # written by another release; the header itself is shown
        known = own or self._gtids.get(partition, "")
        if operation == "BEGIN":
            self._gtids[partition] = own
        elif operation in ("COMMIT", "ROLLBACK", "ABORT"):
            self._gtids.pop(partition, None)
        elif operation not in _ROWS:
            return own
        return own if operation == "BEGIN" else known
