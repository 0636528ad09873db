"""A channel as a picture: its sites as boxes, its pipelines as arrows between them. Pure.

Each pipeline has a lane of its own. A site is as tall as the lanes that lie beside each other and
belong to it, so that no box ever covers another and no arrow crosses a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setl.node.console.pages.states import Look


@dataclass(frozen=True, slots=True)
class Direction:
    """One pipeline, as it is to be drawn.

    Attributes:
        name: its short name.
        source: its source, as text.
        target: its target, as text.
        look: how its state is shown.
        above: what is written over its arrow.
        below: what is written under it.
        link: where it leads to.
    """

    name: str
    source: str
    target: str
    look: Look
    above: str
    below: str
    link: str


@dataclass(frozen=True, slots=True)
class Measures:
    """How large things are, in units of the picture.

    Attributes:
        box: width of a site.
        gap: width between two sites.
        lane: height of a pipeline.
        letters: that fit into a site's width.
    """

    box: int
    gap: int
    lane: int
    letters: int


WIDE = Measures(box=190, gap=300, lane=62, letters=25)
NARROW = Measures(box=92, gap=164, lane=70, letters=13)


@dataclass(frozen=True, slots=True)
class Box:
    """A site.

    Attributes:
        x: left edge; so with y, width and height.
        lines: its name, in as many lines as it takes.
        title: its whole name.
    """

    x: int
    y: int
    width: int
    height: int
    lines: tuple[str, ...]
    title: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A pipeline.

    Attributes:
        start: where its line begins.
        end: where its line ends, at the arrow's point.
        middle: where its words are centred.
        y: its height.
        head: the corners of the arrow's head.
        direction: what is drawn.
    """

    start: int
    end: int
    middle: int
    y: int
    head: str
    direction: Direction


@dataclass(frozen=True, slots=True)
class Picture:
    """A channel. All lengths in units of the picture.

    Attributes:
        width: of the whole.
        height: of the whole.
        boxes: the sites.
        arrows: the pipelines.
        text: what it shows, in words.
    """

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    text: str


def drawn(directions: Sequence[Direction], measures: Measures = WIDE) -> Picture:
    """Draw pipelines, in an order in which those between the same sites are neighbours."""
    columns = _columns(directions)
    pairs = [frozenset((d.source, d.target)) for d in directions]
    lanes = sorted(directions, key=lambda d: pairs.index(frozenset((d.source, d.target))))
    step = measures.box + measures.gap
    most = max(columns.values(), default=0)
    return Picture(
        width=step * most + measures.box + 2,
        height=measures.lane * len(lanes) + 2,
        boxes=tuple(_boxes(lanes, columns, measures)),
        arrows=tuple(_arrow(d, n, columns, measures) for n, d in enumerate(lanes)),
        text="; ".join(
            f"{d.name} from {d.source} to {d.target}: {d.look.word}, {d.below}" for d in directions
        ),
    )


def _columns(directions: Sequence[Direction]) -> dict[str, int]:
    """Each site's column: a target stands right of its source, unless it has a position already."""
    columns: dict[str, int] = {}
    for direction in directions:
        if direction.source not in columns:
            known = columns.get(direction.target)
            columns[direction.source] = 0 if known is None or known > 0 else 1
        if direction.target not in columns:
            columns[direction.target] = columns[direction.source] + 1
    return columns


def _boxes(lanes: Sequence[Direction], columns: dict[str, int], measures: Measures) -> list[Box]:
    boxes: list[Box] = []
    for site, column in columns.items():
        mine = [n for n, d in enumerate(lanes) if site in (d.source, d.target)]
        for first, last in _runs(mine):
            boxes.append(
                Box(
                    x=1 + column * (measures.box + measures.gap),
                    y=1 + first * measures.lane + 5,
                    width=measures.box,
                    height=(last - first + 1) * measures.lane - 10,
                    lines=_wrapped(site, measures.letters),
                    title=site,
                )
            )
    return boxes


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours put together: 1, 2, 5 is 1 to 2 and 5 to 5."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _wrapped(name: str, letters: int) -> tuple[str, ...]:
    """A name in lines of so many letters; a long one loses its middle."""
    if len(name) <= letters:
        return (name,)
    host, colon, rest = name.rpartition(":")
    if colon and len(host) <= letters and "/" not in rest:
        return host, f":{rest}"
    if len(name) > 3 * letters:
        name = f"{name[: 2 * letters - 1]}…{name[-letters:]}"
    return tuple(name[i : i + letters] for i in range(0, len(name), letters))


def _arrow(direction: Direction, lane: int, columns: dict[str, int], measures: Measures) -> Arrow:
    step = measures.box + measures.gap
    source, target = columns[direction.source], columns[direction.target]
    y = 1 + lane * measures.lane + measures.lane // 2
    right = target >= source
    start = 1 + source * step + (measures.box if right else 0)
    end = 1 + target * step + (0 if target > source else measures.box)
    if source == target:  # two sites of one column: the arrow leaves and comes back on the right
        end = start + measures.gap // 2
    sign = 1 if end >= start else -1
    head = f"{end},{y} {end - 11 * sign},{y - 6} {end - 11 * sign},{y + 6}"
    return Arrow(start, end - 8 * sign, (start + end) // 2, y, head, direction)
