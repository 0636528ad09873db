"""Commands about dead letters: list, show, retry, drop."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from arbiter.values import ChannelState, Facts, PipelineId
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    cluster_options,
    joined,
    output_option,
    pipeline_config,
    pipeline_named,
    timeout_option,
)
from setl.cli.terminal.completion import complete_name, complete_pipeline
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.output import console, print_rows, print_value, raise_all, to_stderr
from setl.counting import count
from setl.errors import ConfigurationError, SetlError
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.node.cluster.naming import meant_by
from setl.node.cluster.view import moment
from setl.node.stored import pipelines_of
from setl.operate.dead_letters import WAITING, Retry, RetryOutcome, letters_of, missing
from setl.operate.questions import before_drop
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

_COLUMNS = (
    "id", "pipeline", "state", "at", "target", "key", "operation", "position", "attempts", "error",
)  # fmt: skip
_AGAIN = ("dead letter is to be loaded again", "dead letters are to be loaded again")
_ID = re.compile(r"[0-9a-f]{16}")

_of = click.argument("pipeline", shell_complete=complete_pipeline, metavar="[PIPELINE]")


@click.group()
def deadletter() -> None:
    """Show faulty rows put aside, load them again, or drop them.

    Targets keep them. So every command needs the channels' secrets in this environment, as on a
    node. The pipelines need not run.
    """


@deadletter.command("list")
@click.argument("name", shell_complete=complete_name, required=False, metavar="[CHANNEL|PIPELINE]")
@click.option("--table", default="", metavar="TABLE", help="Only this table or index.")
@click.option("-n", "limit", type=click.IntRange(min=1), default=100, show_default=True,
              help="At most N of each pipeline, the last of its stream.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Superseded ones too.")
@cluster_options
@output_option
def list_(  # noqa: PLR0917 - click passes options by name
    name: str | None,
    table: str,
    limit: int,
    everything: bool,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """List dead letters in the order of the stream."""
    states = () if everything else WAITING
    rows: list[dict[str, Any]] = []
    configs, lacking = _pipelines(name, zookeeper, root)
    for ident, config in configs:
        try:
            with system_of(config.target).dead_letters() as store:
                found = store.find(
                    str(ident), target=table, states=states, limit=limit, newest=True
                )
        except ConfigurationError as error:
            lacking.append(error.at(pipeline=ident))
            continue  # those of the others are shown all the same
        rows += [_row(letter) for letter in reversed(found)]
    if rows or not lacking:
        print_rows(
            rows,
            _COLUMNS,
            output,
            dispensable=("attempts", "position", "at"),
            nothing="No faulty row is put aside.",
        )
    raise_all(lacking)


@deadletter.command()
@click.argument("letter", metavar="ID")
@cluster_options
@output_option
def show(letter: str, zookeeper: str, root: str, output: str) -> None:
    """Show everything about one dead letter, its row included."""
    configs, unread = _pipelines(None, zookeeper, root)
    failed: list[SetlError] = [*unread]
    for ident, config in configs:
        try:
            with system_of(config.target).dead_letters() as store:
                found = store.find(str(ident), ids=[letter])
        except SetlError as error:
            failed.append(error.at(pipeline=ident))
            continue  # the letter may be another's
        if found:
            _show(found[0], output)
            return
    if failed:
        raise failed[-1]
    raise AnswerNo(f"there is no dead letter {letter}")


@deadletter.command()
@_of
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--all", "everything", is_flag=True, help="All that are open.")
@click.option(
    "--force",
    is_flag=True,
    help="Also dead letters whose row is unknown or mapped differently now.",
)
@cluster_options
@timeout_option
@output_option
def retry(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    ids: tuple[str, ...],
    everything: bool,
    force: bool,
    zookeeper: str,
    root: str,
    timeout: float,
    output: str,
) -> None:
    """Load dead letters of PIPELINE again.

    PIPELINE may be left out before ids.

    The leader loads them between two loads, in the order of the stream. The command waits for the
    outcome. Letters whose rows are in the target are gone; the others stay open with a new error.
    If the pipeline does not run, they are loaded when it does.

    Superseded letters are refused: their rows have changed since. If a record could not be
    decoded, or its key is not known, nobody can tell whether its rows have changed since. --force
    loads it anyway, which may bring old values back (`setl verify` finds them). The same is so of
    letters from before the channel file mapped their tables in another way: a row that was mapped
    already goes to the target that it was meant for then.
    """
    pipeline, ids = _meant(pipeline, ids, zookeeper, root)
    ident, config, runs = _pipeline(pipeline, zookeeper, root)
    # Imported late: who names no pipeline that there is needs no routing.
    from setl.channel.routes.routing import Router  # noqa: PLC0415

    with system_of(config.target).dead_letters() as store:
        _one_choice(ids, everything=everything)
        asked = Retry(store, ident, ids, Router(config), force=force)
        if asked.left_out:
            to_stderr(f"{asked.left_out} (--force)")
        with joined(zookeeper, root) as arbiter, acting(arbiter, "retry", str(ident)) as entry:
            asked.ask(arbiter)
            entry.outcome = count(len(asked.wanted), *_AGAIN)
            outcome = asked.outcome(arbiter, timeout if runs else 0.0, time.sleep)
            entry.outcome = str(outcome)
        refused = [_row(x) for some in letters_of(store, ident, outcome.refused) for x in some]
    _print_outcome(ident, outcome, refused, output)
    if outcome.waiting and runs:
        raise AnswerNo(f"{len(outcome.waiting)} are not loaded yet after {timeout:g} s;"
                       " `setl status` says what the leader does")  # fmt: skip
    if refused:
        raise AnswerNo(f"{len(refused)} were refused again")
    if outcome.in_doubt:
        raise AnswerNo(
            "somebody dropped dead letters meanwhile, so it is not known which of these were"
            " loaded; `setl verify` names the rows that differ"
        )


@deadletter.command()
@_of
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--all", "everything", is_flag=True, help="All of them, superseded ones too.")
@click.option("--superseded", is_flag=True, help="All that are superseded.")
@yes_option
@cluster_options
@output_option
def drop(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    ids: tuple[str, ...],
    everything: bool,
    superseded: bool,
    yes: bool,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Drop dead letters of PIPELINE for good.

    PIPELINE may be left out before ids. No row changes, neither at the source nor at the target.
    `setl verify` names the rows that differ.
    """
    pipeline, ids = _meant(pipeline, ids, zookeeper, root)
    ident, config, _ = _pipeline(pipeline, zookeeper, root)
    states = (State.SUPERSEDED,) if superseded else ()
    with system_of(config.target).dead_letters() as store:
        _one_choice(ids, everything=everything or superseded)
        found = store.states(str(ident), ids)
        missing(found, ids)
        chosen = {i: state for i, state in found.items() if not states or state in states}
        waiting = sum(state in WAITING for state in chosen.values())
        if chosen:
            confirm(before_drop(ident, len(chosen), waiting), yes=yes)
        with joined(zookeeper, root) as arbiter, acting(arbiter, "drop", str(ident)) as entry:
            dropped = store.remove(chosen)
            entry.outcome = count(dropped, "dead letter") + " dropped"
    if output == "table":
        console().print(f"{ident}: {dropped} dropped")
    else:
        print_value({"pipeline": str(ident), "dropped": dropped}, output)


def _pipelines(
    name: str | None, zookeeper: str, root: str
) -> tuple[list[tuple[PipelineId, Pipeline]], list[ConfigurationError]]:
    """The pipelines that a name means, without one those that keep dead letters.

    With them comes why others cannot be read here, as where a channel's password is not known.
    """
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
    if name is not None and name not in facts.channels:
        ident = pipeline_named(facts, name)
        return [(ident, _config(facts, ident))], []
    channels = [name] if name else sorted(facts.channels)
    idents = [ident for channel in channels for ident in pipelines_of(facts.channels[channel])]
    configs: list[tuple[PipelineId, Pipeline]] = []
    unread: list[ConfigurationError] = []
    for ident in idents:
        try:
            configs.append((ident, _config(facts, ident)))
        except ConfigurationError as error:
            unread.append(error)
    return [(ident, config) for ident, config in configs if config.stores_dead_letters], unread


def _meant(
    name: str, ids: tuple[str, ...], zookeeper: str, root: str
) -> tuple[str, tuple[str, ...]]:
    """The pipeline and the ids of its letters, where a person may have given ids alone."""
    if not _ID.fullmatch(name):
        return name, ids
    with joined(zookeeper, root) as arbiter:
        if meant_by(name, arbiter.facts()):
            return name, ids
    wanted = (name, *ids)
    holders: dict[str, set[str]] = {}
    configs, unread = _pipelines(None, zookeeper, root)
    failed: SetlError | None = unread[-1] if unread else None
    for ident, config in configs:
        try:
            with system_of(config.target).dead_letters() as store:
                found = set(store.states(str(ident), wanted))
        except SetlError as error:
            failed = error.at(pipeline=ident)
            continue  # the letters may be another's
        if found:
            holders[str(ident)] = found
    gone = set(wanted).difference(*holders.values())
    if gone and failed is not None:
        raise failed
    if gone:
        raise AnswerNo(f"there is no dead letter {', '.join(sorted(gone))}; nothing was done")
    if len(holders) > 1:
        raise click.UsageError(
            f"these are dead letters of {' and of '.join(holders)}; give those of one pipeline"
        )
    return next(iter(holders)), wanted


def _pipeline(name: str, zookeeper: str, root: str) -> tuple[PipelineId, Pipeline, bool]:
    """A pipeline, and whether somebody runs it."""
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
    ident = pipeline_named(facts, name)
    runs = facts.channels[ident.channel].state is ChannelState.START and ident in facts.leader_locks
    return ident, _config(facts, ident), runs


def _config(facts: Facts, ident: PipelineId) -> Pipeline:
    return pipeline_config(facts.channels[ident.channel], ident)


def _one_choice(ids: Collection[str], *, everything: bool) -> None:
    """Refuse what names letters and all of them, or neither."""
    if bool(ids) == everything:
        raise click.UsageError("give the ids of dead letters, or one of the options that choose")


def _print_outcome(
    ident: PipelineId, outcome: RetryOutcome, refused: Sequence[Mapping[str, Any]], output: str
) -> None:
    if output != "table":
        value = {
            "pipeline": str(ident),
            "loaded": 0 if outcome.in_doubt else outcome.gone,
            "loaded_or_dropped": outcome.gone if outcome.in_doubt else 0,
            "refused": len(refused),
            "waiting": len(outcome.waiting),
            "superseded": outcome.superseded,
            "letters": refused,
        }
        print_value(value, output)
        return
    console().print(f"{ident}: {outcome}", soft_wrap=True)
    if refused:
        print_rows(refused, _COLUMNS, output)


def _row(letter: DeadLetter) -> dict[str, Any]:
    """A dead letter under stable names, without its payload."""
    key = None if letter.key_values is None else json.loads(letter.key_values)
    return {
        "id": letter.id,
        "pipeline": letter.pipeline,
        "state": letter.state.value,
        "at": moment(letter.at),
        "target": letter.target,
        "source": letter.source,
        "key": "not known" if key is None else ", ".join(str(value) for value in key),
        "operation": letter.operation,
        "position": letter.position,
        "version": letter.version,
        "attempts": letter.attempts,
        "batch": letter.batch,
        "epoch": letter.epoch,
        "node": letter.nid,
        "error": letter.error,
        "hint": letter.hint,
    }


def _show(letter: DeadLetter, output: str) -> None:
    payload: dict[str, Any] = json.loads(letter.payload)
    if output != "table":
        print_value({**_row(letter), "payload": payload}, output)
        return
    lines = [{"field": name, "value": value} for name, value in _row(letter).items()]
    lines.append({"field": "size", "value": f"{len(letter.payload):,} bytes"})
    print_rows(lines, ("field", "value"), output)
    names = [column["name"] for column in payload.get("columns", ())]
    if payload.get("operation") == "delete" and payload["form"] == "row":
        names = [names[index] for index in payload["key"]]
    for image in ("before", "after", "values"):
        values = payload.get(image)
        if values is not None:
            cells = [
                {"column": n, image: json.dumps(v, ensure_ascii=False)}
                for n, v in zip(names, values, strict=False)
            ]
            print_rows(cells, ("column", image), output)
