"""The way in for commands and tools: the wanted records of a subject, one after another."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Generator
from dataclasses import replace

from setl.channel.file import TimestampStart
from setl.operate.peek.binlog import BinlogPeek, peek_id
from setl.operate.peek.record import SeenRecord, Wanted
from setl.operate.peek.subject import Binlog, Subject
from setl.operate.peek.topic import TopicPeek
from setl.operate.positions.place import Place


def look(
    subject: Subject, place: Place | None, wanted: Wanted, *, last: int = 10, follow: bool = False
) -> Generator[SeenRecord | None]:
    """Records of a topic or a binlog. Closing the generator closes the connections.

    Args:
        subject: what to look at.
        place: where to begin. From latest, it is waited for what comes, whatever `follow` says.
            None stands for the last records that are there, of a topic; for latest, of a binlog,
            which can only be read forwards.
        wanted: which records; of a place that is a time, only what was committed since.
        last: how many of the last ones, where `place` is None.
        follow: whether to wait for more at the end of what is there now.

    Yields:
        A wanted record, or None about twice a second while none comes.

    Raises:
        ConfigurationError: the place or the topic does not exist, or the account is refused.
        PositionLostError: the source no longer has the place.
        TransientError: a server does not answer, or the connection was lost.
        FatalError: a binlog holds something other than rows.
    """
    if isinstance(subject, Binlog):
        place = place or Place("latest")
    if place is not None:
        wanted = replace(wanted, since=max(wanted.since, _since(place)))
        follow = follow or place.start == "latest"
    for record in _records(subject, place, wanted, last=last, follow=follow):
        if record is None or wanted.shows(record):
            yield record


def _records(
    subject: Subject, place: Place | None, wanted: Wanted, *, last: int, follow: bool
) -> Generator[SeenRecord | None]:
    if isinstance(subject, Binlog):
        who = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
        with BinlogPeek(subject, peek_id(subject.config, who)) as binlog:
            yield from binlog.read_from(place or Place("latest"), follow=follow)
        return
    with TopicPeek(subject) as topic:
        if place is None:
            yield from topic.last(last, wanted, follow=follow)
        else:
            yield from topic.read_from(place, follow=follow)


def _since(place: Place) -> float:
    """The time that a place is, seconds since 1970 UTC; 0 if it is none.

    What is found for a time may lie some way before it: files of a binlog are dated, not what is
    in them, and Kafka dates records when they arrive.
    """
    if isinstance(place.start, TimestampStart):
        return float(place.start.timestamp)
    return place.time or 0.0
