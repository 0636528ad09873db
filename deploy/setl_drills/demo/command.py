"""The command `setl demo`, which setl finds through the entry point group ``setl.commands``."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import click

from setl_drills.extras import require_embedded
from setl_drills.interruption import INTERRUPTED, interrupted_by_signals


@click.command("demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--keep", is_flag=True, help="Leave everything running at the end, and say what to look at."
)
@click.option("--mysql", is_flag=True, help="Use MySQL servers for the sites, not MariaDB servers.")
@click.option(
    "--via-kafka",
    is_flag=True,
    help="Relay both binlogs to Kafka, and read everything else from there.",
)
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="Rows that each site writes per second.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=10),
    default=60,
    show_default=True,
    help="How long both sites write.",
)
@click.option(
    "--json",
    "record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the figures to FILE.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what was printed to FILE, as SVG.",
)
def demo(
    *,
    keep: bool,
    mysql: bool,
    via_kafka: bool,
    rate: int,
    seconds: float,
    record: Path | None,
    picture: Path | None,
) -> None:
    """Show a cluster survive its leader, on own servers.

    Starts ZooKeeper, two database servers, Elasticsearch and two nodes on free ports of
    127.0.0.1. Both sites write; the active node is killed in the middle of a large transaction;
    in the end, all tables and documents are compared. Takes about two minutes. Ctrl-C and SIGTERM
    stop and remove everything. Exit status 0: all is equal, and nothing has echoed; 1: not so;
    2: something is missing for it.
    """
    require_embedded("demo clusters")
    # They import Spark and all of setl, which takes seconds that help need not wait.
    from rich.console import Console  # noqa: PLC0415

    from setl_drills.demo.scenario import Demonstration, Options  # noqa: PLC0415
    from setl_drills.waiting import DidNotHappenError  # noqa: PLC0415
    from setl_embedded import EmbeddedError  # noqa: PLC0415

    click.get_current_context().with_resource(interrupted_by_signals())
    console = Console(
        highlight=False, record=picture is not None, width=None if sys.stdout.isatty() else 120
    )
    options = Options(keep=keep, mysql=mysql, via_kafka=via_kafka, rate=rate, seconds=seconds)
    demonstration = Demonstration(console, options)
    try:
        result = demonstration.run()
    except (EmbeddedError, DidNotHappenError) as error:
        raise click.ClickException(f"{error}\nLogs: {demonstration.folder}") from error
    except KeyboardInterrupt:
        shutil.rmtree(demonstration.folder, ignore_errors=True)
        console.print("Stopped, and removed everything.")
        sys.exit(INTERRUPTED)
    if picture is not None:
        # Without the fonts that rich has the picture fetch from elsewhere.
        drawn = console.export_svg(title="setl demo")
        picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))
    if record is not None:
        record.write_text(json.dumps(result.to_json(), indent=2, default=str) + "\n")
    if not result.passed:
        click.echo(f"Error: not equal; logs are in {demonstration.folder}", err=True)
        sys.exit(1)
    shutil.rmtree(demonstration.folder, ignore_errors=True)
