"""Rows that cannot become documents, or whose documents the cluster refuses for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from setl.bisection import bisect_faults
from setl.errors import DataError, FatalError
from setl.load.deadletters.storing import Faults
from setl.model.change import TargetChanges
from setl.systems.search_index.errors import error_of
from setl.systems.search_index.load.actions import render_actions
from setl.systems.search_index.load.ids import NoSuchIdError
from setl.systems.search_index.load.moves import may_move, moves_together
from setl.systems.search_index.load.outcomes import reason_of

# These speak of the index: every document would meet them.
_ABOUT_THE_INDEX = frozenset(
    {"strict_dynamic_mapping_exception", "index_closed_exception", "cluster_block_exception"}
)
# These have the type of faults of single documents.
_INDEX_ERRORS = (
    "Limit of total fields",
    "no write index is defined for alias",
    "only write ops with an op_type of create are allowed in data streams",
)
_PIPELINES = (
    "Take the ingest pipeline off the index (`index.default_pipeline`, `index.final_pipeline`), or"
    " the failure store off its template"
)


class Origin(NamedTuple):
    """Which row an action is about.

    Attributes:
        change: the changes that it belongs to.
        number: its position among their upserts or deletes.
        delete: which of the two.
    """

    change: TargetChanges
    number: int
    delete: bool

    def refuse(self, faults: Faults, error: DataError) -> None:
        """The row is faulty."""
        (faults.delete if self.delete else faults.upsert)(self.change, self.number, error)


class Rendered(NamedTuple):
    """Bulk actions, and which row each of them is about.

    Attributes:
        actions: the actions.
        origins: of each, which row it is about.
        bound: numbers of actions that follow the one before them in the same request, see
            `setl.systems.search_index.load.moves`.
    """

    actions: list[bytes]
    origins: list[Origin]
    bound: frozenset[int] = frozenset()


def render(changes: Sequence[TargetChanges], faults: Faults) -> Rendered:
    """The actions for changes of several indexes, without the rows that have no form as one.

    Raises:
        DataError: there is such a row, and `faults` takes none.
    """
    rendered = Rendered([], [])
    for change in changes:
        halves = ((True, len(change.deletes)), (False, len(change.upserts)))
        origins = [Origin(change, i, delete) for delete, count in halves for i in range(count)]
        try:
            actions = render_actions(change)
        except DataError:
            _render_those_with_a_form(origins, faults, rendered)
        else:
            rendered.actions.extend(actions)
            rendered.origins.extend(origins)
    return _ordered(rendered) if may_move(changes) else rendered


def _ordered(rendered: Rendered) -> Rendered:
    """The same, with what must not be sent apart beside each other."""
    groups = moves_together(rendered.origins)
    if len(groups) == len(rendered.actions):
        return rendered
    order = [number for group in groups for number in group]
    bound: set[int] = set()
    at = 0
    for group in groups:
        bound.update(range(at + 1, at + len(group)))
        at += len(group)
    return Rendered(
        [rendered.actions[number] for number in order],
        [rendered.origins[number] for number in order],
        frozenset(bound),
    )


def _render_those_with_a_form(
    origins: Sequence[Origin], faults: Faults, rendered: Rendered
) -> None:
    def attempt(start: int, stop: int) -> bool:
        some = origins[start:stop]
        rendered.actions.extend(render_actions(_only(some)))
        rendered.origins.extend(some)
        return True

    def refuse(number: int, error: DataError) -> None:
        # A row that was never written, for its key, may be deleted at the source.
        if not (origins[number].delete and isinstance(error, NoSuchIdError)):
            origins[number].refuse(faults, error)

    bisect_faults(len(origins), attempt, refuse)


def _only(origins: Sequence[Origin]) -> TargetChanges:
    """The changes of some actions, deletes first as in `render_actions`."""
    change = origins[0].change
    deletes = [o.number for o in origins if o.delete]
    upserts = [o.number for o in origins if not o.delete]
    return replace(
        change,
        deletes=[change.deletes[i] for i in deletes],
        delete_versions=[change.delete_versions[i] for i in deletes],
        upserts=[change.upserts[i] for i in upserts],
        upsert_versions=[change.upsert_versions[i] for i in upserts],
    )


def put_aside(
    refused: Sequence[tuple[int, dict[str, Any]]], origins: Sequence[Origin], faults: Faults
) -> None:
    """Take the rows of refused actions out, given the items of the bulk answer.

    Raises:
        FatalError: an item says that the index is not as it should be, which is no row's fault.
    """
    for number, item in refused:
        (result,) = item.values()
        error = error_of(result)
        reason = reason_of(item)
        index = origins[number].change.target[1]
        about_all = any(text in reason for text in _INDEX_ERRORS)
        if error.get("type") in _ABOUT_THE_INDEX or about_all:
            raise FatalError(
                f"the cluster refuses documents because of their index: {reason}",
                hint="Compare the index's mapping and settings with the table. An alias has to"
                " stand for one index that is written to",
                index=index,
            )
        fault = DataError(
            f"the cluster refuses the document: {reason}",
            hint=_PIPELINES
            if result["status"] < 300
            else "Correct the row at the source, or the index's mapping",
            index=index,
        )
        origins[number].refuse(faults, fault)
