"""The command that writes a first configuration."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from setl import resources
from setl.cli.access.cluster import AnswerNo
from setl.cli.channels.checking import print_findings
from setl.cli.terminal.output import console
from setl.cli.terminal.progress import busy
from setl.counting import count

if TYPE_CHECKING:
    from setl.operate.first_channel import FirstChannel

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
@click.option(
    "--from",
    "source",
    metavar="URL",
    help="Look at this server and write a channel file with its tables:"
    " mysql://user@host:port/schema, where schema may be left out, or be several with commas.",
)
@click.option(
    "--to",
    "target",
    metavar="URL",
    help="With --from, the target: mysql://user@host:port, elasticsearch://host:port or"
    " opensearch://host:port (opensearch+https:// with TLS).",
)
@click.option("--systemd", is_flag=True, help="Also a unit for systemd, and a file for secrets.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.pass_context
def init(  # noqa: PLR0917 - click passes options by name
    context: click.Context,
    folder: Path,
    channel: str,
    source: str | None,
    target: str | None,
    systemd: bool,
    force: bool,
) -> None:
    """Write a commented channel file and node configuration.

    They go into FOLDER. The channel file is a whole one: change hosts, accounts and tables in it,
    and `setl check` shows what is missing. Beside it lies the schema by which editors complete and
    check it. Where there is a node's configuration already, it stays as it is.

    With `--from`, the channel file has the tables of a real server, and beside them what `setl
    check` finds. A password comes from the environment variable that the file then names, never
    from the URL.
    """
    chosen = context.get_parameter_source("channel") is not ParameterSource.DEFAULT
    if source is None and target is not None:
        raise click.UsageError("--to needs --from, the server that the tables are on")
    if source is not None and chosen:
        raise click.UsageError("--from writes a file of its own; leave --channel out")
    first = _look(source, target) if source is not None else None
    name = f"{first.name}.yaml" if first else _CHANNELS[channel]
    files = {
        name: first.text if first else _example(name),
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
    out, scope = console(), _scope(first)
    if first:
        print_findings(out, first.findings, verbose=False)
    service = f"{folder / _UNIT}: for systemd; it says how it is installed"
    for line in (
        f"{folder / name}: the channel{scope}; `setl check {folder / name}` shows what is missing",
        f"{folder / _NODE}: of a node; `setl node --config {folder / _NODE}` runs one",
        f"{folder / _SCHEMA}: for editors",
        *(f"{folder / file} was there, and stays as it is" for file in remaining),
        *((service,) if systemd else ()),
    ):
        out.print(line)


def _look(source: str, target: str | None) -> FirstChannel:
    # Imported late: a file without `--from` needs no server's library.
    from setl.channel.server_url import read_server_url  # noqa: PLC0415
    from setl.operate.first_channel import first_channel  # noqa: PLC0415

    of_source = read_server_url(source, "--from")
    of_target = read_server_url(target, "--to") if target is not None else None
    with busy(f"looking at {of_source.address}"):
        return first_channel(of_source, of_target, os.environ)


def _scope(first: FirstChannel | None) -> str:
    """What a file was made of, for the line that names it."""
    if first is None:
        return ""
    errors = sum(finding.level == "error" for finding in first.findings)
    fix = f", with {errors} to fix" if errors else ""
    variables = f", whose nodes need {' and '.join(first.variables)}" if first.variables else ""
    return f" with {count(first.tables, 'table')}{fix}{variables}"


def _example(name: str) -> str:
    return (
        resources.read_text(resources.EXAMPLES, name)
        .replace("deploy/examples/", "")
        .replace(f"../../schemas/{_SCHEMA}", _SCHEMA)
    )


def _of_systemd(name: str, folder: Path) -> str:
    """One of systemd's files, with the places of this installation in it."""
    text = resources.read_text(resources.SYSTEMD, name)
    command = Path(sys.executable).with_name("setl")
    if command.is_file():
        text = text.replace("/opt/setl/bin/setl", str(command))
    return text.replace("/etc/setl", str(folder.resolve()))
