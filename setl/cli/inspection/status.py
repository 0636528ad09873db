"""The command that shows how pipelines do: in short, or every figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import click

from arbiter.values import PipelineId
from setl.alarms.alarm_state import lasts_for
from setl.cli.access.cluster import cluster_options, joined, output_option, pipelines_named
from setl.cli.inspection.standing_verification import standing_sentence, verification_figures
from setl.cli.inspection.views import cutovers_of, damaged_lines, pipeline_row, standby_words
from setl.cli.terminal.completion import complete_name
from setl.cli.terminal.output import console, print_rows
from setl.node.alarm_status import failing_in, firing_in
from setl.node.cluster.pipeline_texts import load_sentence
from setl.node.cluster.view import (
    ClusterView,
    PipelineView,
    handover_sentence,
    look_at,
    moment,
)
from setl.operate.units import count, duration, figure, rate, size
from setl.run.measured.figures import RunState

_MOMENTS = ("first_applied_at", "begun", "ended")
_ENDED = ("done", "cancelled", "failed")


@click.command()
@click.argument("name", shell_complete=complete_name, required=False, metavar="[CHANNEL|PIPELINE]")
@click.option("-v", "--verbose", is_flag=True, help="Show every figure.")
@cluster_options
@output_option
def status(name: str | None, verbose: bool, zookeeper: str, root: str, output: str) -> None:
    """Show how pipelines do: what is wrong, lag, rates.

    Without a name: all of them. With -v: all figures, among them retries, buffers and their limits,
    time by stage, memory of the leader's node, and the last decision of each node. JSON and YAML
    hold all figures; there, sizes are in bytes and times in seconds.
    """
    with joined(zookeeper, root) as arbiter:
        named = pipelines_named(arbiter.facts(), name) if name else None
        view = look_at(arbiter)
        if named is not None:
            view = replace(view, pipelines=[view.pipeline(ident) for ident in named])
        cutovers = cutovers_of(arbiter, view)
    if output != "table":
        print_rows([_row(view, each, cutovers) for each in view.pipelines], (), output)
        return
    out = console()
    if not view.facts.channels:
        out.print("There is no channel yet: `setl apply FILE` stores one.")
    for pipeline in view.pipelines:
        if verbose:
            row = _row(view, pipeline, cutovers)
            print_rows(_all_lines(row), ("figure", "value"), output, title=str(row["pipeline"]))
            continue
        out.print(f"{pipeline.ident}  {_standing(pipeline)}")
        if pipeline.ident in cutovers:
            out.print(f"  {'cut-over':<10} {cutovers[pipeline.ident]}")
        for label, text in (*_alarm_lines(view, pipeline), *_short_lines(pipeline)):
            out.print(f"  {label:<10} {text}")
    for receiver, why in failing_in(view).items():
        out.print(f"no alarms reach {receiver}: {why}")
    for line in damaged_lines(view):
        out.print(line)


def _row(
    view: ClusterView, pipeline: PipelineView, cutovers: Mapping[PipelineId, str]
) -> dict[str, Any]:
    return {
        **pipeline_row(pipeline),
        "cutover": cutovers.get(pipeline.ident, ""),
        "memory": dict(pipeline.memory),
        "decisions": dict(pipeline.decisions),
        "alarms": _alarms_of(view, pipeline),
        "damaged": dict(view.facts.damaged),
    }


def _alarms_of(view: ClusterView, pipeline: PipelineView) -> list[dict[str, Any]]:
    """The alarms that are raised of a pipeline."""
    of = (pipeline.ident.channel, pipeline.ident.pipeline)
    return [dict(a) for a in firing_in(view) if (a["channel"], a["pipeline"]) == of]


def _alarm_lines(view: ClusterView, pipeline: PipelineView) -> Iterator[tuple[str, str]]:
    for each in _alarms_of(view, pipeline):
        quiet = ", silenced" if each["silenced"] else ""
        lasts = lasts_for(each["since"], each.get("calm") or 0.0, view.at)
        yield "alarm", f"{each['rule']} ({each['severity']}{quiet}) for {lasts}: {each['text']}"


def _standing(pipeline: PipelineView) -> str:
    if not pipeline.leader:
        return pipeline.state
    return f"{pipeline.state} on {pipeline.leader}, {pipeline.leadership}"


def _short_lines(pipeline: PipelineView) -> Iterator[tuple[str, str]]:
    """What a person wants to know first: what is wrong, then how far it is."""
    figures = pipeline.figures
    yield from _wrong_lines(pipeline)
    if figures:
        yield from _progress_lines(figures)
    load = figures.get("table_load")
    if load and load["state"] not in _ENDED:
        yield "loads", load_sentence(load)
    if verification := figures.get("verification"):
        yield "verified", standing_sentence(verification)
    yield from _problem_lines(figures)
    for standby in pipeline.standbys:
        yield "standby", f"{standby.node}, {standby_words(standby).removeprefix('standby, ')}"
    if pipeline.leader and not pipeline.standbys:
        yield "standby", f"none: no node would take over from {pipeline.leader}"
    for signal in pipeline.handovers:
        yield "handover", handover_sentence(pipeline.ident, signal)
    if pipeline.memory:
        parts = [f"{name.replace('_', ' ')} {size(held)}" for name, held in pipeline.memory.items()]
        yield "memory", f"of {pipeline.leader}: {', '.join(parts)}"


def _wrong_lines(pipeline: PipelineView) -> Iterator[tuple[str, str]]:
    figures = pipeline.figures
    for name in ("error", "stalled"):
        if figures.get(name):
            yield name, str(figures[name])
    if figures.get("no_heartbeats"):
        yield "heartbeats", f"none can be written: {figures['no_heartbeats']}"
    if pipeline.state == RunState.FAILED.value:
        yield "then", f"once it is fixed, run `setl start {pipeline.ident.channel}`"
    if pipeline.waits_for:
        yield "waiting for", pipeline.waits_for
    if pipeline.missing:
        yield "missing", pipeline.missing


def _progress_lines(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    lag = figures.get("lag")
    parts = ["not known" if lag is None else duration(lag)]
    if figures.get("lag_p99") is not None:
        parts.append(f"99 % within {duration(figures['lag_p99'])}")
    if figures.get("pending"):
        parts.append(f"{count(figures['pending'], 'batch', 'batches')} in flight")
    if figures.get("behind"):
        parts.append(f"{figures['behind']:,} behind the end of the source")
    yield "lag", ", ".join(parts)
    applied = [rate(figures.get("rows_per_second") or 0.0, "rows")]
    if figures.get("rows_total"):
        applied.append(f"{count(figures['rows_total'], 'row', 'rows')} since the first start")
    yield "applied", ", ".join(applied)
    yield "position", str(figures.get("position") or "-")


def _problem_lines(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if number := figures.get("dead_letters"):
        yield "put aside", f"{count(number, 'faulty row', 'faulty rows')}, see `setl deadletter`"
    if number := figures.get("retries"):
        yield "retries", f"{number:,} in this leadership"
    if number := figures.get("echoes_replicated"):
        yield "echoes", f"{number:,} came back and were not dropped"
    if ignored := figures.get("last_ddl_ignored"):
        yield "ignored", f"a schema change: {ignored}"


def _all_lines(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every figure with its unit, a line each."""
    seconds: Mapping[str, Any] = row.get("seconds") or {}
    load: Mapping[str, Any] = row.get("table_load") or {}
    nested = ("memory", "decisions", "damaged", "table_load", "seconds", "statements_by_schema")
    lines = [
        _line(name, name, value)
        for name, value in row.items()
        if name not in nested and not isinstance(value, dict | list) and name != "pipeline"
    ]
    lines += [_line(f"time in {stage}", "seconds", spent) for stage, spent in seconds.items()]
    passed: Mapping[str, Any] = row.get("statements_by_schema") or {}
    lines += [_line(f"statements skipped: {name}", "", n["number"]) for name, n in passed.items()]
    lines += [_line(f"table load: {name}", name, value) for name, value in load.items()]
    lines += [
        _line(f"memory of {row['leader']}: {name}", "bytes", held)
        for name, held in row["memory"].items()
    ]
    lines += verification_figures(row.get("verification"))
    return lines + [_line(f"{n} decided", "", said) for n, said in row["decisions"].items()]


def _line(label: str, name: str, value: Any) -> dict[str, Any]:
    if name in _MOMENTS and value is not None:
        value = moment(value) if value else None
    return {"figure": label.replace("_", " "), "value": figure(name, value)}
