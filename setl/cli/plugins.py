"""Commands that other packages add to `setl`, through the entry point group ``setl.commands``.

Nothing is imported, and not even looked for, unless a command is asked for that setl itself does
not have, or the list of all commands. A package that cannot be loaded spoils its own command
only, with a message that names it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "setl.commands"


def entry_points(*, group: str, name: str = "") -> EntryPoints:
    """What packages declare in a group, under one name or all."""
    # Imported late: it takes a tenth of the time in which a command can refuse.
    from importlib import metadata  # noqa: PLC0415

    found = metadata.entry_points(group=group)
    return found.select(name=name) if name else found


class ExtensibleGroup(click.Group):
    """A group whose commands may also come from entry points; its own ones win."""

    def own_names(self) -> Iterable[str]:
        """The names of the commands that are no other package's."""
        return self.commands

    def own_command(self, name: str) -> click.Command | None:
        """One of these commands, None if there is no such one."""
        return self.commands.get(name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """See `click.Group.list_commands`."""
        return sorted({*self.own_names(), *(point.name for point in entry_points(group=GROUP))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """See `click.Group.get_command`."""
        own = self.own_command(cmd_name)
        if own is not None:
            return own
        for point in entry_points(group=GROUP, name=cmd_name):
            return _load(point)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group.resolve_command`; an unknown name gets a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0].lower(), self.list_commands(ctx), n=1)
            if not near or near[0] in error.message:
                raise
            advice = f"{error.message} Did you mean {near[0]!r}?"
            raise click.UsageError(advice, ctx) from None


def _load(point: EntryPoint) -> click.Command:
    try:
        found = point.load()
    except Exception as error:  # noqa: BLE001 - foreign code; whatever it is, it is shown
        return _broken(point, f"{type(error).__name__}: {error}")
    if not isinstance(found, click.Command):
        return _broken(point, f"{point.value} is not a click command")
    return found


def _broken(point: EntryPoint, reason: str) -> click.Command:
    """A command in its place that says why it cannot be used."""
    package = point.dist.name if point.dist is not None else point.value

    def refuse() -> None:
        raise click.ClickException(
            f"the command {point.name!r} of package {package} cannot be loaded: {reason}"
        )

    return click.Command(
        point.name,
        callback=refuse,
        help=f"Cannot be loaded: {reason}",
        context_settings={"ignore_unknown_options": True},
        params=[click.Argument(["arguments"], nargs=-1, expose_value=False)],
    )
