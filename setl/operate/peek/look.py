"""The entry point for commands and tools: yields the wanted records one by one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from setl.operate.peek.subject import Subject
from setl.select.start_point import StartPoint
from setl.systems.registry import system_of
from setl.systems.seen_record import SeenRecord, Wanted


def look(
    subject: Subject,
    start_point: StartPoint | None,
    wanted: Wanted,
    *,
    last: int = 10,
    follow: bool = False,
) -> Generator[SeenRecord | None]:
    """Records of a topic or a binlog. Closing the generator closes the connections.

    Args:
        subject: what to look at.
        start_point: where to begin. From latest, it is waited for what comes, whatever `follow`
            says. None stands for the last records that are there, of a topic; for latest, of a
            binlog, which can only be read forwards.
        wanted: which records; of a position that is a time, only what was committed since.
        last: how many of the last ones, where `start_point` is None.
        follow: whether to wait for more at the end of what is there now.

    Yields:
        A wanted record, or None about twice a second while none comes.

    Raises:
        ConfigurationError: the position or the topic does not exist, or the account is refused.
        PositionLostError: the source no longer has the position.
        TransientError: a server does not answer, or the connection was lost.
        FatalError: a binlog holds something other than rows.
    """
    system = system_of(subject.config)
    if start_point is None and not system.reads_backwards:
        start_point = StartPoint("latest")
    if start_point is not None:
        wanted = replace(wanted, since=max(wanted.since, start_point.since))
        follow = follow or start_point.start == "latest"
    for record in system.records(subject.partitions, start_point, wanted, last=last, follow=follow):
        if record is None or wanted.shows(record):
            yield record
