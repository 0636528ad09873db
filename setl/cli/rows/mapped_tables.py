"""Refuses names of tables that no leader would load, before anybody waits for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from setl.errors import ConfigurationError

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
