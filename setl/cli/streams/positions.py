"""Commands about the position of a pipeline: show it, and move it."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Sequence
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.requests import Refused
from arbiter.values import Facts, PipelineId
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    cluster_options,
    joined,
    output_option,
    pipeline_config,
    pipeline_named,
    pipelines_named,
)
from setl.cli.terminal.completion import complete_name, complete_pipeline
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.output import console, print_rows, print_value, raise_all, to_stderr
from setl.errors import ConfigurationError
from setl.model.checkpoint import Checkpoint
from setl.node.cluster.view import moment
from setl.node.stored import pipelines_of
from setl.operate.positions.position import PositionReport, look_at_position, position_text
from setl.operate.positions.reposition import checkpoint_words, move, objection_to_move, plan_move
from setl.operate.questions import before_move
from setl.systems.registry import system_of

_COLUMNS = (
    "pipeline", "stored_in", "found_in", "resume", "applied", "generation", "rows", "stored_at",
    "latest", "behind", "unit",
)  # fmt: skip
_EXIT_UNREACHABLE = 3


@click.group()
def position() -> None:
    """Show positions, or move a stopped pipeline (show, reset)."""


@position.command()
@click.argument(
    "pipelines", nargs=-1, shell_complete=complete_name, metavar="[CHANNEL|PIPELINE...]"
)
@cluster_options
@output_option
def show(pipelines: tuple[str, ...], zookeeper: str, root: str, output: str) -> None:
    """Show stored checkpoints beside their sources.

    The channels' secrets must be in this environment, as on a node. Exit status 3: a server did
    not answer; 2: a channel cannot be read here. The answers of the others are shown.
    """
    rows: list[dict[str, Any]] = []
    lacking: list[ConfigurationError] = []
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
        for ident in _wanted(facts, pipelines):
            try:
                rows.append(_position_row(arbiter, facts, ident))
            except ConfigurationError as error:
                lacking.append(error.at(pipeline=ident))
    if rows or not lacking:
        print_rows(rows, _COLUMNS, output)
    problems = [(row["pipeline"], problem) for row in rows for problem in row["problems"]]
    for name, problem in problems:
        to_stderr(f"{name}: {problem}")
    raise_all(lacking)
    if problems:
        sys.exit(_EXIT_UNREACHABLE)


def _wanted(facts: Facts, names: Sequence[str]) -> list[PipelineId]:
    if names:
        return list(dict.fromkeys(p for name in names for p in pipelines_named(facts, name)))
    return [p for _, channel in sorted(facts.channels.items()) for p in pipelines_of(channel)]


def _position_row(arbiter: Arbiter, facts: Facts, ident: PipelineId) -> dict[str, Any]:
    config = pipeline_config(facts.channels[ident.channel], ident)
    report = look_at_position(config, ident.channel, arbiter, own_nid("position-show"))
    return {"pipeline": str(ident), **_report_values(report)}


def _report_values(report: PositionReport) -> dict[str, Any]:
    stored = report.stored
    return {
        "stored_in": stored.stored_in,
        "found_in": stored.found_in,
        **_checkpoint_values(stored.checkpoint),
        "stored_at": moment(stored.at),
        "stored_by_epoch": stored.by,
        "fence_epoch": stored.fence,
        "earliest": position_text(report.earliest),
        "latest": position_text(report.latest),
        "behind": report.behind,
        "unit": report.unit,
        "problems": list(report.problems),
    }


def _checkpoint_values(checkpoint: Checkpoint | None) -> dict[str, Any]:
    if checkpoint is None:
        return dict.fromkeys(("resume", "applied", "committed_at", "generation", "rows"))
    return {
        "resume": position_text(checkpoint.resume),
        "applied": position_text(checkpoint.applied),
        "committed_at": moment(checkpoint.timestamp or None),
        "generation": checkpoint.generation,
        "rows": checkpoint.rows,
    }


@position.command()
@click.argument("pipeline", shell_complete=complete_pipeline)
@click.option(
    "--to", required=True, metavar="POSITION",
    help="latest, earliest, FILE:OFFSET, GTIDs, a Kafka offset, or a time: 2026-11-21T22:00.",
)  # fmt: skip
@yes_option
@cluster_options
@output_option
def reset(  # noqa: PLR0917 - click passes options by name
    pipeline: str, to: str, yes: bool, zookeeper: str, root: str, output: str
) -> None:
    """Move PIPELINE, whose channel is stopped, to another POSITION.

    The position must exist at the source, between two transactions. Forward: changes in between are
    never applied. Back: they are applied again, which changes nothing unless others wrote to the
    target. Run `setl verify` afterwards. The channel's secrets must be in this environment. A
    checkpoint in a file is written on this machine: run the command where the node is.
    """
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
        ident = pipeline_named(facts, pipeline)
        why = objection_to_move(facts, ident)
        if why:
            raise AnswerNo(f"reset of {ident} refused: {why}")
        config = pipeline_config(facts.channels[ident.channel], ident)
        nid = own_nid("position-reset")
        try:
            start_point = system_of(config.source).parse_start_point(to)
        except ConfigurationError as error:
            raise click.UsageError(str(error)) from None
        planned = plan_move(config, ident, start_point, arbiter=arbiter, nid=nid)
        if output == "table":
            console().print(f"{ident}: {planned.words}")
        if planned.damage:
            to_stderr(f"warning: {planned.damage}; it will be written over")
        confirm(before_move(ident, planned.found), yes=yes)
        try:
            with acting(arbiter, "position reset", str(ident)) as entry:
                moved = move(config, ident, planned.found, arbiter=arbiter, nid=nid)
                entry.outcome = f"moved to {checkpoint_words(moved.after)}"
        except Refused as error:
            raise AnswerNo(f"reset of {ident} refused: {error}") from None
    if output == "table":
        console().print(f"{ident}: moved to {checkpoint_words(moved.after)}")
        return
    print_value(
        {
            "pipeline": str(ident),
            "outcome": "done",
            "epoch": moved.epoch,
            "before": _checkpoint_values(moved.before),
            "after": _checkpoint_values(moved.after),
        },
        output,
    )


def own_nid(what: str) -> str:
    """As whom this command appears: a node's name that no node has."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:64]
    return f"{what}.{host}"
