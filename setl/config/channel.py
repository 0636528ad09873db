"""The channel file as typed, frozen values (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from setl.config.checks import Name, Text
from setl.config.endpoints import (
    BinlogStart,
    DtsSource,
    ElasticsearchTarget,
    GtidStart,
    MysqlSource,
    MysqlTarget,
    OffsetStart,
    Source,
    Target,
    TimestampStart,
)
from setl.config.mapping_rules import Raw, items, part, repeated_sources, wrong_targets
from setl.config.patterns import PatternError, parse_from
from setl.config.problems import Path
from setl.config.references import has_reference
from setl.config.strict_model import StrictModel, problem
from setl.model.position import GENERATION_BITS

__all__ = [
    "BinlogStart",
    "ChannelFile",
    "DtsSource",
    "ElasticsearchTarget",
    "GtidStart",
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


def _from(value: str) -> str:
    if not has_reference(value):
        try:
            parse_from(value)
        except PatternError as error:
            raise problem(str(error)) from error
    return value


_From = Annotated[
    str,
    AfterValidator(_from),
    Field(json_schema_extra={"pattern": r"^([^.\\]|\\.)+\.([^.\\]|\\.)+$"}),
]


class TableMapping(StrictModel):
    """Which source tables go where, and how.

    `from` names ``schema.table``; ``*`` and ``?`` stand for any text and any character, and
    ``[1-128]`` for a number in a range. All columns pass under their own names unless
    `include` or `exclude` say otherwise; `columns` adds or replaces target columns, each with
    a Spark SQL expression over the source's columns (a bare column name renames).
    """

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "required": ["include", "exclude"],
                "properties": {"include": {"type": "array"}, "exclude": {"minItems": 1}},
            }
        }
    )

    from_: _From = Field(
        alias="from",
        description="Source tables as schema.table. * stands for any text, ? for one character,"
        " [1-128] for a number in that range ([001-128] with leading zeros); a backslash takes"
        " their meaning from these and from a dot.",
    )
    to: Text | None = Field(
        default=None,
        description="Target table (schema.table, or table to keep the schema) or index. Each *"
        " carries over what the wildcard at its place in `from` stood for; without any, all"
        " tables come together in one. Not given: the same schema and table, or an index with"
        " the table's name in lower case.",
    )
    columns: dict[Text, Text] = Field(
        default_factory=dict[str, str],
        description="Target column → Spark SQL expression over the source's columns, in addition"
        " to the columns that pass as they are. A bare column name renames that column.",
    )
    include: list[Text] | None = Field(
        default=None,
        description="Source columns that pass under their own names. Not given: all of them.",
    )
    exclude: list[Text] = Field(
        default_factory=list[str],
        description="Source columns that do not pass under their own names.",
    )
    where: Text | None = Field(
        default=None,
        description="Spark SQL condition over the source's columns; rows for which it is not true"
        " are not in the target.",
    )
    group: Name | None = Field(
        default=None,
        description="Tables of one group keep their changes in the source's order among each"
        " other, at the price of fewer parallel tasks.",
    )
    key: list[Text] | None = Field(
        default=None,
        min_length=1,
        description="Source columns that identify a row, for tables without a primary key.",
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """`include` and `exclude` exclude each other, and something has to pass."""
        include = raw.get("include")
        if include is not None and raw.get("exclude"):
            yield ("exclude",), "cannot be given together with `include`; choose one of them"
        if include == [] and not raw.get("columns"):
            yield ("include",), "is empty and there are no `columns`, so nothing would be written"


class NodeChoice(StrictModel):
    """Which nodes lead a pipeline rather than others."""

    prefer: list[Name] = Field(
        default_factory=list[str],
        description="Ids of nodes, the most wanted first. The first of them that is live and warm"
        " takes over when nobody leads; others do if none is.",
    )
    weights: dict[Name, Annotated[float, Field(ge=0, le=1000)]] = Field(
        default_factory=dict[str, float],
        description="Node id → share of the pipelines that it is to lead, compared with others; 1"
        " if not given. A node with 0 never leads this pipeline.",
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """Nobody is preferred twice, or preferred and excluded."""
        weights, seen = part(raw.get("weights")), set[str]()
        for i, nid in enumerate(items(raw.get("prefer"))):
            if not isinstance(nid, str):
                continue
            if nid in seen:
                yield ("prefer", i), "is named twice"
            if weights.get(nid) == 0:
                yield ("prefer", i), "has the weight 0, so it never leads"
            seen.add(nid)


class Pipeline(StrictModel):
    """One direction of a channel."""

    name: Name = Field(description="Name of the pipeline, unique in its channel.")
    source: Source = Field(description="Where changes come from.")
    target: Target = Field(description="Where they go.")
    tables: list[TableMapping] = Field(
        min_length=1,
        description="Which tables go where. Exact names come before wildcards, and of these the"
        " first that matches counts; entries with the same `from` all apply.",
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
        default=0.05,
        gt=0,
        le=60,
        description="Seconds after which a batch with any entry in it is closed.",
    )
    window: int = Field(
        default=4, ge=1, le=64, description="Batches selected but not yet acknowledged."
    )
    rows_per_task: int = Field(
        default=2_500, ge=1, le=1_000_000, description="Rows that are worth one Spark task."
    )
    ddl: Literal["ignore", "stop"] = Field(
        default="ignore",
        description="What to do with a DDL statement on a mapped table: pass over it, or stop the"
        " pipeline with an error.",
    )
    checkpoint: Literal["target", "zookeeper"] | None = Field(
        default=None,
        description="Where the checkpoint is kept. Not given: in the target if it can keep it,"
        " else in ZooKeeper.",
    )
    generation: int = Field(
        default=1,
        ge=1,
        lt=1 << GENERATION_BITS,
        description="Raise it by one to begin at `start` again. (A replica with the same GTIDs in"
        " the source's place needs nothing; `setl position reset` goes to any other place.)",
    )
    nodes: NodeChoice = Field(
        default_factory=NodeChoice,
        description="Which nodes lead it rather than others. Not given: pipelines are spread"
        " over all nodes.",
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """What depends on both ends, or on several tables."""
        source, target = part(raw.get("source")), part(raw.get("target"))
        tables = [part(t) for t in items(raw.get("tables"))]
        if target.get("type") == "elasticsearch" and raw.get("checkpoint") == "target":
            yield ("checkpoint",), "cannot be `target` for Elasticsearch; leave it out"
        yield from wrong_targets(tables, source, target)
        yield from repeated_sources(tables)


class ChannelFile(StrictModel):
    """A whole channel file."""

    model_config = ConfigDict(title="setl channel")

    channel: Name = Field(description="Name of the channel, unique in the cluster.")
    mark_id: int | None = Field(
        default=None,
        ge=1,
        lt=1 << 31,
        description="Number of this channel in retl.retl_mark, which no other channel on the same"
        " servers may have. Made from the channel's name if not given.",
    )
    pipelines: list[Pipeline] = Field(
        min_length=1, description="Its pipelines, one for each direction."
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """Pipelines have names of their own, and at one server ids of their own."""
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
