"""Commands about channel files: check and apply."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arbiter.arbiter import ArbiterError
from arbiter.values import ChannelState
from setl.cli.cluster import AnswerNo, acting, cluster_options, joined, output_option
from setl.cli.output import console, print_rows
from setl.cli.ring_check import option_is_given
from setl.cli.user_code import make_importable, py_files_option
from setl.systems.finding import Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from setl.channel.file import ChannelFile
    from setl.channel.routing import Route
    from setl.model.schema import Column, RowSchema

_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command()
@_FILE
@click.option("--offline", is_flag=True, help="Check the file only; talk to no server.")
@click.option(
    "--probe", is_flag=True, help="Write to retl.retl_mark and see that subscriptions deliver it."
)
@py_files_option
@cluster_options
@output_option
def check(  # noqa: PLR0917 - click passes options by name
    file: Path,
    offline: bool,
    probe: bool,
    py_files: tuple[Path, ...],
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Check a channel FILE and the servers it names.

    Prints what is missing and how to fix it. If ZooKeeper is given, by option or in the
    environment, it also tells whether changes would go round between channels.
    """
    # Imported late, as whatever a help or a refusal has no use for.
    from setl.channel.partitions import read_expanded  # noqa: PLC0415
    from setl.channel.reading import (  # noqa: PLC0415
        definition_warnings,
        read_channel_definition,
    )

    make_importable(py_files)
    definition, channel = read_expanded(read_channel_definition(file), os.environ)
    findings = [
        Finding("warning", problem.message, problem.path)
        for problem in definition_warnings(definition)
    ]
    if not offline and option_is_given("zookeeper"):
        found, channel = _beside_the_cluster(definition, channel, zookeeper, root)
        findings += found
    if not offline:
        from setl.operate.check import check_channel  # noqa: PLC0415

        findings += check_channel(channel, expressions=route_check(), probe=probe)
    if output != "table":
        rows = [
            {
                "level": f.level,
                "what": f.what,
                "where": f.where,
                "fix": list(f.fix),
                **({"mapping": f.mapping} if f.mapping is not None else {}),
            }
            for f in findings
        ]
        print_rows(rows, (), output)
    else:
        _print_findings(findings, offline=offline, name=channel.channel)
    if any(f.level == "error" for f in findings):
        sys.exit(1)


def _beside_the_cluster(
    definition: Mapping[str, Any], channel: ChannelFile, zookeeper: str, root: str
) -> tuple[list[Finding], ChannelFile]:
    """`ring_findings`, and the channel `without_used_starts`.

    A cluster that does not answer is one more thing to fix.
    """
    from setl.operate.positions.used_starts import without_used_starts  # noqa: PLC0415
    from setl.operate.ring_check import ring_findings  # noqa: PLC0415

    try:
        with joined(zookeeper, root) as arbiter:
            return ring_findings(arbiter, definition), without_used_starts(channel, arbiter)
    except ArbiterError as error:
        fix = (
            "Check `--zookeeper` and SETL_ZOOKEEPER; whether changes would go round with other"
            " channels was not looked at"
        )
        finding = Finding("error", f"no answer: {error}", f"ZooKeeper {zookeeper}", (fix,))
        return [finding], channel


def route_check() -> Callable[[Route, RowSchema], Sequence[Column]]:
    """How expressions and processors are checked: by Spark itself, and by an import."""
    from setl.transform.processing import processor_named  # noqa: PLC0415

    spark_starts = cache(_checking_session)

    def check_route(route: Route, schema: RowSchema) -> Sequence[Column]:
        if route.processor:
            processor_named(route.processor)
        if route.expressions or route.where:
            # Imported late: Spark takes seconds that a channel without expressions need not wait.
            from setl.transform.expressions import analyse  # noqa: PLC0415

            return analyse(spark_starts(), route, schema).outputs
        return ()

    return check_route


def _checking_session() -> SparkSession:
    from setl.run.spark_session import SparkSettings, start_session  # noqa: PLC0415

    return start_session(SparkSettings(master="local[1]", name="setl check"))


def _print_findings(findings: list[Finding], *, offline: bool, name: str) -> None:
    from rich.markup import escape  # noqa: PLC0415

    out = console()
    signs = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}
    for finding in findings:
        # What was found may hold brackets, which would be taken for markup.
        out.print(f"{signs[finding.level]} {escape(f'{finding.where}: {finding.what}')}")
        for line in (*finding.fix, *finding.mapping_lines):
            out.print(f"          {line}", markup=False)
    errors = sum(f.level == "error" for f in findings)
    if errors:
        out.print(f"\n{errors} to fix before channel {name} can start.")
    else:
        scope = "the file is right" if offline else "the file and the servers are right"
        out.print(f"channel {name}: {scope}.")


@click.command()
@_FILE
@click.option(
    "--allow-ring", is_flag=True, help="Store it even if changes would go round between channels."
)
@cluster_options
def apply(file: Path, allow_ring: bool, zookeeper: str, root: str) -> None:
    """Store a channel FILE in the cluster.

    A new channel is stopped. A known one keeps its state. References such as ${PASSWORD} are
    stored as they are; each node resolves them from its own environment.
    """
    from setl.channel.partitions import read_expanded  # noqa: PLC0415
    from setl.channel.reading import (  # noqa: PLC0415
        definition_warnings,
        read_channel_definition,
    )
    from setl.operate.ring_check import ring_findings  # noqa: PLC0415

    definition, channel = read_expanded(read_channel_definition(file), os.environ)
    for problem in definition_warnings(definition):
        click.echo(f"warning: {problem}", err=True)
    with joined(zookeeper, root) as arbiter:
        for finding in ring_findings(arbiter, definition):
            if finding.level == "error" and not allow_ring:
                raise AnswerNo(f"{finding.what}. {finding.fix[0]}, or say --allow-ring")
            click.echo(f"warning: {finding.what}", err=True)
        with acting(arbiter, "apply", channel.channel):
            stored = arbiter.put_channel(channel.channel, definition)
    console().print(
        f"channel {stored.name} stored, state {stored.state.value}"
        + ("" if stored.state is ChannelState.START else f"; `setl start {stored.name}` starts it")
    )
