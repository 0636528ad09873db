"""``python -m tests.bench.plots FOLDER``: setl's rate against batch size, and against cores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import click
from rich.console import Console

from tests.bench.cases import WORKLOADS, Case, run
from tests.bench.report import Result, write_json
from tests.bench.servers import scratch_folder
from tests.bench.setl_side import Setl

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


_BATCH_ROWS = (500, 2_000, 10_000, 40_000)
_TARGETS = ("mysql", "elasticsearch")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--workload", "names", multiple=True, default=("w1", "w2", "w3"), show_default=True,
    type=click.Choice(list(WORKLOADS)), help="A line each; may be repeated.",
)  # fmt: skip
@click.option("--target", type=click.Choice(_TARGETS), default="mysql", show_default=True)
@click.option("--rows", type=int, help="Row changes in each workload, instead of the usual number.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each point; the best counts.")
@click.option(
    "--batch-rows", "sizes", multiple=True, type=int, default=_BATCH_ROWS, show_default=True,
    help="A point each; may be repeated.",
)  # fmt: skip
@click.option(
    "--cores", type=int, default=os.cpu_count() or 1, show_default=True, help="local[1] to this."
)
def main(
    folder: Path,
    names: tuple[str, ...],
    target: str,
    rows: int | None,
    rounds: int,
    sizes: tuple[int, ...],
    cores: int,
) -> None:
    """Plot how fast setl applies changes."""
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    by_size = [
        Setl(name=f"{size:,}", master=f"local[{cores}]", settings=(("batch_rows", size),))
        for size in sizes
    ]
    by_cores = [Setl(name=f"local[{n}]", master=f"local[{n}]") for n in range(1, cores + 1)]
    results: list[Result] = []
    with scratch_folder("plots") as data:
        for name in names:
            case = Case(name, target, [*by_size, *by_cores], rows, rounds)
            results += run(case, data / name, console)
    for file, across, variants in (
        ("batch_rows", "batch_rows", by_size),
        ("cores", "Spark master", by_cores),
    ):
        lines = {name: _line(results, name, variants) for name in names}
        chart = line_chart(f"row changes to {target}", across, "changes/s", lines)
        (folder / f"{file}.svg").write_text(chart)
    write_json(folder / "plots.json", figures=[result.as_json() for result in results])
    problems = [f"{r.workload}, {r.competitor}: {p}" for r in results for p in r.problems]
    if problems:
        raise click.ClickException("; ".join(problems))


def _line(results: Sequence[Result], workload: str, variants: Sequence[Setl]) -> Line:
    rates = {r.competitor: r.rate for r in results if r.workload == workload and not r.wrong}
    return [(v.name, rate) for v in variants if (rate := rates.get(v.name)) is not None]


if __name__ == "__main__":
    main()
