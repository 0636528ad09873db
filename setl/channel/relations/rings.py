"""Rings: changes that would go round for ever through several channels.

A channel drops what it has written itself and passes what other channels have written. So a
change travels on from channel to channel, which is what A⇄B and B⇄C need to bring it from A to C.
But the way may lead back to where it has been: in A⇄B, B⇄C and C⇄A, in three one-way channels
A→B→C→A, or in two channels between the same two servers. Then it never ends. No channel meets its
own mark, since each transaction carries the mark of the last channel only.

Servers are compared as they are written, host and port. One server under two names, or a DTS
subscription that does not say of which database it is, hides a ring.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from setl.channel.names.overlaps import overlap, written_tables
from setl.channel.names.patterns import TablePattern
from setl.channel.relations.addresses import Topic, address, relayed_topics, server_read
from setl.channel.relations.mark_ids import mark_id_of
from setl.channel.text.raw import Raw, items, part, pattern_of


@dataclass(frozen=True, slots=True)
class Link:
    """The way that rows of one entry of `tables` take from one MySQL server to another.

    Attributes:
        pipeline: ``channel/pipeline``.
        mark: what its transactions are marked with.
        source: the server that is read, ``host:port``; "" if it is not known.
        target: the server that is written to.
        reads: the tables there.
        writes: the tables here.
    """

    pipeline: str
    mark: int
    source: str
    target: str
    reads: TablePattern
    writes: TablePattern

    def leads_to(self, other: Link) -> bool:
        """Whether `other` takes up what this one has written."""
        return (
            self.target == other.source
            and self.mark != other.mark
            and overlap(self.writes, other.reads)
        )

    def __str__(self) -> str:
        return f"{self.pipeline} ({self.source} to {self.target})"


def ring_through(definition: Raw, others: Iterable[Raw]) -> tuple[Link, ...] | None:
    """The shortest ring in which a channel takes part, None if there is none.

    Args:
        definition: the channel, as it is stored.
        others: the other channels of the cluster.
    """
    others = list(others)
    topics = relayed_topics([definition, *others])
    own = list(_links(definition, topics))
    links = [*own, *(link for other in others for link in _links(other, topics))]
    rings = filter(None, (_way_back(link, links) for link in own))
    return min(rings, key=len, default=None)


def of_unknown_database(definition: Raw, others: Iterable[Raw]) -> list[str]:
    """Pipelines into MySQL of which nobody can tell what server they read, if there are others.

    One channel alone makes no ring.
    """
    others = list(others)
    if not others:
        return []
    topics = relayed_topics([definition, *others])
    links = [link for each in (definition, *others) for link in _links(each, topics)]
    return list(dict.fromkeys(link.pipeline for link in links if not link.source))


def _way_back(start: Link, links: Sequence[Link]) -> tuple[Link, ...] | None:
    """The shortest way along links that leads from one to itself."""
    ways: deque[tuple[Link, ...]] = deque([(start,)])
    seen: set[int] = set()
    while ways:
        way = ways.popleft()
        for number, link in enumerate(links):
            if not way[-1].leads_to(link):
                continue
            if link == start:
                return way
            if number not in seen:
                seen.add(number)
                ways.append((*way, link))
    return None


def _links(definition: Raw, topics: Mapping[Topic, str]) -> Iterator[Link]:
    channel, given = str(definition.get("channel")), definition.get("mark_id")
    mark = mark_id_of(channel, given if isinstance(given, int) else None)
    for pipeline in map(part, items(definition.get("pipelines"))):
        target = part(pipeline.get("target"))
        if target.get("type") != "mysql":
            continue
        source = server_read(part(pipeline.get("source")), topics)
        for table in map(part, items(pipeline.get("tables"))):
            reads = pattern_of(table)
            if reads is None:
                continue
            name = f"{channel}/{pipeline.get('name')}"
            writes = written_tables(reads, table.get("to"))
            yield Link(name, mark, source, address(target), reads, writes)
