"""Loads whole tables beside the stream: a step now and then, between two loads of the stream.

The target's rows come from two sides: the stream has brought it to the place P, and a step reads
rows as the source has them at a place S that is never before P, since the stream was read from
there. The step is a load as any other: it is over before the stream's next one begins (I15), under
the same fence (I2) and with the same mark (I9). So what it writes is never older than what it
replaces. What the stream brings between P and S is applied again to rows that have it already, as
after a crash, and ends in the same rows. So once the stream has come to the end of the source as it
was after the last step, the target is what the source was there: `TableLoad.until`.

A step's rows are read and written in Spark tasks, a range of the key each. The driver sees keys.

The algorithm differs from that of https://arxiv.org/abs/2010.12597 in this: there a chunk waits in
memory until the stream has come to where it was read, and rows that the stream has changed
meanwhile are dropped from it. Here nothing waits, for the price that for a moment a row may be
newer than rows beside it, and then go back by a change or two that come again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from setl import failpoints
from setl.bulk.range_rows import RangeRows
from setl.bulk.source_reader import SourceReader, SourceTables
from setl.channel.routing import Route, Router
from setl.clock import Clock
from setl.errors import ConfigurationError, DataError, FatalError
from setl.load.sink import LoadTicket
from setl.log import fields
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import Position
from setl.model.table_load import TableLoad
from setl.run.load_size import LoadSize
from setl.run.progress import Progress
from setl.transform.work import WorkItem

_log = logging.getLogger(__name__)

STEP_SECONDS = 0.3
"""What a step should take: the stream waits for it."""

_MOST_ROWS = 200_000  # of a step, however quick it is
_MOST_ITEMS = 64  # ranges of a step: many small tables go together
_LEAST_ROWS = 2_000  # of a range; below, a step costs more than its rows
_NEWS_SECONDS = 60.0  # after which the tables of the source are listed again


class RangeLoading(Protocol):
    """What is asked of Transform and Load; `setl.run.job.LoadJob` is it."""

    def load_ranges(
        self, items: Sequence[tuple[WorkItem, Sequence[Route]]], ticket: LoadTicket
    ) -> Loaded:
        """Read, transform and load; returns when the target has everything, raises SetlError."""
        ...

    @property
    def parallelism(self) -> int:
        """How many ranges are loaded at once."""
        ...


@dataclass(frozen=True, slots=True)
class TableLoadingParts:
    """What loads tables.

    Attributes:
        job: reads and loads ranges.
        tables: opens the tables of the source; gives None if nobody can read them.
        latest: asks for the end of the source's stream.
        agreeing: see `TargetSystem.agreeing_tables`.
        router: which tables go where.
    """

    job: RangeLoading
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    latest: Callable[[], Position]
    agreeing: Callable[[Sequence[tuple[tuple[str, str], Route]]], frozenset[str]]
    router: Router


class _Mapped(NamedTuple):
    """A table of the source that is loaded, with the routes that its rows go by."""

    name: tuple[str, str]
    routes: tuple[Route, ...]

    @property
    def text(self) -> str:
        return ".".join(self.name)


class TableLoading:
    """The load of whole tables of one leadership. Used by the run's thread."""

    def __init__(
        self, parts: TableLoadingParts, leadership: Leadership, progress: Progress, clock: Clock
    ) -> None:
        """Nothing is loaded yet."""
        self._parts = parts
        self._leadership = leadership
        self._progress = progress
        self._clock = clock
        self._size = LoadSize(_MOST_ROWS, seconds=STEP_SECONDS, first=_LEAST_ROWS)
        self._mapped: list[_Mapped] = []
        self._listed = 0.0
        self._agreeing = frozenset[str]()
        self._waiting: tuple[Position, Exception] | None = None

    def begin(self, load: TableLoad | None) -> None:
        """A leadership goes on with a load, or there is none.

        Raises:
            ConfigurationError: the tables cannot be loaded.
            SetlError: the source or the target does not answer.
        """
        self._waiting, self._mapped = None, []
        self._agreeing = frozenset[str]()
        self._progress.loads_tables(load)
        if load is None or load.ended:
            return
        if self._parts.router.decides:
            raise ConfigurationError(
                "tables with a conflict policy cannot be loaded as a whole yet",
                hint="Load them before the channel starts, or without the policy",
                pipeline=self._leadership.key,
            )
        self._list()
        wanted = [(m.name, route) for m in self._mapped for route in m.routes if load.wants(m.text)]
        self._agreeing = self._parts.agreeing(wanted)

    @property
    def catching_up(self) -> frozenset[str]:
        """See `LoadTicket.catching_up`."""
        return self._agreeing

    def step(
        self, reached: Checkpoint, ticket: LoadTicket, allowed: Callable[[], bool]
    ) -> TableLoad | None:
        """Load some ranges; returns how far the load has come, None if it has not moved.

        Args:
            reached: the place P of the module's text; its `load` says where to go on.
            ticket: on whose behalf.
            allowed: see `Work.apply`.

        Raises:
            SetlError: as `Work.apply`.
        """
        load = reached.load
        if load is None or load.ended or reached.repeats:
            return None
        if load.until is not None:
            return self._end(load) if _is_past(reached, load.until) else None
        if self._waiting is not None and not _is_past(reached, self._waiting[0]):
            return None
        moved = self._read(load, ticket, allowed)
        if moved is not None:
            self._progress.loads_tables(moved, left=len(moved.left(self._names())))
        return moved

    def _end(self, load: TableLoad) -> TableLoad:
        self._agreeing = frozenset[str]()
        ended = replace(load, ended=self._clock.now())
        self._progress.loads_tables(ended)
        _log.info("tables are loaded", extra=self._fields(load=load.id, rows=load.rows))
        return ended

    def _read(
        self, load: TableLoad, ticket: LoadTicket, allowed: Callable[[], bool]
    ) -> TableLoad | None:
        with self._open() as there:
            if self._clock.monotonic() - self._listed > _NEWS_SECONDS:
                self._list(there)
            items, moved = self._next(there, load)
            if not items and not moved.left(self._names()):
                return replace(moved, until=self._parts.latest())
        if not items:
            return moved
        if not allowed():
            return None
        failpoints.reached("tables.before_job")
        started = self._clock.monotonic()
        try:
            report = self._parts.job.load_ranges(items, ticket)
        except (ConfigurationError, DataError) as error:
            return self._wait_for_the_stream(error)
        failpoints.reached("tables.after_job")
        self._waiting = None
        self._size.loaded(report.rows, self._clock.monotonic() - started)
        self._progress.loaded_ranges(report)
        return replace(moved, rows=load.rows + report.rows)

    def _next(
        self, there: SourceTables, load: TableLoad
    ) -> tuple[list[tuple[WorkItem, Sequence[Route]]], TableLoad]:
        """What a step reads next, and how far the load has come then."""
        items: list[tuple[WorkItem, Sequence[Route]]] = []
        by_name = {mapped.text: mapped for mapped in self._mapped}
        budget, at_once = self._size.rows, self._parts.job.parallelism
        for name in load.left(self._names()):
            if budget <= 0 or len(items) >= _MOST_ITEMS:
                break
            mapped = by_name[name]
            (reader,) = there.readers([mapped.name])
            after = load.after if load.table == name else None
            if reader is None:  # it was dropped, so there is nothing to load
                load = load.at(name, None, 0)
                continue
            size = max(_LEAST_ROWS, budget // at_once)
            count = max(1, min(budget // size, _MOST_ITEMS - len(items)))
            for found in reader.ranges(after, size, count):
                if found.rows or found.last is not None or after is None:
                    items.append((_item(reader, found.part, mapped), mapped.routes))
                budget -= found.rows
                after = found.last
                load = load.at(name, after, 0)
            if after is not None:
                break  # the next table is not begun before this one is done
        return items, load

    def _wait_for_the_stream(self, error: ConfigurationError | DataError) -> None:
        """A table may have changed, and the target is to follow when the stream comes there."""
        if self._waiting is not None:
            raise error
        until = self._parts.latest()
        self._waiting = until, error
        _log.info(
            "loading tables waits for the stream",
            extra=self._fields(position=str(until), error=error.message),
        )

    def _names(self) -> list[str]:
        return [mapped.text for mapped in self._mapped]

    def _list(self, there: SourceTables | None = None) -> None:
        if there is None:
            with self._open() as opened:
                self._list(opened)
            return
        router = self._parts.router
        self._mapped = []
        for name in there.names():
            # Rows of nested tables are seen in the documents of the table they belong to.
            routes = tuple(r for r in router.route(*name) if not r.nests(*name))
            if routes:
                self._mapped.append(_Mapped(name, routes))
        self._listed = self._clock.monotonic()

    def _open(self) -> AbstractContextManager[SourceTables]:
        opened = self._parts.tables()
        if opened is None:
            raise FatalError(
                "a subscription has no tables to load",
                hint="Name the database it is of: `database:` in the source of the channel file",
                pipeline=self._leadership.key,
            )
        return opened

    def _fields(self, **values: object) -> dict[str, object]:
        return fields(**self._leadership.fields, **values)


def _item(reader: SourceReader, part: object, mapped: _Mapped) -> WorkItem:
    return WorkItem((), 0, (), b"", mapped.name, table_rows=RangeRows(reader, part))


def _is_past(reached: Checkpoint, place: Position) -> bool:
    """Whether everything before a place is applied."""
    return reached.resume.order >= place.order
