"""Options that the scripts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tests.bench.servers import FAMILIES

_ALL = "all"
_AT_LEAST_ONE = click.IntRange(min=1)


def names(option: str, choices: Sequence[str], default: str, text: str) -> Callable[[Any], Any]:
    """An option that takes names with commas between them, more than once, or ``all``."""

    def chosen(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
        wanted = [name.strip().lower() for value in values for name in value.split(",")]
        for name in wanted:
            if name not in (*choices, _ALL):
                raise click.BadParameter(f"{name!r} is none of {', '.join((*choices, _ALL))}")
        return tuple(name for name in choices if name in wanted or _ALL in wanted)

    return click.option(
        option, "_".join(option.strip("-").split("-")), multiple=True, default=(default,),
        show_default=True, callback=chosen, metavar="NAME[,NAME]", help=text,
    )  # fmt: skip


def target(default: str) -> Callable[[Any], Any]:
    return names("--target", ("mysql", "elasticsearch"), default, "Where to; or all.")


def rounds(default: int) -> Callable[[Any], Any]:
    text = "Runs of each, in turns; the best one counts."
    return click.option("--rounds", default=default, show_default=True, type=_AT_LEAST_ONE,
                        help=text)  # fmt: skip


def family(option: str, default: str = "mariadb") -> Callable[[Any], Any]:
    return click.option(
        option, type=click.Choice([*FAMILIES]), default=default, show_default=True,
        help="Family of the databases.",
    )  # fmt: skip


master = click.option(
    "--master", default="local[2]", show_default=True, help="Spark master of setl."
)
floors = click.option(
    "--floors", is_flag=True, help="Say which aims are met; exit code 1 if one is not."
)
json_file = click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write the figures here too."
)
keep = click.option("--keep", is_flag=True, help="Keep logs and data.")
