"""Past leaderships as a timeline: who led when, and when nobody did. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arbiter.values import HistoryItem
from setl.operate import units

WIDTH = 1000
_MOST = 40
_LEAST_WIDTH = 4


@dataclass(frozen=True, slots=True)
class Term:
    """One leadership on the line.

    Attributes:
        nid: who led.
        x: where it begins, of `WIDTH`.
        width: how long it lasts, likewise; at least as much as can be seen.
        number: of the node, which decides its colour and pattern.
        title: everything about it.
    """

    nid: str
    x: int
    width: int
    number: int
    title: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The last leaderships.

    Attributes:
        terms: oldest first.
        begins: when the line begins, as text.
        ends: when it ends, as text.
        nodes: who led, with the number of each.
    """

    terms: tuple[Term, ...] = ()
    begins: str = ""
    ends: str = ""
    nodes: tuple[tuple[str, int], ...] = ()


def timeline_of(items: Sequence[HistoryItem], now: float, *, leads: bool) -> Timeline:
    """The last leaderships up to now.

    Args:
        items: all that is known, oldest first.
        now: seconds since 1970 UTC.
        leads: whether a node leads now; the last leadership ends now or is still on.
    """
    shown = items[-_MOST:]
    if not shown:
        return Timeline()
    begins = shown[0].at
    span = max(now - begins, 1.0)
    numbers = {nid: n for n, nid in enumerate(dict.fromkeys(item.nid for item in shown))}
    terms: list[Term] = []
    for number, item in enumerate(shown):
        following = shown[number + 1] if number + 1 < len(shown) else None
        ends = now if following is None else following.at - _surely_without(following)
        x = round(WIDTH * (item.at - begins) / span)
        width = max(_LEAST_WIDTH, round(WIDTH * max(0.0, ends - item.at) / span))
        width = min(width, WIDTH - min(x, WIDTH - _LEAST_WIDTH))
        terms.append(
            Term(
                item.nid,
                min(x, WIDTH - _LEAST_WIDTH),
                width,
                numbers[item.nid] % 6,
                _title(item, ends, over=following is not None or not leads),
            )
        )
    return Timeline(
        tuple(terms),
        units.moment(begins),
        units.moment(now),
        tuple((nid, n % 6) for nid, n in numbers.items()),
    )


def _surely_without(item: HistoryItem) -> float:
    """Seconds before a leadership in which nobody led for certain."""
    return (item.outage if item.outage_least is None else item.outage_least) or 0.0


def _title(item: HistoryItem, ends: float, *, over: bool) -> str:
    parts = [f"{item.nid}, epoch {item.epoch}: {item.reason}; since {units.moment(item.at)}"]
    parts.append(f"for {units.duration(max(0.0, ends - item.at))}" + ("" if over else " so far"))
    if item.outage is not None:
        parts.append(f"outage {units.between(item.outage_least, item.outage)}")
    if item.redelivered is not None:
        parts.append(f"{units.count(item.redelivered, 'row', 'rows')} redelivered")
    return ", ".join(parts)
