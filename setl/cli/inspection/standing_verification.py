"""Shows what standing verification found, without comparing anything."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.cli.access.cluster import channel_named
from setl.cli.terminal.output import console, print_rows
from setl.counting import count
from setl.model.standing import Verification
from setl.node.cluster.view import moment
from setl.node.stored import pipelines_of
from setl.operate.units import duration, figure
from setl.run.verification.course import coverage, differences, standing
from setl.run.verification.figures import REPAIRS_NO_MORE, age
from setl.run.verification.store import StoredVerification

_COLUMNS = (
    "pipeline", "differences", "tables", "last_pass", "ended", "age", "rows", "found", "repaired",
    "undecided", "tables_left_out", "coverage",
)  # fmt: skip


def show_standing(
    channels: Sequence[str],
    pipelines: Sequence[str],
    connect: Callable[[], AbstractContextManager[Arbiter]],
    output: str,
) -> None:
    """Print what is kept of the pipelines.

    Exits with 1 if something differs, if no whole pass has ended yet, or if the last one has left
    out tables.

    Args:
        channels: names of channels, or files that describe them; no secrets are needed.
        pipelines: names of pipelines to show; empty for all.
        connect: opens a session with the cluster.
        output: how to print.
    """
    with connect() as arbiter:
        stored = [channel_named(arbiter, _name_of(channel)) for channel in channels]
        idents = [ident for channel in stored for ident in pipelines_of(channel)]
        chosen = [ident for ident in idents if not pipelines or ident.pipeline in pipelines]
        if not chosen:
            known = ", ".join(map(str, idents))
            raise click.BadParameter(
                f"no such pipeline; there are {known}", param_hint="--pipeline"
            )
        saved = {ident: StoredVerification(arbiter, ident).load() for ident in chosen}
    rows = [standing_row(ident, state, time.time()) for ident, state in saved.items()]
    print_rows(rows, _COLUMNS, output)
    if output == "table":
        for ident, state in saved.items():
            for line in _lines(ident, state):
                console().print(line)
    if any(
        differences(state) or state.last is None or state.last.tables_left_out
        for state in saved.values()
    ):
        sys.exit(1)


def _name_of(channel: str) -> str:
    path = Path(channel)
    if not path.is_file():
        return channel
    from setl.channel.text.document import read_channel_definition  # noqa: PLC0415

    return str(read_channel_definition(path).get("channel"))


def standing_row(ident: PipelineId, state: Verification, now: float) -> dict[str, Any]:
    """What is kept of a pipeline, under stable names; of the last whole pass where it says so."""
    last = state.last
    return {
        "pipeline": str(ident),
        "differences": differences(state),
        "tables": len([found for found in standing(state) if found.differences])
        + state.unnamed_tables,
        "last_pass": last.number if last else None,
        "ended": moment(last.ended if last else None),
        "age": age(state, now) if last else None,
        "rows": last.rows if last else None,
        "found": last.found if last else None,
        "repaired": last.repaired if last else None,
        "undecided": last.undecided if last else None,
        "tables_left_out": last.tables_left_out if last else None,
        "coverage": round(coverage(state), 4),
        "under_way": state.now.to_json() if state.under_way else None,
        "repairs_no_more": REPAIRS_NO_MORE if state.repairs_no_more else "",
        "findings": [found.to_json() for found in standing(state)],
    }


def _lines(ident: PipelineId, state: Verification) -> list[str]:
    if not state.now.number:
        return [f"{ident}: no pass has begun; `verify` in the channel file has it compared"]
    lines = [
        f"{ident}: {found.table} {finding_sentence(found.to_json())}" for found in standing(state)
    ]
    if state.unnamed_tables:
        keys = count(state.unnamed_differences, "key")
        more = f"{keys} of {count(state.unnamed_tables, 'further table')}"
        lines.append(f"{ident}: {more}")
    if state.under_way:
        lines.append(
            f"{ident}: pass {state.now.number} is under way, {100 * coverage(state):.0f} % of it is"
            " done"
        )
    if state.repairs_no_more:
        lines.append(f"{ident}: {REPAIRS_NO_MORE}")
    return lines


_NAMED = 3  # rows of a table


def standing_sentence(verification: Mapping[str, Any]) -> str:
    """How standing verification does, in one line.

    Args:
        verification: `setl.run.measured.figures.VerificationFigures` as JSON.
    """
    number, tables = (
        verification["differences"],
        len(verification["findings"]) + verification["unnamed_tables"],
    )
    parts = ["nothing is known to differ"]
    if number:
        keys = count(number, "key")
        parts = [f"{keys} of {count(tables, 'table')} differ{'s' if number == 1 else ''}"]
    parts.append(f"pass {verification['number']} is at {100 * verification['coverage']:.0f} %")
    if verification["age"] is not None and verification["last"]:
        parts.append(f"the last whole one ended {duration(verification['age'])} ago")
    if verification["tables_left_out"]:
        parts.append(count(verification["tables_left_out"], "table") + " could not be compared")
    if verification["repairs_no_more"]:
        parts.append(verification["repairs_no_more"])
    if verification["error"]:
        parts.append(f"it fails: {verification['error']}")
    return ", ".join(parts)


def finding_sentence(found: Mapping[str, Any]) -> str:
    """What was found in a table.

    Args:
        found: `setl.model.standing.TableFinding` as JSON.
    """
    counts = [
        f"{found[kind]:,} {kind}"
        for kind in ("missing", "extra", "different", "undecided")
        if found[kind]
    ]
    parts = [f"in {found['target']}: {', '.join(counts) or 'nothing found'}"]
    if found["error"]:
        parts.append(f"could not be compared: {found['error']}")
    rows = [f"{row['key']} {row['what']}" for row in found["rows"][:_NAMED]]
    return "; ".join([*parts, *([f"such as {', '.join(rows)}"] if rows else [])])


def differences_of(verification: Mapping[str, Any] | None) -> int | None:
    """Keys that differ, None if nothing is verified."""
    return verification["differences"] if verification else None


def verification_figures(verification: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Every figure of standing verification, as rows of `setl status`; none if there is none."""
    if not verification:
        return []
    last: Mapping[str, Any] = verification["last"] or {}
    plain = {
        name: value for name, value in verification.items() if not isinstance(value, dict | list)
    }
    return [
        *(_figure(name.replace("_", " "), figure(name, value)) for name, value in plain.items()),
        *(
            _figure(f"last pass, {name.replace('_', ' ')}", figure(name, value))
            for name, value in last.items()
        ),
        *(_figure(found["table"], finding_sentence(found)) for found in verification["findings"]),
        *(
            _figure(name, f"compared as a whole each time: {why}")
            for name, why in verification.get("whole", {}).items()
        ),
    ]


def _figure(name: str, value: object) -> dict[str, Any]:
    return {"figure": f"verification: {name}", "value": value}
