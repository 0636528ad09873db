"""The channel file as typed, frozen values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import ConfigDict, Field

from setl.channel.fields.alarms import Alarms
from setl.channel.fields.checks import Name, Text
from setl.channel.fields.endpoint import Database
from setl.channel.fields.endpoints import (
    BinlogStart,
    ElasticsearchTarget,
    GtidStart,
    MysqlSource,
    MysqlTarget,
    Source,
    Target,
)
from setl.channel.fields.kafka_endpoints import (
    KafkaSource,
    KafkaTarget,
    OffsetStart,
    TimestampStart,
)
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.fields.nested_rows import wrong_nesting
from setl.channel.fields.node_choice import NodeChoice
from setl.channel.fields.standing_verification import (
    StandingVerification,
    wrong_verification,
)
from setl.channel.fields.table_mapping import TableMapping
from setl.channel.rules.groups import wrong_groups
from setl.channel.rules.mappings import repeated_sources, wrong_documents, wrong_targets
from setl.channel.rules.pipelines import (
    shared_checkpoints,
    wrong_checkpoint,
    wrong_create,
    wrong_ddl,
    wrong_load,
    wrong_load_limits,
    wrong_relay,
    wrong_return,
)
from setl.channel.rules.tables import wrong_pair, wrong_policies, wrong_rereads, wrong_unchanged
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, items, part
from setl.channel.text.strict_model import StrictModel
from setl.errors import ConfigurationError
from setl.model.position import GENERATION_BITS

__all__ = [
    "BinlogStart",
    "ChannelFile",
    "Database",
    "ElasticsearchTarget",
    "GtidStart",
    "KafkaSource",
    "KafkaTarget",
    "MysqlSource",
    "MysqlTarget",
    "NodeChoice",
    "OffsetStart",
    "Pipeline",
    "Source",
    "TableMapping",
    "Target",
    "TimestampStart",
]


class Pipeline(StrictModel):
    """One direction of a channel."""

    name: Name = Field(description="Name of the pipeline, unique in its channel.")
    source: Source = Field(description="Where changes come from.")
    target: Target = Field(description="Where changes go.")
    tables: list[TableMapping] = Field(
        min_length=1,
        description="Which tables go where. An exact name precedes wildcards, of which the first"
        " match counts; entries with the same `from` all apply.",
    )
    batch_rows: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Rows after which a batch is closed."
    )
    batch_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=1,
        le=1 << 30,
        description="Bytes after which a batch is closed, whatever its rows.",
    )
    batch_wait: float = Field(
        default=0.02,
        gt=0,
        le=60,
        description="Seconds between two batches at low load; changes within them share a batch. A"
        " transaction after a pause is not delayed.",
    )
    window: int = Field(
        default=16, ge=1, le=1024, description="Batches selected but not yet acknowledged."
    )
    buffer_bytes: int = Field(
        default=128 * 1024 * 1024,
        ge=1,
        le=1 << 36,
        description="Bytes of records in these batches. At this limit setl stops reading until the"
        " target catches up.",
    )
    rows_per_task: int = Field(
        default=2_500,
        ge=1,
        le=1_000_000,
        description="Rows for which another Spark task is started.",
    )
    create: bool = Field(
        default=False,
        description="Create missing target tables from the source's tables and the mapping."
        " Existing tables are never altered.",
    )
    ddl: Literal["ignore", "stop", "pass"] = Field(
        default="ignore",
        description="DDL on a mapped table. ignore: report it and continue. stop: stop the pipeline"
        " with an error. pass: run it on the target too.",
    )
    faulty_rows: Literal["stop", "dead_letter"] = Field(
        default="stop",
        description="A row that cannot be decoded, transformed or stored. stop: stop the pipeline"
        " with the error. dead_letter: store the row as a dead letter, and continue.",
    )
    dead_letter_limit: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="Open dead letters above which the pipeline stops.",
    )
    accept: list[Text] = Field(
        default_factory=list[str],
        description="Findings of `setl check` to accept, by the names that it prints, such as"
        " foreign-key-action@shop.orders; * stands for any text.",
    )
    checkpoint: Literal["target", "zookeeper", "kafka", "file"] | None = Field(
        default=None,
        description="Where the checkpoint is stored. Default: in the target if it can store it,"
        " else in ZooKeeper. kafka: as the committed offset of the group `sid`. file: in"
        " `checkpoint_file`, for a pipeline that only one node ever leads.",
    )
    checkpoint_file: Text | None = Field(
        default=None,
        description="The file on the node, for `checkpoint: file`; below the node's"
        " `checkpoint_folder`.",
    )
    checkpoint_interval: float = Field(
        default=5.0,
        ge=0,
        le=60,
        description="Seconds between checkpoints in Kafka or in a file; elsewhere one is stored"
        " with every load.",
    )
    load_limits: LoadLimits = Field(
        default_factory=LoadLimits,
        description="Limits of table loads.",
    )
    verify: StandingVerification | None = Field(
        default=None,
        description="Compare its tables with their targets continuously. Default: the channel's"
        " `verify`.",
    )
    alarms: Alarms | None = Field(
        default=None,
        description="When it raises alarms. Default: the channel's `alarms`.",
    )
    generation: int = Field(
        default=1,
        ge=1,
        lt=1 << GENERATION_BITS,
        description="Raise it by one to begin at `start` again. To move elsewhere, use"
        " `setl position reset`.",
    )
    nodes: NodeChoice = Field(
        default_factory=NodeChoice,
        description="Which nodes preferably lead it. Default: pipelines are spread over all nodes.",
    )

    @property
    def stores_dead_letters(self) -> bool:
        """Whether faulty rows are put aside."""
        return self.faulty_rows == "dead_letter"

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """What depends on both endpoints, or on several tables."""
        source, target = part(raw.get("source")), part(raw.get("target"))
        tables = [part(t) for t in items(raw.get("tables"))]
        yield from wrong_checkpoint(raw, source, target)
        yield from wrong_relay(tables, source, target)
        yield from wrong_ddl(raw, source, target)
        yield from wrong_load(tables, source, target)
        yield from wrong_load_limits(raw, target)
        yield from wrong_create(raw, tables, source, target)
        if raw.get("faulty_rows") == "dead_letter" and target.get("type") == "kafka":
            yield ("faulty_rows",), "means nothing to a relay, which looks into no row"
        yield from wrong_targets(tables, source, target)
        yield from wrong_policies(tables, source, target)
        yield from wrong_rereads(tables, source, target)
        yield from wrong_unchanged(tables, target)
        yield from repeated_sources(tables)
        yield from wrong_groups(tables, target)
        yield from wrong_documents(tables, target)
        yield from wrong_nesting(tables, source, target)


class ChannelFile(StrictModel):
    """A complete channel file."""

    model_config = ConfigDict(title="setl channel")

    channel: Name = Field(description="Name of the channel, unique in the cluster.")
    mark_id: int | None = Field(
        default=None,
        ge=1,
        lt=1 << 31,
        description="Number of this channel in retl.retl_mark, unique among the channels on the"
        " same servers. Default: derived from the channel's name.",
    )
    otter_info: Text | None = Field(
        default=None,
        description="The channelInfo of an Otter channel that writes alongside this one, and whose"
        " transactions are dropped as the channel's own. Set `mark_id` to its number.",
    )
    home: Name | None = Field(
        default=None,
        description="The pipeline whose source is the home site, which conflict policies prefer."
        " Default: the first pipeline.",
    )
    verify: StandingVerification | None = Field(
        default=None,
        description="Compare all tables with their targets continuously. A pipeline may override"
        " it.",
    )
    alarms: Alarms = Field(
        default_factory=Alarms,
        description="When the channel's pipelines raise alarms. A pipeline may override it.",
    )
    pipelines: list[Pipeline] = Field(
        min_length=1, description="The pipelines, one for each direction."
    )

    def pipeline(self, name: str) -> Pipeline:
        """The pipeline of a name. Raises ConfigurationError if the channel has none such."""
        for pipeline in self.pipelines:
            if pipeline.name == name:
                return pipeline
        raise ConfigurationError(f"channel {self.channel} has no pipeline {name}")

    def verification(self, name: str) -> StandingVerification | None:
        """How the tables of the pipeline of this name are verified, None if they are not."""
        return self.pipeline(name).verify or self.verify

    def from_home(self, name: str) -> bool:
        """Whether the source of the pipeline of this name is the home site."""
        return name == (self.home or self.pipelines[0].name)

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """Pipelines have names of their own, and at one server ids of their own."""
        yield from shared_checkpoints([part(each) for each in items(raw.get("pipelines"))])
        yield from wrong_pair(raw)
        yield from wrong_return([part(each) for each in items(raw.get("pipelines"))])
        yield from wrong_verification(raw)
        names: dict[str, int] = {}
        readers: dict[tuple[str, str, str], int] = {}
        for i, pipeline in enumerate(map(part, items(raw.get("pipelines")))):
            name, source = pipeline.get("name"), part(pipeline.get("source"))
            if isinstance(name, str):
                first = names.setdefault(name, i)
                if first != i:
                    yield ("pipelines", i, "name"), f"is already the name of pipelines[{first}]"
            number = source.get("server_id")
            if number is not None:
                reader = (str(source.get("host")), str(source.get("port", 3306)), str(number))
                first = readers.setdefault(reader, i)
                if first != i:
                    yield (
                        ("pipelines", i, "source", "server_id"),
                        f"is already the id with which pipelines[{first}] reads this server",
                    )
