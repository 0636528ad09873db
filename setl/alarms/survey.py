"""Asks the servers of pipelines what no node tells: how long positions last, and what expires."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.values import Channel, PipelineId
from setl.channel.file import Pipeline
from setl.channel.reading import resolve_and_parse
from setl.clock import Clock
from setl.errors import SetlError
from setl.log import fields
from setl.operate.cutover.inspection import stopping_cutover
from setl.operate.positions.stored import read_stored
from setl.systems.expiry import (
    DiskTarget,
    Expiration,
    ExpiringSystem,
    RemovingSource,
    ServerDisk,
    StreamRetention,
)
from setl.systems.registry import system_of

_log = logging.getLogger(__name__)

_AT_ONCE = 4
_OLD = 4.0  # an answer counts for so many times the pause between two questions
_NEAR = 24 * 3600.0  # seconds before a position may be lost from which on it is asked more often
_OFTENER = 10.0


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What the servers of a pipeline have told.

    Attributes:
        retention: see `PipelineFacts`; so with the others.
        expirations: what expires.
        disks: of the target.
        cutover: that keeps the source read-only.
        unreachable: why a server told nothing.
    """

    retention: StreamRetention | None = None
    expirations: tuple[Expiration, ...] | None = None
    disks: tuple[ServerDisk, ...] | None = None
    cutover: str | None = None
    unreachable: str = ""


@dataclass(slots=True)
class _Entry:
    channel: Channel
    asked: float | None = None  # monotonic, when the last answer was there
    under_way: bool = False
    found: Surveyed = field(default_factory=Surveyed)


class Survey:
    """Asks in threads of its own, each pipeline every few minutes; never holds its caller up."""

    def __init__(
        self, arbiter: Arbiter, environment: Mapping[str, str], clock: Clock, every: float
    ) -> None:
        """Nothing is asked yet.

        Args:
            arbiter: keeps positions, or notes where they are.
            environment: where channels' references get their values from.
            clock: for all times.
            every: seconds between two questions about the same pipeline.
        """
        self._arbiter = arbiter
        self._environment = environment
        self._clock = clock
        self._every = every
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="alarm-survey")

    def look(self, pipelines: Iterable[tuple[Channel, str, bool]]) -> None:
        """Ask what is due, and forget pipelines that are not there any more; returns at once.

        Args:
            pipelines: channel and name, and whether the pipeline runs. One that does not comes
                nearer to the end of what its source keeps, and is asked about more often.
        """
        with self._lock:
            given = list(pipelines)
            wanted = {(channel.name, name): channel for channel, name, _ in given}
            still = {(channel.name, name) for channel, name, runs in given if not runs}
            self._entries = {of: e for of, e in self._entries.items() if of in wanted}
            for of, channel in wanted.items():
                entry = self._entries.setdefault(of, _Entry(channel))
                # Not the revision alone: one that was removed and stored again begins at 0 again.
                changed = entry.channel != channel
                if changed:
                    # It may be about other servers now.
                    entry.found, entry.asked = Surveyed(), None
                entry.channel = channel
                if not entry.under_way and (changed or self._due(entry, still=of in still)):
                    entry.under_way = True
                    self._pool.submit(self._ask, entry, channel, of[1])

    def known(self, channel: str, pipeline: str) -> Surveyed:
        """What is known now; an answer that is too old counts no more."""
        now = self._clock.monotonic()
        with self._lock:
            entry = self._entries.get((channel, pipeline))
            if entry is None or entry.asked is None:
                return Surveyed()
            age = now - entry.asked
            found = entry.found
        if age > _OLD * self._every:
            return Surveyed(unreachable=found.unreachable or "the last answer is too old")
        if found.retention is None:
            return found
        return replace(found, retention=replace(found.retention, now=found.retention.now + age))

    def stop(self) -> None:
        """Ask nothing more; does not wait for what is being asked."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _due(self, entry: _Entry, *, still: bool) -> bool:
        if entry.asked is None:
            return True
        retention = entry.found.retention
        left = retention.seconds_left() if retention else None
        near = retention is not None and (
            bool(retention.lost) or (left is not None and left < _NEAR)
        )
        pause = self._every / _OFTENER if near or still else self._every
        return self._clock.monotonic() - entry.asked >= pause

    def _ask(self, entry: _Entry, channel: Channel, pipeline: str) -> None:
        found = Surveyed(unreachable="unexpected")
        try:
            found = survey(channel, pipeline, self._arbiter, self._environment)
        except Exception:  # noqa: BLE001 - a defect must not end the asking
            _log.exception("a survey failed unexpectedly")
        finally:
            self._keep(entry, channel, pipeline, found)

    def _keep(self, entry: _Entry, channel: Channel, pipeline: str, found: Surveyed) -> None:
        with self._lock:
            entry.under_way = False
            if entry.channel != channel:
                return  # its definition changed meanwhile: the next look asks again
            if found.unreachable and found.unreachable != entry.found.unreachable:
                _log.warning(
                    "what alarms depend on is not known",
                    extra=fields(channel=channel.name, pipeline=pipeline, error=found.unreachable),
                )
            entry.found, entry.asked = _retained(found, entry.found), self._clock.monotonic()


def _retained(found: Surveyed, before: Surveyed) -> Surveyed:
    """What is known: while a server does not answer, what it told before stays true."""
    if not found.unreachable:
        return found
    expirations = {(each.what, each.of): each for each in before.expirations or ()}
    expirations |= {(each.what, each.of): each for each in found.expirations or ()}
    known = before.expirations is not None or found.expirations is not None
    return replace(
        found,
        expirations=tuple(expirations.values()) if known else None,
        disks=before.disks if found.disks is None else found.disks,
        cutover=before.cutover if found.cutover is None else found.cutover,
    )


def survey(
    channel: Channel, pipeline: str, arbiter: Arbiter, environment: Mapping[str, str]
) -> Surveyed:
    """Ask the servers of one pipeline; one that does not answer is a finding, not an error."""
    problems: list[str] = []
    cutover: str | None = None
    try:
        cutover = stopping_cutover(arbiter, PipelineId(channel.name, pipeline))
    except ArbiterError as error:
        problems.append(str(error))
    try:
        file = resolve_and_parse(channel.definition, environment)
        described = file.pipeline(pipeline)
    except SetlError as error:
        wrong = f"the channel cannot be read here: {error.message}"
        return Surveyed(cutover=cutover, unreachable=wrong)
    retention: StreamRetention | None = None
    try:
        retention = _retention(described, channel.name, arbiter)
    except (SetlError, ArbiterError) as error:
        problems.append(str(error))
    expirations: dict[tuple[str, str], Expiration] = {}
    for system in (system_of(described.source), system_of(described.target)):
        if not isinstance(system, ExpiringSystem):
            continue
        try:
            for each in system.expirations():
                expirations[each.what, each.of] = each
        except SetlError as error:
            problems.append(str(error))
    last_sent_at = None if problems and not expirations else tuple(expirations.values())
    disks: Sequence[ServerDisk] | None = None
    target = system_of(described.target)
    if isinstance(target, DiskTarget):
        try:
            disks = target.disks()
        except SetlError as error:
            problems.append(str(error))
    return Surveyed(
        retention,
        last_sent_at,
        None if disks is None else tuple(disks),
        cutover,
        "; ".join(dict.fromkeys(problems)),
    )


def _retention(pipeline: Pipeline, channel: str, arbiter: Arbiter) -> StreamRetention | None:
    source = system_of(pipeline.source)
    if not isinstance(source, RemovingSource):
        return None
    stored = read_stored(pipeline, channel, arbiter)
    # What it resumes at, and not what it has applied: the former has to be there.
    return source.retention(stored.checkpoint.resume) if stored.checkpoint else None
