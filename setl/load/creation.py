"""The port of what creates target tables before rows are loaded into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from setl.channel.routes.routing import Route
from setl.load.sink import LoadTicket
from setl.model.schema import Column, RowSchema


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table of the source, and the target that its rows need.

    Attributes:
        name: schema and table at the source.
        route: where its rows go.
        loaded: whether all of its rows are about to be loaded.
    """

    name: tuple[str, str]
    route: Route
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class Description:
    """What a table of the source gives.

    Attributes:
        schema: its columns and keys.
        computed: the columns that the route's expressions fill.
    """

    schema: RowSchema
    computed: Sequence[Column] = ()


class LoadEnd(NamedTuple):
    """A position of the source's stream.

    Attributes:
        generation: of the checkpoint; positions of different ones say nothing about each other.
        version: see `document_version`.
    """

    generation: int
    version: int


Describe = Callable[[NewTable], Description | None]
"""Describes a table of the source; None if it is gone. Raises SetlError."""


class TableCreation(Protocol):
    """Creates what a target lacks for rows of the source. Used by one thread at a time.

    Order: after the target is taken over, before the first row of these tables is loaded.
    Idempotence: what is there is left as it is, whoever made it. Crash: between two tables the
    next leader makes the others; what was made has all that rows need, and `complete` is still
    to come.
    """

    def create(
        self,
        ticket: LoadTicket,
        tables: Sequence[NewTable],
        describe: Describe,
        latest: Callable[[], LoadEnd] | None = None,
        will_reload: Callable[[tuple[str, str]], bool] = lambda _: False,
    ) -> Sequence[str]:
        """Create the targets that are not there; returns what was done, for people.

        One that was there before is only made again if its rows are about to come again.

        Args:
            ticket: on whose behalf.
            tables: what is mapped; several may go to one target, which the first one shapes.
            describe: only asked for tables whose target is missing.
            latest: asks for the end of the source's stream, where schema changes are replicated:
                those before it are in the table already. None where they are not.
            will_reload: whether all rows of a target are about to be loaded.

        Raises:
            TargetReplacedError: one that was there before is gone, with its rows.
            FencedError: a newer leadership exists; nothing more was begun.
            TransientError: it may work when tried again.
            ConfigurationError: the target cannot have such a table, or a privilege is missing.
        """
        ...

    def complete(self, ticket: LoadTicket) -> Sequence[str]:
        """Add what was left for the time after the load, such as indexes; returns as `create`.

        Called when all rows are loaded, and by each leader that begins later. Idempotent.

        Raises:
            FencedError: a newer leadership exists; nothing more was begun.
            TransientError: it may work when tried again.
            FatalError: the target refuses it.
        """
        ...
