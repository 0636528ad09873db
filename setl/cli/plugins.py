"""Commands that other packages add to `setl`, through the entry point group ``setl.commands``.

Nothing is imported, and not even looked for, unless a command is asked for that setl itself does
not have, or the list of all commands. A package that cannot be loaded spoils its own command
only, with a message that names it.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import click

GROUP = "setl.commands"


class ExtensibleGroup(click.Group):
    """A group whose commands may also come from entry points; its own ones win."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group.list_commands`."""
        own = super().list_commands(ctx)
        return sorted({*own, *(point.name for point in entry_points(group=GROUP))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group.get_command`."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for point in entry_points(group=GROUP, name=cmd_name):
            return _load(point)
        return None


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
