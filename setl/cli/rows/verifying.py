"""The command that compares source and target."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arbiter.values import PipelineId
from setl.cli.access.cluster import (
    channel_named,
    cluster_options,
    joined,
    output_option,
    timeout_option,
)
from setl.cli.access.spark_options import spark_options
from setl.cli.inspection.standing_verification import show_standing
from setl.cli.terminal.completion import complete_channel
from setl.cli.terminal.confirmation import yes_option
from setl.cli.terminal.output import console, print_rows, raise_all
from setl.cli.terminal.progress import progress_line
from setl.counting import count
from setl.operate.differing_rows import differing_rows

if TYPE_CHECKING:
    # Spark comes with these.
    from setl.bulk.verdict import TableVerdict
    from setl.channel.file import ChannelFile, Pipeline
    from setl.cli.rows.comparing import Compared
    from setl.errors import SetlError
    from setl.run.spark.session import SparkSettings

_COLUMNS = (
    "pipeline", "target", "source_rows", "target_rows", "merged", "missing", "extra", "different",
    "undecided",
)  # fmt: skip


@click.command()
@click.argument(
    "channels", shell_complete=complete_channel, nargs=-1, required=True, metavar="CHANNEL..."
)
@click.option("--pipeline", multiple=True, help="Only this pipeline; may be repeated.")
@click.option("--table", multiple=True, help="Only this source table, schema.table; repeatable.")
@click.option(
    "--sample",
    default=20,
    show_default=True,
    help="How many differing keys to name for each table.",
)
@click.option(
    "--repair", is_flag=True,
    help="Send rows that differ again, as the source has them; the pipeline has to run.",
)  # fmt: skip
@click.option(
    "--last", is_flag=True,
    help="Compare nothing; show what standing verification (`verify` in the channel file) found.",
)  # fmt: skip
@yes_option
@spark_options
@timeout_option
@cluster_options
@output_option
def verify(  # noqa: PLR0917 - click passes options by name
    channels: tuple[str, ...],
    pipeline: tuple[str, ...],
    table: tuple[str, ...],
    sample: int,
    repair: bool,
    last: bool,
    yes: bool,
    spark: Callable[[str], SparkSettings],
    timeout: float,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Compare source and target, and name what differs.

    CHANNEL is a name or a channel file. Rows that are on their way do not count: of a key that
    differs, the target is read again when the pipeline has brought it what the source had, within
    --timeout. Exit status 0: no key differs; 1: something differs, or is undecided, since its row
    changed at every look. A table that cannot be compared is an error, and the others are compared.

    With --last, nothing is compared and no server is asked: what standing verification found last
    is read from ZooKeeper. Exit status 0: in a whole pass no key differed; 1: something differs, a
    table was left out, or there is no whole pass yet.

    With --repair, you are asked first; then the leaders send what differs again, rows that only the
    target has are deleted there, and what was repaired is compared once more. In a two-way channel
    without a conflict policy, --pipeline has to say which site is right.
    """
    if last:
        if repair or table:
            raise click.UsageError("--last compares nothing; leave --repair and --table out")
        show_standing(channels, pipeline, partial(joined, zookeeper, root), output)
        return
    files = _channel_files(channels, zookeeper, root)
    chosen = [
        (file.channel, p)
        for file in files
        for p in file.pipelines
        if not pipeline or p.name in pipeline
    ]
    if not chosen:
        known = ", ".join(f"{f.channel}/{p.name}" for f in files for p in f.pipelines)
        raise click.BadParameter(f"no such pipeline; there are {known}", param_hint="--pipeline")
    overwritten = _overwritten_by_repairs(files, chosen, table) if repair else {}
    # Imported late: Spark comes with it, and a wrong name is known before.
    from setl.cli.rows.comparing import FURTHER_KEYS, comparer  # noqa: PLC0415
    from setl.cli.rows.repairing import repaired  # noqa: PLC0415

    with progress_line() as shown:
        task = shown.add_task("", total=None)

        def show(words: str) -> None:
            shown.update(task, description=words)

        connect = partial(joined, zookeeper, root)
        further = FURTHER_KEYS if repair else 0
        session = spark("setl verify")
        with comparer(session, sample, show, connect, timeout, further=further) as compares:
            found: list[Compared] = []
            failures: list[tuple[str, str, SetlError]] = []
            for channel, config in chosen:

                def print_verdict(
                    verdict: TableVerdict, name: str = f"{channel}/{config.name}"
                ) -> None:
                    # At once, and beside the result: the whole may take hours, or be interrupted.
                    shown.console.print(_sentence(name, verdict), soft_wrap=True)

                def fail(
                    target: str, error: SetlError, name: str = f"{channel}/{config.name}"
                ) -> None:
                    failures.append((name, target, error))

                found += compares.compare(
                    channel, config, tables=table, finished=print_verdict, failed=fail
                )
            if repair:
                shown.stop()
                found = repaired(found, compares, connect, yes=yes, overwritten=overwritten)
    rows = [_row(str(one.ident), one.verdict) for one in found]
    rows += [
        {"pipeline": name, "target": target, "error": str(error)}
        for name, target, error in failures
    ]
    print_rows(rows, _COLUMNS, output)
    if output == "table":
        _name_differences(rows)
        conclusion = _conclusion([one.verdict for one in found])
        if conclusion and not failures:
            console().print(conclusion)
    raise_all([error for _, _, error in failures])
    if any(not one.verdict.agrees for one in found):
        sys.exit(1)


def _channel_files(names: tuple[str, ...], zookeeper: str, root: str) -> list[ChannelFile]:
    """Each name as a channel file if there is such a file, else as a channel of the cluster."""
    stored = [name for name in names if not Path(name).is_file()]
    found: dict[str, Mapping[str, Any]] = {}
    if stored:
        with joined(zookeeper, root) as arbiter:
            found = {name: channel_named(arbiter, name).definition for name in stored}
    # Imported late: a channel that nobody knows is refused before.
    from setl.channel.reading import (  # noqa: PLC0415
        read_channel_definition,
        resolve_and_parse,
    )

    definitions = [found.get(name) or read_channel_definition(Path(name)) for name in names]
    return [resolve_and_parse(definition, os.environ) for definition in definitions]


def _overwritten_by_repairs(
    files: Sequence[ChannelFile], chosen: Sequence[tuple[str, Pipeline]], tables: Sequence[str]
) -> dict[PipelineId, list[str]]:
    """What of each pipeline is such that a repair may replace or delete news of the target.

    Raises:
        click.UsageError: a channel would be repaired in both directions, and no policy decides.
            The first direction would delete what only the other site has.
    """
    from setl.channel.relations.directions import way_back  # noqa: PLC0415
    from setl.channel.relations.overwriting import overwritten_by_loads  # noqa: PLC0415

    found: dict[PipelineId, list[str]] = {}
    for file in files:
        of_file = [config for channel, config in chosen if channel == file.channel]
        for config in of_file:
            overwritten = overwritten_by_loads(file, config, tables)
            if not overwritten:
                continue
            back = way_back(file, config)
            if back in of_file:
                raise click.UsageError(
                    f"channel {file.channel} goes both ways without a conflict policy for"
                    f" {', '.join(overwritten)}: a repair makes the target as the source is, so"
                    " rows that only one site has would be deleted there. Say which direction is"
                    " right:"
                    f" --pipeline {' or --pipeline '.join(one.name for one in of_file)}"
                )
            found[PipelineId(file.channel, config.name)] = overwritten
    return found


def _conclusion(verdicts: Sequence[TableVerdict]) -> str:
    """What all of them say together, for the end; "" if something differs."""
    if not all(verdict.agrees for verdict in verdicts):
        return ""
    merged = sum(verdict.merged for verdict in verdicts)
    if not merged:
        return "all equal."
    rows = count(merged, "row of the source shares", "rows of the source share")
    return f"no key differs; {rows} a row of the target with another one."


def _sentence(pipeline: str, verdict: TableVerdict) -> str:
    """How a target compares, in one line."""
    what = count(verdict.differences, "differs", "differ")
    if verdict.agrees:
        merged = count(verdict.merged, "row")
        what = f"no key differs, {merged} merged" if verdict.merged else "equal"
    elif not verdict.differences:
        what = "no key differs" if verdict.undecided else "the numbers of rows differ"
    if verdict.undecided:
        what += f", {verdict.undecided:,} undecided"
    if verdict.caught_up:
        what += f", {count(verdict.caught_up, 'key')} caught up meanwhile"
    rows = count(verdict.source_rows, "row")
    return f"{pipeline}: {verdict.target}: {what}, {rows} at the source"


def _row(pipeline: str, verdict: TableVerdict) -> dict[str, Any]:
    # What is for the repair may be long, and `asdict` copies it.
    values = asdict(
        replace(verdict, differing=replace(verdict.differing, keys=(), undecided=()), further=())
    )
    del values["differing"], values["further"]
    values["sample_keys"] = [
        {**sample, "what": sample["what"].value} for sample in values["sample_keys"]
    ]
    return {"pipeline": pipeline, "differences": verdict.differences, **values}


def _name_differences(rows: list[dict[str, Any]]) -> None:
    out = console()
    for row in rows:
        differing = list(differing_rows(row))
        if differing:
            out.print(f"\n{row['pipeline']}: {row['target']}")
        for one in differing:
            out.print(f"  {one.words}")
            for column in one.columns:
                out.print(f"    {column}")
