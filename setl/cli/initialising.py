"""The command that writes a first configuration."""

from __future__ import annotations

from pathlib import Path

import click

from setl import resources
from setl.cli.cluster import AnswerNo
from setl.cli.output import console

_CHANNELS = {"two-sites": "shop.yaml", "search": "shop-search.yaml", "relay": "shop-relay.yaml"}
_SCHEMA = "channel.schema.json"


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--channel",
    type=click.Choice(tuple(_CHANNELS)),
    default="two-sites",
    show_default=True,
    help="Which kind of channel file.",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
def init(folder: Path, channel: str, force: bool) -> None:
    """Write a commented channel file and node configuration.

    They go into FOLDER. The channel file is a whole one: change hosts, accounts and tables in it,
    and `setl check` tells what is missing. Beside it lies the schema by which editors complete and
    check it.
    """
    name = _CHANNELS[channel]
    files = {
        name: resources.read_text(resources.EXAMPLES, name)
        .replace("deploy/examples/", "")
        .replace(f"../../schemas/{_SCHEMA}", _SCHEMA),
        "node.yaml": resources.read_text(resources.EXAMPLES, "node.yaml"),
        _SCHEMA: resources.read_text("schemas", _SCHEMA),
    }
    there = [str(folder / file) for file in files if (folder / file).exists()]
    if there and not force:
        raise AnswerNo(f"there is {', '.join(there)} already; --force writes over it")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    out = console()
    for line in (
        f"{folder / name}: the channel; `setl check {folder / name}` tells what is missing",
        f"{folder / 'node.yaml'}: of a node; `setl node --config {folder / 'node.yaml'}` runs one",
        f"{folder / _SCHEMA}: for editors",
    ):
        out.print(line, markup=False)
