"""A line chart as SVG: few points, named lines, an axis from zero. No library is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 110, 40, 50
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
_STEPS = 4
_HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    ' font-family="sans-serif" font-size="12">'
)

Line = Sequence[tuple[str, float]]
"""Points of a line: a label of the horizontal axis, and a value."""


def line_chart(title: str, across: str, up: str, lines: Mapping[str, Line]) -> str:
    """The chart as the text of an SVG file.

    Args:
        title: above it.
        across: what the labels of the horizontal axis are; they stand at equal distances, in the
            order in which they first come.
        up: what the values are.
        lines: points by name.
    """
    labels = list(dict.fromkeys(label for line in lines.values() for label, _ in line))
    top = _round_up(max((value for line in lines.values() for _, value in line), default=1.0))
    parts = [
        _HEAD,
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_WIDTH / 2, 20, title, "middle"),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, across, "middle"),
        _text(_LEFT, _TOP - 6, up, "end"),
    ]
    for step in range(_STEPS + 1):
        value = top * step / _STEPS
        y = _y(value, top)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(_text(_LEFT - 6, y + 4, f"{value:,.0f}", "end"))
    parts += [
        _text(_x(place, len(labels)), _HEIGHT - _BOTTOM + 18, label, "middle")
        for place, label in enumerate(labels)
    ]
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [(_x(labels.index(label), len(labels)), _y(v, top)) for label, v in line]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        if places:
            x, y = places[-1]
            parts.append(_text(x + 8, y + 4, name, "start", colour))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(place: int, count: int) -> float:
    return _LEFT + (_WIDTH - _RIGHT - _LEFT) * (place + 0.5) / count


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * value / top


def _text(x: float, y: float, text: str, anchor: str, colour: str = "black") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _round_up(value: float) -> float:
    """The next number that a scale can end with: 1, 2, 4 or 8 times a power of ten."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    return next(power * n for n in (1, 2, 4, 8, 10) if power * n >= value)
