"""What loading whole tables is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from setl.bulk.source_reader import SourceTables
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.routes.routing import Router
from setl.load.sink import LoadTicket
from setl.model.loaded import Loaded
from setl.model.position import Position
from setl.run.table_loads.items import LoadItem
from setl.run.table_loads.requests import LoadRequests
from setl.run.targets.joined import NamedRoute
from setl.systems.replicas import ReplicaBehind


class RangeLoading(Protocol):
    """What is asked of Transform and Load; `setl.run.loads.job.LoadJob` is it."""

    def load_ranges(self, items: Sequence[LoadItem], ticket: LoadTicket) -> Loaded:
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
        latest: asks for the end of the source's stream; None if the stream may end before what
            its tables show, so that only the server's clock tells when all of that has come.
        agreeing: see `TargetSystem.agreeing_tables`.
        router: which tables go where.
        holds_rows: see `TargetSystem.holds_rows`.
        requests: what operators ask for.
        wanted: names of the channel file's entries whose tables are to be loaded.
        limits: what a load is throttled by.
        back: the pipeline that writes into the source's tables, if any table has a conflict
            policy, as ``channel/pipeline``; "" without.
        unpassed: of how many rows the target still keeps something until `back` has read it.
        replica: asks which replica of the target is behind most; None if it has none.
        isolates: whether a row that another one conflicts with is put aside, so that no error
            tells of it.
    """

    job: RangeLoading
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    latest: Callable[[], Position] | None
    agreeing: Callable[[Sequence[NamedRoute]], frozenset[str]]
    router: Router
    holds_rows: Callable[[tuple[str, str]], bool]
    requests: LoadRequests
    wanted: tuple[str, ...] = ()
    limits: LoadLimits = field(default_factory=LoadLimits)
    back: str = ""
    unpassed: Callable[[], int] | None = None
    replica: Callable[[], ReplicaBehind | None] | None = None
    isolates: bool = False
