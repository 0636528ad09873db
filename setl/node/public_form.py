"""What anybody may read of a node: the same values without the texts of errors. Pure.

What may be read is listed. A text that is not is shown in its public form if it has one (see
`setl.error_text`), else fixed words stand in its place, and values of a type that is not listed
are left out. So what is added to a status is shown to strangers only once it is listed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

from setl.error_text import public
from setl.model.standing import TableFinding, VerificationPass
from setl.model.table_rows import TableRows
from setl.node.alarm_status import AlarmStatus, FiringAlarm
from setl.node.ensemble import CertificateSeen, ServerSeen
from setl.node.host.resources import NodeDisk, NodeMemory, NodeSpark
from setl.node.status import NodeStatus, PipelineStatus
from setl.run.measured.figures import Figures, TableLoadFigures, VerificationFigures, VerifiedSoFar

_T = TypeVar("_T")

# Texts by type: names, places in streams, and words of setl's own. Numbers and words of
# enumerations need not be listed.
_TEXTS: Final[Mapping[type[Any], frozenset[str]]] = {
    NodeStatus: frozenset({"nid", "version", "contact", "serves", "lost_channels"}),
    PipelineStatus: frozenset({"channel", "pipeline", "leader"}),
    Figures: frozenset({"position", "stalled_stage", "stalled_reason"}),
    TableRows: frozenset(),
    TableLoadFigures: frozenset({"id", "state", "table"}),
    VerificationFigures: frozenset({"state", "table", "repairs_no_more"}),
    VerifiedSoFar: frozenset(),
    VerificationPass: frozenset(),
    TableFinding: frozenset({"table", "target"}),
    NodeMemory: frozenset(),
    NodeDisk: frozenset({"folder"}),
    NodeSpark: frozenset(),
    ServerSeen: frozenset({"address"}),
    CertificateSeen: frozenset({"kind", "of"}),
    AlarmStatus: frozenset({"receivers"}),
    # Alarms are made of public texts only, see `setl.node.alarm_sender`.
    FiringAlarm: frozenset({"rule", "channel", "pipeline", "subject", "severity", "text", "hint"}),
}


def public_status(status: NodeStatus) -> NodeStatus:
    """A node's status as anybody may read it."""
    return _public(status)


def _public(value: _T) -> _T:
    """The same value if all of it may be read."""
    listed, changed = _TEXTS[type(value)], dict[str, Any]()
    for each in fields(cast("Any", value)):
        if each.name in listed:
            continue
        before = getattr(value, each.name)
        after = _shown(before)
        if after is not before:
            changed[each.name] = after
    return replace(cast("Any", value), **changed) if changed else value


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return public(value) if value else value
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        shown = {name: _shown(each) for name, each in given.items() if _is_listed(each)}
        return given if _same(given.values(), shown.values()) else shown
    if isinstance(value, Sequence):
        items = cast("Sequence[Any]", value)
        remaining = tuple(_shown(each) for each in items if _is_listed(each))
        return items if _same(items, remaining) else remaining
    if is_dataclass(value):
        return _public(value) if _is_listed(value) else None
    return value


def _is_listed(value: Any) -> bool:
    return not is_dataclass(value) or type(value) in _TEXTS


def _same(before: Any, after: Any) -> bool:
    return len(before) == len(after) and all(
        one is other for one, other in zip(before, after, strict=True)
    )
