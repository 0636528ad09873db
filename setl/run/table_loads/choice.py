"""Which load of tables comes next, and what becomes of one that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from setl.counting import count
from setl.model.load_request import LoadRequest, RequestState
from setl.model.table_load import TableLoad

if TYPE_CHECKING:
    from setl.channel.file import Pipeline
    from setl.channel.routes.routing import Router

START = "start"
"""The reason of requests that a leader makes automatically, as the channel file wants."""


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """What is about to be loaded as a whole, of rows that the target lacks.

    Attributes:
        load: the load that goes on, or the last one.
        missing: entries of the channel file that no load has taken up yet.
        router: which tables go where.
    """

    load: TableLoad | None
    missing: tuple[str, ...]
    router: Router

    @property
    def is_planned(self) -> bool:
        """Whether anything is about to be loaded."""
        return bool(self.missing) or (self.load is not None and self.load.reads)

    def takes(self, name: tuple[str, str]) -> bool:
        """Whether all rows of a source table, by schema and name, are about to be loaded."""
        entries = self._entries(name)
        if entries & set(self.missing):
            return True
        load = self.load
        if load is None or not load.reads or load.narrowed:
            return False
        if load.entries:
            return bool(entries & set(load.entries))
        return not load.tables or ".".join(name) in load.tables

    def is_to_read(self, name: tuple[str, str]) -> bool:
        """Whether no row of a source table has been read yet, and all are about to be."""
        if not self.takes(name):
            return False
        load, text = self.load, ".".join(name)
        if load is None or self._entries(name) & set(self.missing):
            return True
        mine = not load.only or text in load.only
        return text in load.again or (mine and load.table < text)

    def _entries(self, name: tuple[str, str]) -> set[str]:
        return {self.router.entries[route.index].name for route in self.router.route(*name)}


def entries_to_load(pipeline: Pipeline) -> tuple[str, ...]:
    """Entries of the channel file whose rows are to be loaded, see `Router.entries_to_load`."""
    # Imported late: routing comes with it, and only what has a channel file before it needs that.
    from setl.channel.routes.routing import Router  # noqa: PLC0415

    return Router(pipeline).entries_to_load(every=pipeline.source.loads_tables)


def missing_entries(load: TableLoad | None, wanted: Sequence[str]) -> tuple[str, ...]:
    """Entries of the channel file that are to be loaded and that no load has taken up yet.

    Args:
        load: the last load, None if there was none.
        wanted: entries that are to be loaded.
    """
    taken = () if load is None else load.taken
    return () if taken is None else tuple(name for name in wanted if name not in taken)


def is_loading(load: TableLoad | None, wanted: Sequence[str]) -> bool:
    """Whether the target still lacks rows that a load has to bring.

    Args:
        load: the last load, None if there was none.
        wanted: entries of the channel file that are to be loaded.
    """
    under_way = load is not None and not load.ended
    return under_way or bool(missing_entries(load, wanted))


def remembered(load: TableLoad, wanted: Sequence[str]) -> TableLoad:
    """A load that has forgotten entries which the channel file does not ask for any more.

    So an entry that is taken out and comes back later is loaded again.
    """
    taken = tuple(wanted) if load.taken is None else load.taken
    return replace(load, taken=tuple(name for name in taken if name in wanted))


def next_request(requests: Sequence[LoadRequest]) -> LoadRequest | None:
    """The request that is carried out next, None if none waits.

    What the channel file asks for comes first: until then the target lacks whole tables. One that
    was cancelled before it began is begun all the same, and ends at once.
    """
    states = (RequestState.WAITING, RequestState.CANCELLED)
    waiting = [r for r in requests if r.state in states and not r.ended]
    return min(waiting, key=lambda request: request.reason != START, default=None)


def carries_out(load: TableLoad, request: LoadRequest) -> bool:
    """Whether a load is that of a request.

    The checkpoint outlives requests: a ZooKeeper that was set up again, and a channel that was
    removed and applied again, give ids a second time.
    """
    return load.id == request.id and load.sent == request.sent


def is_cancelled(load: TableLoad, request: LoadRequest | None) -> bool:
    """Whether a load that is under way is to end, since its request is taken back or gone."""
    if request is None:
        return load.narrowed  # nobody knows any more which rows it wants
    return request.state is RequestState.CANCELLED


def begun(request: LoadRequest, before: TableLoad | None, now: float) -> TableLoad:
    """A request as a load of which nothing is done yet.

    Args:
        request: the request.
        before: the last load.
        now: seconds since 1970.
    """
    taken = () if before is None else before.taken
    return TableLoad(
        request.id,
        tables=request.tables,
        entries=request.entries,
        narrowed=request.narrowed,
        begun=now,
        sent=request.sent,
        taken=None if taken is None else tuple(dict.fromkeys((*taken, *request.entries))),
    )


def outcome(load: TableLoad) -> tuple[RequestState, str]:
    """What is answered to the request of a load that has ended."""
    if load.error:
        return RequestState.FAILED, load.error
    if load.cancelled:
        return (
            RequestState.CANCELLED,
            f"cancelled after {count(load.rows, 'row')}; what is there stays",
        )
    return RequestState.DONE, count(load.rows, "row is", "rows are") + " in the target"
