"""The command that checks a channel file and the servers it names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from arbiter.errors import ArbiterError, Unreachable
from setl.cli.access.cluster import cluster_options, joined
from setl.cli.access.spark_options import make_importable, py_files_option
from setl.cli.terminal.output import FORMATS, console, print_rows, to_stderr
from setl.cli.terminal.progress import busy_with_servers
from setl.counting import count
from setl.errors import ConfigurationError
from setl.operate.alike_findings import alike, named, statements_of, where_of
from setl.systems.finding import Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from setl.channel.file import ChannelFile
    from setl.channel.routes.routing import Route
    from setl.model.schema import Column, RowSchema

_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command()
@_FILE
@click.option("--offline", is_flag=True, help="Check the file only; talk to no server.")
@click.option(
    "--probe", is_flag=True, help="Write to retl.retl_mark and see that subscriptions deliver it."
)
@click.option("--strict", is_flag=True, help="Exit status 1 for warnings, too, unless accepted.")
@click.option("-v", "--verbose", is_flag=True, help="Show what is right, and all statements.")
@click.option("--server", metavar="HOST:PORT", help="With -o sql: the script for this server only.")
@py_files_option
@cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Choice((*FORMATS, "sql")),
    default="table",
    show_default=True,
    help="How to print the result; sql: one script for each server.",
)
def check(  # noqa: PLR0917 - click passes options by name
    file: Path,
    offline: bool,
    probe: bool,
    strict: bool,
    verbose: bool,
    server: str | None,
    py_files: tuple[Path, ...],
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Check a channel FILE and the servers it names.

    Prints what is missing and how to fix it; `-o sql` prints the statements for each server. If
    ZooKeeper is given, by option or in the environment, it also tells whether changes would go
    round between channels. Risks that the file accepts (`accept`) count as right.

    Exit status 0: right; 1: something is to be fixed; 2: the file is wrong; 3: all is right that
    could be seen, and a server does not answer.
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
        Finding("warning", problem.message, problem.path, code="literal-password")
        for problem in definition_warnings(definition)
    ]
    others: Sequence[Mapping[str, Any]] = ()
    if not offline and _is_given("zookeeper"):
        found, channel, others = _beside_the_cluster(definition, channel, zookeeper, root)
        findings += found
    if not offline:
        from setl.operate.check import check_channel  # noqa: PLC0415
        from setl.operate.cluster_check import shared_target_findings  # noqa: PLC0415

        with busy_with_servers(channel.channel):
            findings += check_channel(
                channel,
                expressions=route_check(),
                probe=probe,
                beside=shared_target_findings(definition, others),
            )
    if output == "sql":
        _print_sql(findings, channel.channel, server)
    elif output != "table":
        print_rows([finding_row(finding) for finding in findings], (), output)
    else:
        _print_findings(findings, offline=offline, verbose=verbose, name=channel.channel)
    status = exit_status(findings, strict=strict)
    if status:
        sys.exit(status)


def _is_given(name: str) -> bool:
    """Whether an option of the running command comes from the user or the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def _print_sql(findings: Sequence[Finding], name: str, server: str | None) -> None:
    scripts = sql_scripts(findings, name)
    for location, script in scripts.items():
        if server in (None, location):
            print_exactly(script)
    if server is not None and server not in scripts:
        there = ", ".join(scripts) or "none"
        to_stderr(f"nothing to run on {server}; servers with something to run: {there}")
    # An empty script would pass for a server that lacks nothing.
    for line in not_in_scripts(findings, server):
        to_stderr(line)


def print_exactly(script: str) -> None:
    """Print SQL; a letter written in another way would be another name."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        script.encode(encoding)
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"the script has letters that {encoding} does not have",
            hint="Run the command with PYTHONIOENCODING=utf-8",
        ) from error
    print(script)


def _beside_the_cluster(
    definition: Mapping[str, Any], channel: ChannelFile, zookeeper: str, root: str
) -> tuple[list[Finding], ChannelFile, Sequence[Mapping[str, Any]]]:
    """`ring_findings`, the channel `without_used_starts`, and the other channels.

    A cluster that does not answer is one more thing to fix.
    """
    from setl.operate.cluster_check import other_channels, ring_findings  # noqa: PLC0415
    from setl.operate.positions.stored import without_used_starts  # noqa: PLC0415

    try:
        with joined(zookeeper, root) as arbiter:
            others = other_channels(arbiter, channel.channel)
            found = ring_findings(definition, others)
            return found, without_used_starts(channel, arbiter), others
    except ArbiterError as error:
        hint = (
            "Check `--zookeeper` and SETL_ZOOKEEPER, and that most of its servers run; whether"
            " changes would go round with other channels was not looked at"
        )
        finding = Finding(
            "error",
            f"no answer: {error}",
            f"ZooKeeper {zookeeper}",
            (hint,),
            unseen=isinstance(error, Unreachable),
            code="zookeeper-unreachable",
        )
        return [finding], channel, ()


def route_check() -> Callable[[Route, RowSchema], Sequence[Column]]:
    """How expressions and processors are checked: by Spark itself, and by an import."""
    from setl.transform.processing import processor_named  # noqa: PLC0415

    spark_starts = cache(_checking_session)

    def check_route(route: Route, schema: RowSchema) -> Sequence[Column]:
        if route.processor:
            processor_named(route.processor)
        if route.expressions or route.where:
            # Imported late: Spark takes seconds that a channel without expressions need not wait.
            from setl.transform.evaluation import analyse  # noqa: PLC0415

            return analyse(spark_starts(), route, schema).outputs
        return ()

    return check_route


def _checking_session() -> SparkSession:
    from setl.run.spark.session import SparkSettings, start_session  # noqa: PLC0415

    return start_session(SparkSettings(master="local[1]", name="setl check"))


def _print_findings(
    findings: Sequence[Finding], *, offline: bool, verbose: bool, name: str
) -> None:
    out = console()
    print_findings(out, findings, verbose=verbose)
    counted = summary(findings)
    beside = f" Beside: {counted}." if counted else ""
    errors = sum(finding.level == "error" for finding in findings)
    if errors:
        out.print(f"{errors} to fix before channel {name} can start.{beside}")
    else:
        scope = "the file is right" if offline else "the file and the servers are right"
        out.print(f"channel {name}: {scope}.{beside}")


_STYLES = {"error": "red", "warning": "yellow", "accepted": "dim", "ok": "green"}
_INDENT = " " * 9


def exit_status(findings: Sequence[Finding], *, strict: bool) -> int:
    """The exit status of a check, for scripts that go on only if all is right.

    0: nothing is to be fixed. 1: something is; with `strict`, a warning that is not accepted as
    well. 3: all that is wrong is that servers do not answer.
    """
    wrong = [f for f in findings if f.level == "error" or (strict and f.level == "warning")]
    if not wrong:
        return 0
    return 3 if all(finding.unseen for finding in wrong) else 1


def finding_row(finding: Finding) -> dict[str, Any]:
    """A finding under stable names, for programs."""
    return {
        "level": finding.level,
        "id": finding.id,
        "what": finding.what,
        "where": finding.where,
        "server": finding.server,
        "hint": list(finding.hint),
        **({"mapping": finding.mapping} if finding.mapping is not None else {}),
    }


def print_findings(out: Console, findings: Sequence[Finding], *, verbose: bool) -> None:
    """Print errors and warnings with their hints; `verbose`: all of it, statements too."""
    from rich.text import Text  # noqa: PLC0415

    shown = [f for f in findings if verbose or f.level not in ("ok", "accepted")]
    for group in [[f] for f in shown] if verbose else alike(shown):
        finding, many = group[0], len(group) > 1
        head = Text(f"{finding.level:<8}", _STYLES[finding.level])
        text = _one_line(f"{where_of(group)}: ") + finding.what
        if finding.id:
            times = f"{finding.code}, {count(len(group), 'time')}"
            out.print(head, times if many else _one_line(finding.id))
            out.print(f"{_INDENT}{text}")
        else:
            out.print(head, text)
        if many:
            out.print(f"{_INDENT}{_one_line(named(group))} (`setl check -v` shows each)")
        for line in _hints(group, verbose=verbose):
            out.print(f"{_INDENT}{line}")


def _one_line(text: str) -> str:
    """Text with names in it, which may have line breaks."""
    return text.replace("\n", "\\n")


def _hints(group: Sequence[Finding], *, verbose: bool) -> Iterator[str]:
    finding = group[0]
    if verbose:
        yield from (f"→ {line}" for line in finding.hint)
        yield from finding.mapping_lines
        return
    yield from (f"→ {line}" for line in finding.hint if not line.endswith(";"))
    number = statements_of(group)
    if number:
        there = f" for {finding.server}" if finding.server else ""
        them = "it" if number == 1 else "them"
        yield f"→ {count(number, 'statement')}{there}; `-o sql` prints {them}"
    if finding.level == "error" and finding.acceptable:
        yield f"→ Or live with it: `accept: [{finding.id}]` in the pipeline"


def summary(findings: Sequence[Finding]) -> str:
    """How many there are that need no fixing, by level; "" for none."""
    counts = [
        (sum(f.level == "warning" for f in findings), "{} to know"),
        (sum(f.level == "accepted" for f in findings), "{} accepted"),
        (sum(f.level == "ok" for f in findings), "{} right"),
    ]
    text = ", ".join(words.format(number) for number, words in counts if number)
    hidden = any(f.level in ("ok", "accepted") for f in findings)
    return text + (" (-v shows all)" if hidden else "")


def sql_scripts(findings: Sequence[Finding], name: str) -> dict[str, str]:
    """For each server with something to fix, the statements that fix it, as a script to run.

    What is no statement stands as a comment before them. A statement that several findings ask
    for stands once.

    Args:
        findings: what was found.
        name: of the channel.
    """
    scripts: dict[str, list[str]] = {}
    given: set[tuple[str, str]] = set()
    for finding in findings:
        if finding.level not in ("error", "warning") or not finding.statements:
            continue
        new = [
            line
            for line in finding.hint
            if not line.endswith(";") or (finding.server, line) not in given
        ]
        if not any(line.endswith(";") for line in new):
            continue
        given.update((finding.server, line) for line in new)
        script = scripts.setdefault(
            finding.server,
            [f"-- For the server {finding.server}: what `setl check` of channel {name} found."],
        )
        script += ["", *_comment(f"{finding.where}: {finding.what} [{finding.id}]")]
        for line in new:
            script += [line] if line.endswith(";") else _comment(line)
    return {server: "\n".join(lines) + "\n" for server, lines in scripts.items()}


def not_in_scripts(findings: Sequence[Finding], server: str | None) -> list[str]:
    """What is to be fixed and has no statement, a line each: `sql_scripts` leave it out.

    Args:
        findings: what was found.
        server: of this one, and what belongs to no server; None for all.
    """
    return [
        f"not in the script: {finding.where}: {finding.what}"
        for finding in findings
        if finding.level == "error" and not finding.statements and server in (None, finding.server)
    ]


def _comment(text: str) -> list[str]:
    # A line break in a name would end the comment, and what follows it would be run.
    return [f"-- {line}" for line in text.splitlines()]
