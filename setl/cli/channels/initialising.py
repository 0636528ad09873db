"""The command that writes a first configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from setl import resources
from setl.cli.access.cluster import AnswerNo
from setl.cli.terminal.output import console

_CHANNELS = {"two-sites": "shop.yaml", "search": "shop-search.yaml", "relay": "shop-relay.yaml"}
_NODE = "node.yaml"
_SCHEMA = "channel.schema.json"
_UNIT = "setl@.service"
_SECRETS = "secrets.env"
_OF_SYSTEMD = (_UNIT, "setl.sysusers.conf", _SECRETS)


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--channel",
    type=click.Choice(tuple(_CHANNELS)),
    default="two-sites",
    show_default=True,
    help="Which kind of channel file.",
)
@click.option("--systemd", is_flag=True, help="Also a unit for systemd, and a file for secrets.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def init(folder: Path, channel: str, systemd: bool, force: bool) -> None:
    """Write a commented channel file and node configuration.

    They go into FOLDER. The channel file is a whole one: change hosts, accounts and tables in it,
    and `setl check` shows what is missing. Beside it lies the schema by which editors complete and
    check it. Where there is a node's configuration already, it stays as it is.
    """
    name = _CHANNELS[channel]
    files = {
        name: resources.read_text(resources.EXAMPLES, name)
        .replace("deploy/examples/", "")
        .replace(f"../../schemas/{_SCHEMA}", _SCHEMA),
        _NODE: resources.read_text(resources.EXAMPLES, _NODE),
        _SCHEMA: resources.read_text("schemas", _SCHEMA),
    }
    if systemd:
        files.update({each: _of_systemd(each, folder) for each in _OF_SYSTEMD})
    remaining = [file for file in (_NODE, _SCHEMA) if (folder / file).exists() and not force]
    for file in remaining:  # they belong to all channels of the folder
        del files[file]
    there = [str(folder / file) for file in files if (folder / file).exists()]
    if there and not force:
        raise AnswerNo(f"there is {', '.join(there)} already; --force writes over it")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        if file == _SECRETS:
            (folder / file).touch(mode=0o600)
        (folder / file).write_text(text, encoding="utf-8")
    out = console()
    service = f"{folder / _UNIT}: for systemd; it says how it is installed"
    for line in (
        f"{folder / name}: the channel; `setl check {folder / name}` shows what is missing",
        f"{folder / _NODE}: of a node; `setl node --config {folder / _NODE}` runs one",
        f"{folder / _SCHEMA}: for editors",
        *(f"{folder / file} was there, and stays as it is" for file in remaining),
        *((service,) if systemd else ()),
    ):
        out.print(line)


def _of_systemd(name: str, folder: Path) -> str:
    """One of systemd's files, with the places of this installation in it."""
    text = resources.read_text(resources.SYSTEMD, name)
    command = Path(sys.executable).with_name("setl")
    if command.is_file():
        text = text.replace("/opt/setl/bin/setl", str(command))
    return text.replace("/etc/setl", str(folder.resolve()))
