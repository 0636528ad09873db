"""What a person names for a load: source tables that the pipeline maps, keys in a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from setl.counting import count
from setl.errors import ConfigurationError
from setl.model.change import Row

if TYPE_CHECKING:
    from arbiter.values import PipelineId
    from setl.channel.file import ChannelFile


def refuse_unmapped(
    file: Callable[[], ChannelFile], ident: PipelineId, tables: Sequence[str]
) -> None:
    """Refuse tables that a pipeline does not map, as far as its file can be read here.

    Args:
        file: gives the channel file; raises ConfigurationError if it cannot be read.
        ident: the pipeline.
        tables: names of source tables as a person wrote them.

    Raises:
        click.UsageError: some of them are not mapped.
    """
    from setl.channel.routes.routing import Router  # noqa: PLC0415

    with suppress(ConfigurationError):
        router = Router(file().pipeline(ident.pipeline))
        unknown = [
            name for name in tables if not any(router.route(*each) for each in _meanings(name))
        ]
        if unknown:
            raise click.UsageError(
                f"{ident} does not map {', '.join(unknown)}; name source tables as schema.table"
            )


def _meanings(name: str) -> list[tuple[str, str]]:
    """The schemas and tables that a name may mean: either may have dots in it."""
    parts = name.split(".")
    return [(".".join(parts[:at]), ".".join(parts[at:])) for at in range(1, len(parts))]


def read_keys(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """The names of the key's columns, and the keys of a file.

    The first line names the columns; each further line is a key. Values are text as the server
    writes them; bytes are written as ``0x`` and hexadecimal digits.

    Raises:
        ConfigurationError: it cannot be read, or has a line with another number of values.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            names = tuple(name.strip() for name in next(lines, [""]))
            if not all(names):
                raise ConfigurationError(f"the first line of {path} does not name columns")
            keys: list[Row] = []
            for line in filter(None, lines):
                if len(line) != len(names):
                    raise ConfigurationError(
                        f"line {lines.line_num} of {path} has {count(len(line), 'value')} for"
                        f" {count(len(names), 'column')}"
                    )
                keys.append(tuple(line))
            return names, keys
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path} cannot be read as CSV: {error}") from error
