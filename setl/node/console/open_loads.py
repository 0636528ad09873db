"""Loads of tables that wait or are under way, whether or not anybody leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.values import PipelineId
from setl.errors import SetlError
from setl.model.load_request import LoadRequest
from setl.operate import units
from setl.run.table_loads.requests import StoredLoadRequests


@dataclass(frozen=True, slots=True)
class LoadRow:
    """A load as text, see `LoadRequest`."""

    what: str
    state: str
    by: str
    sent: str


def open_requests(arbiter: Arbiter, ident: PipelineId) -> Sequence[LoadRequest]:
    """The requests that can still be paused, resumed or cancelled, oldest first.

    What is cancelled and not answered yet is none of them: it must not begin again.

    Raises:
        SetlError: they cannot be read now.
    """
    unanswered = StoredLoadRequests(arbiter, ident).unanswered()
    return [request for request in unanswered if request.state.is_open]


def load_rows(arbiter: Arbiter, ident: PipelineId) -> Sequence[LoadRow]:
    """The same for a page. Raises ArbiterError if they cannot be read now."""
    try:
        found = open_requests(arbiter, ident)
    except SetlError as error:
        raise ArbiterError(str(error)) from error
    return [
        LoadRow(each.what, each.state.value, each.by, units.moment(each.sent)) for each in found
    ]
