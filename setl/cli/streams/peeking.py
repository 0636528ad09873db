"""The command that prints the records of a source."""

from __future__ import annotations

from pathlib import Path

import click

from arbiter.values import Channel, PipelineId
from setl.cli.access.cluster import cluster_options, joined, pipeline_named


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option("--target", is_flag=True, help="Look at the topic that the relay SOURCE writes.")
@click.option(
    "--from", "start", metavar="POSITION",
    help="latest, earliest, FILE:OFFSET, GTIDs, a Kafka offset, or a time: 2026-11-21T22:00.",
)  # fmt: skip
@click.option("--table", "tables", multiple=True, metavar="TABLE",
    help="Only these: schema.table or table, with wildcards as in a channel file; repeatable.",
)  # fmt: skip
@click.option("-n", "count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-f", "--follow", is_flag=True, help="Wait for more at the end of what is there.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop after this time."
)
@click.option(
    "--all", "everything", is_flag=True,
    help="Also show begin, commit, heartbeats, and the rows of setl's own tables (retl.*).",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True,
    help="How to print them; json: one object a line.",
)  # fmt: skip
@cluster_options
def peek(  # noqa: PLR0917 - click passes options by name
    source: str,
    target: bool,
    start: str | None,
    tables: tuple[str, ...],
    count: int | None,
    follow: bool,
    timeout: float | None,
    everything: bool,
    output: str,
    zookeeper: str,
    root: str,
) -> None:
    """Print the records of SOURCE, and change nothing anywhere.

    SOURCE is a PIPELINE; a channel FILE, or FILE:PIPELINE; or an address:
    kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION], mysql://USER@HOST[:PORT], with the password in
    SETL_PEEK_PASSWORD. Rows and DDL are shown, each row with its columns before and after.

    Without --from: the last 10 records of a topic (or -n), or what a binlog brings from now on.
    With --from POSITION: the records up to now, and with --follow new ones too. With --from latest:
    new records until interrupted, -n or --timeout.
    """
    # What the cluster does not know is refused before channel files and records are imported.
    stored = None if "://" in source or _names_file(source) else _stored(source, zookeeper, root)
    from setl.cli.streams.peeked import Asked, print_records  # noqa: PLC0415

    asked = Asked(
        source,
        target=target,
        start=start,
        tables=tables,
        count=count,
        follow=follow,
        timeout=timeout,
        everything=everything,
        output=output,
    )
    print_records(asked, stored)


def _names_file(source: str) -> bool:
    return Path(source).is_file() or Path(source.rpartition(":")[0] or "/").is_file()


def _stored(name: str, zookeeper: str, root: str) -> tuple[Channel, PipelineId]:
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
        ident = pipeline_named(facts, name)
        return facts.channels[ident.channel], ident
