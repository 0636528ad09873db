"""Targets that several pipelines write, each from another source.

Such a target has rows that are not in one of the sources. A comparison with that source takes them
for rows too many, and nobody may delete them for that.

Servers are compared as they are written, see `setl.channel.relations.addresses`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from setl.channel.fields.endpoints import takes_documents, takes_rows
from setl.channel.names.overlaps import names_overlap, overlap, reached, written_tables
from setl.channel.names.patterns import (
    PatternError,
    TablePattern,
    parse_index_target,
)
from setl.channel.relations.addresses import (
    Topic,
    relayed_topics,
    server_read,
    tables_address,
    topic_of,
)
from setl.channel.text.raw import Raw, items, part, pattern_of


@dataclass(frozen=True, slots=True)
class _Way:
    """What one entry of `tables` reads and writes.

    Attributes:
        pipeline: ``channel/pipeline``.
        entry: its position in `tables`.
        source: the server that is read, or the topic if the server is not known.
        reads: the tables there.
        into_index: whether indexes are written.
        targets: addresses of the target.
        writes: the tables there; of an index only the table counts.
    """

    pipeline: str
    entry: int
    source: str | Topic
    reads: TablePattern
    into_index: bool
    targets: frozenset[str]
    writes: TablePattern

    def meets(self, other: _Way) -> bool:
        """Whether another one brings other rows to where this one writes.

        Pipelines that share the partitions of one topic bring rows of the same tables.
        """
        if self.into_index != other.into_index or not self.targets & other.targets:
            return False
        if (self.source, self.reads) == (other.source, other.reads):
            return False
        if self.into_index:
            return names_overlap(self.writes.table, other.writes.table)
        return overlap(self.writes, other.writes)


def other_writers(pipeline: str, definitions: Iterable[Raw]) -> dict[int, tuple[str, ...]]:
    """Which other pipelines write what a pipeline writes, by the entry of its `tables`.

    Entries that write alone are left out.

    Args:
        pipeline: ``channel/pipeline``.
        definitions: all channels of the cluster as they are stored, its own among them.
    """
    definitions = list(definitions)
    topics = relayed_topics(definitions)
    ways = [way for definition in definitions for way in _ways(definition, topics)]
    others = [way for way in ways if way.pipeline != pipeline]
    found: dict[int, tuple[str, ...]] = {}
    for way in ways:
        names = {other.pipeline for other in others if way.meets(other)}
        if way.pipeline == pipeline and names:
            found[way.entry] = tuple(sorted(names))
    return found


def _ways(definition: Raw, topics: Mapping[Topic, str]) -> Iterator[_Way]:
    channel = str(definition.get("channel"))
    for pipeline in map(part, items(definition.get("pipelines"))):
        source, target = part(pipeline.get("source")), part(pipeline.get("target"))
        into_index = takes_documents(target)
        if not into_index and not takes_rows(target):
            continue
        for number, table in enumerate(map(part, items(pipeline.get("tables")))):
            reads = pattern_of(table)
            if reads is None:
                continue
            yield _Way(
                f"{channel}/{pipeline.get('name')}",
                number,
                server_read(source, topics) or topic_of(source),
                reads,
                into_index,
                _hosts(target) if into_index else frozenset({tables_address(target)}),
                _index_names(table, reads)
                if into_index
                else written_tables(reads, table.get("to")),
            )


def _index_names(table: Raw, reads: TablePattern) -> TablePattern:
    """Names of indexes are in lower case, whatever the tables' are."""
    to, lower = table.get("to"), pattern_of({"from": str(table.get("from")).lower()}) or reads
    try:
        return reached(lower, parse_index_target(to, lower) if isinstance(to, str) else None)
    except PatternError:
        return lower


def _hosts(target: Raw) -> frozenset[str]:
    hosts = target.get("hosts")
    return frozenset(str(host).rstrip("/").lower() for host in items(hosts) or (hosts,))
