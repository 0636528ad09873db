"""Endpoints on Kafka: a topic of change records to read, and one that a relay writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import override

from setl.channel.fields.checks import Broker, KafkaSetting, Text, TimeZone, UnixTime
from setl.channel.fields.endpoint import Database, SourceConfig, TargetConfig
from setl.channel.fields.field_descriptions import CREDENTIAL, KAFKA_SSL_CA, USER
from setl.channel.fields.kafka_formats import DTS, STANDALONE, Format, StandaloneFormat
from setl.channel.fields.kafka_settings import (
    CONSUMER_SETTINGS,
    NOT_ALLOWED,
    OWN_OF_CONSUMER,
    OWN_OF_PRODUCER,
    PRODUCER_SETTINGS,
)
from setl.channel.fields.start_position import LoadStart, Word, start_error, start_kind
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, part
from setl.channel.text.strict_model import StrictModel

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_ONE_PIPELINE_EACH = (
    "cannot be chosen with `mode: subscribe`, where the group deals partitions out; assign them"
    " instead"
)
_EMPTY = "would leave all but the first empty; choose `partition_by: table` or `key`"
_MECHANISM = "How the account logs in (SASL); DTS uses PLAIN."


class TimestampStart(StrictModel):
    """Start at the first record committed at or after a time, seconds since 1970 UTC."""

    timestamp: UnixTime = Field(description="Commit time, in seconds since 1970-01-01 UTC.")


class OffsetStart(StrictModel):
    """Start at a Kafka offset."""

    offset: int = Field(ge=0, description="Offset of the first record to read.")


_KafkaStart = Annotated[
    Word
    | Annotated[TimestampStart, Tag("timestamp")]
    | Annotated[OffsetStart, Tag("offset")]
    | Annotated[LoadStart, Tag("load")],
    Discriminator(
        start_kind(timestamp=TimestampStart, offset=OffsetStart, load=LoadStart),
        **start_error("latest, earliest, {load: true}, {timestamp: …} or {offset: …}"),
    ),
]


def _of_another_format(
    end: type[StrictModel], raw: Raw, fields: Callable[[StandaloneFormat], Iterable[str]]
) -> Iterable[tuple[Path, str]]:
    """Fields of an end that mean something to one format, which is not the given one."""
    for format_, form in STANDALONE.items():
        if raw.get("format") == format_:
            continue
        for name in fields(form):
            if raw.get(name) not in (None, end.model_fields[name].default):
                yield (name,), f"means nothing without `format: {format_}`"


class KafkaSource(SourceConfig):
    """Change records of Alibaba DTS, Debezium or Canal on one partition of a Kafka topic."""

    system: ClassVar[str] = "setl.systems.kafka.source_system:KafkaSourceSystem"
    has_signs: ClassVar[bool] = False

    type: Literal["kafka"] = Field(description="Kafka.")
    format: Format = Field(
        default=DTS,
        description="Format of the records. dts: Alibaba DTS, in Avro. debezium: JSON"
        " with schemas, of the connectors for MySQL and MariaDB. canal: flat messages.",
    )
    time_zone: TimeZone | None = Field(
        default=None,
        description="Time zone of Canal's JVM, in which it writes TIMESTAMP values: +08:00, or a"
        " name such as Asia/Shanghai. Needed for tables with TIMESTAMP columns.",
    )
    brokers: list[Broker] = Field(min_length=1, description="Kafka brokers, each host:port.")
    topic: Text = Field(description="Topic to read.")
    partition: int = Field(default=0, ge=0, description="The partition; DTS uses 0 only.")
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Partitions of the topic, in place of `partition`: one pipeline for each, with"
        " -0, -1 and so on appended to its name.",
    )
    mode: Literal["assign", "subscribe"] = Field(
        default="assign",
        description="assign: the leader reads the partition. subscribe: the consumer group `sid`"
        " decides who reads; setl waits while another member of the group has the partition.",
    )
    sid: str = Field(
        default="", description="Consumer group id of the subscription; see also `user`."
    )
    user: str = Field(
        default="", description="Account of the consumer group; the login is user-sid."
    )
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    mechanism: Mechanism = Field(default="PLAIN", description=_MECHANISM)
    ssl_ca: str = Field(default="", description=KAFKA_SSL_CA)
    logical_names: bool = Field(
        default=True,
        description="Records of DRDS and PolarDB-X count as rows of their logical table, instead of"
        " the physical table of a shard.",
    )
    database: Database | None = Field(
        default=None,
        description="The database that the records are of, for loads of whole tables, `setl verify`"
        " and `setl check`; changes are never read from it. Name the server itself, not a replica"
        " that may lag.",
    )
    start: _KafkaStart = Field(
        default="latest",
        description="Where to start while there is no checkpoint: with a load of the existing rows"
        " from `database`, at the end or beginning of the topic, at a commit time, or at an"
        " offset.",
    )
    kafka: dict[str, KafkaSetting] = Field(
        default_factory=dict[str, KafkaSetting],
        repr=False,
        description="Further settings of librdkafka's consumer, by its or kafka-python's names.",
    )

    @property
    @override
    def address(self) -> str:
        return f"{self.topic}@{','.join(self.brokers)}"

    @property
    @override
    def codec(self) -> str:
        form = STANDALONE.get(self.format)
        if form is not None:
            own: list[str | None] = [getattr(self, name) for name in form.source_fields]
            return " ".join([self.format, *filter(None, own)])
        return "dts" if self.logical_names else "dts-physical"

    @property
    def stands_alone(self) -> bool:
        """Whether each record is a change of its own: no transactions, and no marks in them."""
        return self.format != DTS

    @property
    @override
    def origin(self) -> Database | None:
        return self.database

    @property
    @override
    def partition_count(self) -> int:
        return self.partitions or 0

    @property
    def partition_numbers(self) -> tuple[int, ...]:
        """See `SourceConfig.partition_numbers`; a group may get any of them."""
        if self.mode == "subscribe":
            return ()
        count = self.partitions
        return (self.partition,) if count is None else tuple(range(count))

    @property
    @override
    def loads_tables(self) -> bool:
        return isinstance(self.start, LoadStart)

    @property
    @override
    def starts_now(self) -> bool:
        return self.start == "latest"

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """A password is of somebody, and the position in the topic is setl's to keep."""
        if raw.get("password") and not raw.get("user"):
            yield ("user",), "is required where there is a password"
        if raw.get("logical_names") is not None and raw.get("format", DTS) != DTS:
            yield ("logical_names",), f"means nothing without `format: {DTS}`"
        yield from _of_another_format(cls, raw, lambda form: form.source_fields)
        for name in part(raw.get("kafka")):
            plain = str(name).replace(".", "_")
            if plain in OWN_OF_CONSUMER:
                yield ("kafka", name), "cannot be set; setl keeps the position in the topic itself"
            elif plain not in CONSUMER_SETTINGS:
                yield ("kafka", name), NOT_ALLOWED
        if raw.get("partitions") is not None and raw.get("partition"):
            yield ("partition",), "cannot be given together with `partitions`; choose one of them"
        if raw.get("mode") == "subscribe":
            if not raw.get("sid"):
                yield ("sid",), "is required to subscribe: it is the consumer group"
            if raw.get("partitions") is not None or raw.get("partition"):
                path = "partitions" if raw.get("partitions") is not None else "partition"
                yield (path,), _ONE_PIPELINE_EACH


class KafkaTarget(TargetConfig):
    """A Kafka topic that a relay fills with change records, for any number of subscribers."""

    system: ClassVar[str] = "setl.systems.kafka.target_system:KafkaTargetSystem"
    is_log: ClassVar[bool] = True

    type: Literal["kafka"] = Field(description="Kafka.")
    format: Format = Field(
        default=DTS,
        description="Format of the records. dts: Alibaba DTS, in Avro. debezium: Debezium's"
        " envelope, in JSON. canal: Canal's flat messages, in JSON.",
    )
    prefix: str = Field(
        default="",
        description="Of `format: debezium`, its topic.prefix, which stands before the names of"
        " tables. Default: the topic's name.",
    )
    schemas: bool = Field(
        default=False,
        description="Of `format: debezium`, whether each key and value has its schema.",
    )
    decimals: Literal["precise", "string"] = Field(
        default="precise",
        description="Of `format: debezium`, its decimal.handling.mode: a DECIMAL as bytes in"
        " Base64, or as text.",
    )
    schema_changes: bool | None = Field(
        default=None,
        description="Whether the topic has a record of each schema change, between those of rows."
        " Default: true for `format: canal`, false for `format: debezium`. Of `format: dts` it"
        " always has.",
    )
    brokers: list[Broker] = Field(min_length=1, description="Kafka brokers, each host:port.")
    topic: Text = Field(description="Topic to write; created if it does not exist.")
    partitions: int = Field(
        default=1, ge=1, le=1024, description="Partitions of a topic that setl creates."
    )
    partition_by: Literal["order", "table", "key"] = Field(
        default="order",
        description="What keeps its order, in one partition. order: everything, in partition 0."
        " table: each table, or table group. key: each row.",
    )
    delivery: Literal["transactional", "idempotent", "one_in_flight"] = Field(
        default="transactional",
        description="transactional: readers of committed records see each record once. idempotent,"
        " for brokers without transactions: a former leader may repeat what it had in flight, which"
        " setl's readers drop. one_in_flight, for brokers without idempotent producers: a batch may"
        " be repeated too.",
    )
    heartbeat: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="Seconds between heartbeat records in each partition.",
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="none",
        description="Compression of batches.",
    )
    user: str = Field(default="", description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    mechanism: Mechanism = Field(default="PLAIN", description=_MECHANISM)
    ssl_ca: str = Field(default="", description=KAFKA_SSL_CA)
    kafka: dict[str, KafkaSetting] = Field(
        default_factory=dict[str, KafkaSetting],
        repr=False,
        description="Further settings of librdkafka's producer, by its names.",
    )

    @property
    @override
    def address(self) -> str:
        return f"{self.topic}@{','.join(self.brokers)}"

    @property
    def writes_schema_changes(self) -> bool:
        """Whether there is a record of each schema change, if the format leaves it open."""
        form = STANDALONE.get(self.format)
        if self.schema_changes is None:
            return form is not None and form.schema_changes
        return self.schema_changes

    @property
    def format_options(self) -> Mapping[str, Any]:
        """The values of the fields that are this format's own."""
        form = STANDALONE.get(self.format)
        return {} if form is None else {name: getattr(self, name) for name in form.target_fields}

    def as_source(self) -> KafkaSource | None:
        """The topic as one to read, if setl reads such records; `kafka` is a producer's."""
        form = STANDALONE.get(self.format)
        if form is not None and not form.read_with.items() <= self.format_options.items():
            return None
        own: Mapping[str, Any] = {} if form is None else form.source_fields
        return KafkaSource(
            **own,
            type="kafka",
            format=self.format,
            brokers=self.brokers,
            topic=self.topic,
            user=self.user,
            password=self.password,
            mechanism=self.mechanism,
            ssl_ca=self.ssl_ca,
        )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """A password is of somebody, and nothing may loosen what delivery promises."""
        if raw.get("password") and not raw.get("user"):
            yield ("user",), "is required where there is a password"
        for name in part(raw.get("kafka")):
            plain = str(name).replace(".", "_")
            if plain in OWN_OF_PRODUCER:
                yield ("kafka", name), "cannot be set; `delivery` decides it"
            elif plain not in PRODUCER_SETTINGS:
                yield ("kafka", name), NOT_ALLOWED
        yield from _of_another_format(cls, raw, lambda form: form.target_fields)
        if raw.get("format", DTS) == DTS and raw.get("schema_changes") is not None:
            yield ("schema_changes",), f"means nothing to `format: {DTS}`, which always has them"
        if raw.get("partition_by", "order") == "order" and raw.get("partitions", 1) not in (1, "1"):
            yield ("partitions",), _EMPTY
