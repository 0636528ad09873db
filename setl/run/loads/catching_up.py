"""Loads in which rows of other moments may go, where one of them conflicts with another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from setl.errors import CollisionError
from setl.load.sink import LoadTicket
from setl.model.loaded import Loaded


def load_catching_up(
    ticket: LoadTicket,
    load: Callable[[LoadTicket], Loaded],
    agreeing: Callable[[], frozenset[str]],
    *,
    at_once: bool,
) -> Loaded:
    """Run a load, and once more with `LoadTicket.catching_up` if a row conflicts with another.

    Args:
        ticket: its ticket.
        load: runs it; what it raises is raised.
        agreeing: the source tables of which rows may go, as ``schema.table``; is asked when it
            matters, since it may be another answer each time.
        at_once: whether no error would tell of a row that conflicts with it, because it is put
            aside.
    """
    if not at_once:
        try:
            return load(ticket)
        except CollisionError:
            tables = agreeing()
            if tables <= ticket.catching_up:
                raise
    else:
        tables = agreeing()
    return load(replace(ticket, catching_up=ticket.catching_up | tables))
