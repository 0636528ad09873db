"""A pipeline that is being checked; the target's checks use what the source's found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Route
from setl.model.schema import Column, RowSchema

if TYPE_CHECKING:
    # All changes come from MySQL or MariaDB, whichever way; so both endpoints may ask that server.
    from setl.systems.mysql.server import Server

ExpressionCheck = Callable[[Route, RowSchema], Sequence[Column] | None]
"""Looks at `where`, `columns` and `processor` of a route over a table; raises SetlError if they
are wrong, else gives the columns that expressions fill, if it knows them."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A mapped table of the source.

    Attributes:
        schema: its columns and keys.
        routes: where its rows go; only those that fit its columns.
        computed: for a route's index, the columns that its expressions fill.
    """

    schema: RowSchema
    routes: tuple[Route, ...]
    computed: Mapping[int, Sequence[Column]] = field(default_factory=dict[int, Sequence[Column]])

    def computed_by(self, route: Route) -> Sequence[Column]:
        """The columns that a route's expressions fill, as far as they are known."""
        return self.computed.get(route.index, ())


@dataclass(slots=True)
class PipelineCheck:
    """One check of one pipeline; the source is checked before the target.

    Attributes:
        pipeline: the pipeline.
        channel: the channel's name.
        two_way: whether its target is also a source of the channel.
        back: the pipeline of the other direction, None if there is none.
        comes_back: whether another pipeline of the channel writes what this one reads, and this
            one writes where marks are kept; so marks have to arrive.
        partitions: of the source's topic, those that pipelines of the channel read; empty if nobody
            has looked.
        expressions: checks expressions, None to leave them unchecked.
        probe: whether a row without meaning may be written at the source.
        knows_target: whether the target is the real one, and not yet to be filled in.
        open: closes at the end what was opened for it.
        origin: the server that the changes come from, once the source's checks have reached it.
        tables: its mapped tables that are as they must be, once they are known.
    """

    pipeline: Pipeline
    channel: str = ""
    two_way: bool = False
    back: Pipeline | None = None
    comes_back: bool = False
    partitions: frozenset[int] = frozenset()
    expressions: ExpressionCheck | None = None
    probe: bool = False
    knows_target: bool = True
    open: ExitStack = field(default_factory=ExitStack)
    origin: Server | None = None
    tables: Sequence[SourceTable] = ()

    @property
    def key(self) -> str:
        """``channel/pipeline``."""
        return f"{self.channel}/{self.pipeline.name}"
