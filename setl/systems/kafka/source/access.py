"""Access of a pipeline's source to its partition: readers, questions, errors with a position."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from setl.channel.file import KafkaSource
from setl.clock import Clock
from setl.counting import count
from setl.errors import ConfigurationError, FatalError, SetlError
from setl.systems.kafka.reader import TopicReader, check_single, reader_and_partitions
from setl.systems.kafka.record import TopicPartition
from setl.systems.kafka.source.search import TopicSearch
from setl.systems.kafka.source.search_by_record import topic_search


class PartitionAccess:
    """Reaches one partition of a topic. Thread-safe: it holds no connection.

    Attributes:
        partition: which.
    """

    def __init__(self, config: KafkaSource, timeout: float, clock: Clock) -> None:
        """Nothing is connected yet; see `DtsKafkaSource`."""
        self._config = config
        self._timeout = timeout
        self._clock = clock
        self._first_seen: set[int] = set()  # partitions that the topic had when it was first seen
        self.partition = TopicPartition(config.topic, config.partition)

    def connect(self, *, few: bool = False) -> TopicReader:
        """A reader that reads nothing yet, of brokers that have the partition.

        Args:
            few: whether only single records will be read.

        Raises:
            ConfigurationError: they do not have it, or refuse the account.
            FatalError: the topic has more partitions than when it was first seen.
            TransientError: they do not answer.
        """
        reader, partitions = reader_and_partitions(self._config, self._timeout, few=few)
        try:
            self._check_partition(partitions)
            self.refuse_added(partitions)
            if self._config.mode == "subscribe":
                check_single(partitions)
        except BaseException:
            reader.close()
            raise
        return reader

    @contextmanager
    def asking(self) -> Generator[TopicReader]:
        """A reader of its own for one question."""
        reader = self.connect(few=True)
        try:
            with self.placing():
                yield reader
        finally:
            reader.close()

    def search(self, reader: TopicReader) -> TopicSearch:
        """Looks positions up with a reader."""
        return topic_search(self._config, reader, timeout=self._timeout, clock=self._clock)

    @contextmanager
    def placing(self) -> Generator[None]:
        """Errors get the position."""
        try:
            yield
        except SetlError as error:
            error.at(**self.where())
            raise

    def refuse_added(self, partitions: set[int]) -> None:
        """See that the topic has no other partitions than when it was first seen.

        Whoever writes by key puts rows into another partition once there are more of them.

        Raises:
            FatalError: it has.
        """
        self._first_seen = self._first_seen or partitions
        if partitions - self._first_seen:
            before = len(self._first_seen)
            raise FatalError(
                f"the topic has {count(len(partitions), 'partition')} now, not {before}:"
                " rows may be where no pipeline reads, and changes of one row in two partitions",
                hint="To read all of them, write `partitions` in the source. To go on with this one"
                " alone, `setl start` the channel. Compare the tables with `setl verify --repair`",
            ).at(**self.where())

    def where(self) -> dict[str, object]:
        """The position, for errors."""
        return {
            "brokers": ",".join(self._config.brokers),
            "topic": self._config.topic,
            "partition": self._config.partition,
        }

    def _check_partition(self, partitions: set[int]) -> None:
        if self._config.partition in partitions:
            return
        what = "the brokers have no such topic"
        if partitions:
            what = f"the topic has no such partition, only {min(partitions)} to {max(partitions)}"
        raise ConfigurationError(
            what, hint="Check `topic` and `partition` of the source, and what the account may see"
        ).at(**self.where())
