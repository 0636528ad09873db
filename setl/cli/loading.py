"""Commands about whole tables: load, list, pause, resume, cancel; and resend of some rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from arbiter.arbiter import Arbiter, ArbiterError, Unreachable
from arbiter.requests import Refused, ask_leader
from arbiter.values import ChannelState, Facts, PipelineId, SignalKind
from setl.channel.keys_file import read_keys
from setl.cli.cluster import (
    AnswerNo,
    channel_named,
    cluster_options,
    joined,
    output_option,
    pipeline_named,
    requester,
)
from setl.cli.cluster_view import moment
from setl.cli.load_sentence import load_sentence
from setl.cli.node_answers import node_report, node_status
from setl.cli.output import console, print_rows, print_value
from setl.model.load_request import LoadRequest, RequestState
from setl.node.stored import pipelines_of
from setl.run.load_requests import StoredLoadRequests

_COLUMNS = (
    "pipeline", "id", "reason", "what", "state", "rows", "by", "sent", "ended", "answer",
)  # fmt: skip
_POLL_SECONDS = 0.5

_table = click.option(
    "--table", "tables", multiple=True, metavar="TABLE",
    help="Only this source table, schema.table; may be repeated.",
)  # fmt: skip
_where = click.option(
    "--where", default="", metavar="SQL",
    help="Only rows for which this is true, in the SQL of the source's server.",
)  # fmt: skip
_wait = click.option(
    "--wait/--no-wait", default=True, help="Wait until it is done. [default: wait]"
)
_timeout = click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS",
    help="How long to wait. [default: as long as it takes]",
)  # fmt: skip


class _LoadGroup(click.Group):
    """``setl load CHANNEL`` is the same as ``setl load begin CHANNEL``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the command in that needs none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["begin", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_LoadGroup, subcommand_metavar="PIPELINE [OPTIONS] | COMMAND [ARGS]...")
def load() -> None:
    """Load the rows that tables have, beside the stream of changes.

    `setl load PIPELINE` loads all tables of a pipeline; `setl load begin --help` shows its options.
    """


@load.command()
@click.argument("pipeline")
@_table
@_where
@click.option("--into-empty", is_flag=True, help="Only if the target's tables have no row yet.")
@_wait
@_timeout
@cluster_options
@output_option
def begin(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    tables: tuple[str, ...],
    where: str,
    into_empty: bool,
    wait: bool,
    timeout: float | None,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Load the tables of PIPELINE from its source into its target.

    The leader reads them between two loads of the stream, so that what it writes is never older
    than what is there. Rows that only the target has stay. If nobody leads, the next leader does
    it. Interrupting this command does not interrupt the load; `setl load cancel` does.
    """
    if where and len(tables) != 1:
        raise click.UsageError("--where needs one --table")
    asked = requester()
    request = LoadRequest(
        tables=tables, where=where, into_empty=into_empty, by=asked.by, sent=asked.now
    )
    with joined(zookeeper, root) as arbiter:
        ident = _pipeline(arbiter, pipeline)
        _carry_out(arbiter, ident, [request], _Waiting(wait, timeout, output))


@click.command()
@click.argument("pipeline")
@click.option("--table", required=True, metavar="TABLE", help="The source table, schema.table.")
@_where
@click.option(
    "--keys", "keys_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV file of keys; its first line names the columns.",
)  # fmt: skip
@_wait
@_timeout
@cluster_options
@output_option
def resend(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    table: str,
    where: str,
    keys_file: Path | None,
    wait: bool,
    timeout: float | None,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Send rows of a table of PIPELINE again, as the source has them now.

    With --keys, the target's row of a key that the source does not have is deleted.
    """
    if bool(where) == (keys_file is not None):
        raise click.UsageError("give either --where or --keys")
    asked = requester()
    requests = [
        LoadRequest(tables=(table,), where=where, reason="resend", by=asked.by, sent=asked.now)
    ]
    if keys_file is not None:
        requests = [
            LoadRequest(
                tables=(table,), key=key, keys=keys, reason="resend", by=asked.by, sent=asked.now
            )
            for key, keys in read_keys(keys_file)
        ]
    with joined(zookeeper, root) as arbiter:
        ident = _pipeline(arbiter, pipeline)
        _carry_out(arbiter, ident, requests, _Waiting(wait, timeout, output))


@load.command("list")
@click.argument("name", required=False, metavar="[CHANNEL|PIPELINE]")
@cluster_options
@output_option
def list_(name: str | None, zookeeper: str, root: str, output: str) -> None:
    """List loads that wait, are under way or have ended."""
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
        for ident in _pipelines(arbiter, facts, name):
            told = _told(facts, ident)
            for request in StoredLoadRequests(arbiter, ident).all():
                mine = told if told.get("id") == request.id and not request.ended else {}
                rows.append(_row(ident, request, mine))
                if mine:
                    lines.append(f"{ident} {_short(request.id)}: {load_sentence(mine)}")
    print_rows(rows, _COLUMNS, output)
    if output == "table":
        for line in lines:
            console().print(line, markup=False)


def _changing(name: str, state: RequestState, text: str) -> click.Command:
    """A command that changes the state of a load."""

    @click.command(name, help=text)
    @click.argument("pipeline")
    @click.argument("ids", nargs=-1, metavar="[ID...]")
    @cluster_options
    @output_option
    def command(
        pipeline: str, ids: tuple[str, ...], zookeeper: str, root: str, output: str
    ) -> None:
        with joined(zookeeper, root) as arbiter:
            ident = _pipeline(arbiter, pipeline)
            requests = StoredLoadRequests(arbiter, ident)
            chosen = _chosen(ident, requests.unanswered(), ids)
            changed = [requests.change_state(request.id, state) for request in chosen]
            _tell_leader(arbiter, ident)
        rows = [_row(ident, request, {}) for request in changed if request is not None]
        if output != "table":
            print_value(rows, output)
            return
        for row in rows:
            console().print(f"{ident} load {row['id']}: {row['state']}", markup=False)

    return command


load.add_command(
    _changing(
        "pause",
        RequestState.PAUSED,
        "Pause loads of PIPELINE: those that are named, or all. They go on where they were.",
    )
)
load.add_command(
    _changing("resume", RequestState.WAITING, "Let loads of PIPELINE go on that are paused.")
)
load.add_command(
    _changing(
        "cancel",
        RequestState.CANCELLED,
        "End loads of PIPELINE: those that are named, or all. What is loaded stays.",
    )
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Whether a command waits for what it asked for, how long, and how it tells the outcome."""

    wait: bool
    timeout: float | None
    output: str


def _pipeline(arbiter: Arbiter, name: str) -> PipelineId:
    return pipeline_named(arbiter.facts(), name)


def _pipelines(arbiter: Arbiter, facts: Facts, name: str | None) -> list[PipelineId]:
    if name is None:
        return [ident for _, c in sorted(facts.channels.items()) for ident in pipelines_of(c)]
    if name in facts.channels:
        return pipelines_of(channel_named(arbiter, name))
    return [pipeline_named(facts, name)]


def _carry_out(
    arbiter: Arbiter, ident: PipelineId, requests: Sequence[LoadRequest], waiting: _Waiting
) -> None:
    """Ask for loads, one after another if they are waited for, and tell what became of them."""
    stored = StoredLoadRequests(arbiter, ident)
    if not waiting.wait:
        sent = [stored.add(request) for request in requests]
        _tell_leader(arbiter, ident)
        _show(ident, sent, waiting.output, _sent_words(arbiter, ident))
        return
    ended: list[LoadRequest] = []
    until = None if waiting.timeout is None else time.monotonic() + waiting.timeout
    with _progress() as shown:
        for request in requests:
            made = stored.add(request)
            _tell_leader(arbiter, ident)
            task = shown.add_task(f"{ident}: {request.what}", total=None)

            def show(words: str, task: TaskID = task) -> None:
                shown.update(task, description=f"{ident}: {words}")

            ended.append(_await(arbiter, ident, made, until, show))
            shown.remove_task(task)
    _show(ident, ended, waiting.output, "")
    failed = [request for request in ended if request.state is not RequestState.DONE]
    if failed:
        raise AnswerNo("; ".join(f"load {_short(r.id)}: {r.answer}" for r in failed))


def _await(
    arbiter: Arbiter,
    ident: PipelineId,
    request: LoadRequest,
    until: float | None,
    show: Callable[[str], None],
) -> LoadRequest:
    """Wait until a request has ended, and show how far it is."""
    stored = StoredLoadRequests(arbiter, ident)
    while True:
        now = next((r for r in stored.all() if r.id == request.id), None)
        if now is None:
            raise AnswerNo(f"the request {request.id} of {ident} is gone")
        if now.ended:
            return now
        if until is not None and time.monotonic() >= until:
            raise AnswerNo(f"load {_short(request.id)} of {ident} is not done in time; it goes on")
        told = _told(arbiter.facts(), ident)
        mine = told.get("id") == request.id
        show(load_sentence(told) if mine else _waiting_words(arbiter, ident))
        time.sleep(_POLL_SECONDS)


def _waiting_words(arbiter: Arbiter, ident: PipelineId) -> str:
    facts = arbiter.facts()
    channel = facts.channels.get(ident.channel)
    if channel is None or channel.state is not ChannelState.START:
        return f"waits until the channel {ident.channel} runs"
    return "waits for its turn" if ident in facts.mainstems else "waits for a leader"


def _sent_words(arbiter: Arbiter, ident: PipelineId) -> str:
    words = _waiting_words(arbiter, ident)
    return "" if words == "waits for its turn" else f"; it {words}"


def _tell_leader(arbiter: Arbiter, ident: PipelineId) -> None:
    """Have the leader look at once; without one the next leader looks by itself."""
    try:
        ask_leader(arbiter, ident, SignalKind.LOADS, requester())
    except Refused:
        return
    except Unreachable:
        raise
    except ArbiterError as error:
        raise AnswerNo(f"the request is kept, but the leader was not told: {error}") from error


def _told(facts: Facts, ident: PipelineId) -> dict[str, Any]:
    """What the leader tells of its load; empty if it tells nothing."""
    mainstem = facts.mainstems.get(ident)
    node = facts.nodes.get(mainstem.nid) if mainstem else None
    if node is None:
        return {}
    figures: dict[str, Any] = node_report(node_status(node), ident).get("figures") or {}
    return figures.get("table_load") or {}


def _chosen(
    ident: PipelineId, found: Sequence[LoadRequest], ids: Sequence[str]
) -> Sequence[LoadRequest]:
    if not found:
        raise AnswerNo(f"{ident} has no load that waits or is under way")
    by_id = {_short(request.id): request for request in found}
    missing = [name for name in ids if _short(name) not in by_id]
    if missing:
        raise AnswerNo(f"{ident} has no load {', '.join(missing)}; there are {', '.join(by_id)}")
    return [by_id[_short(name)] for name in ids] or list(found)


def _short(ident: str) -> str:
    """The number at the end of an id: ``load-0000000012`` is 12."""
    digits = ident.rpartition("-")[2]
    return str(int(digits)) if digits.isdigit() else ident


def _row(ident: PipelineId, request: LoadRequest, told: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipeline": str(ident),
        "id": _short(request.id),
        "reason": request.reason,
        "what": request.what,
        "state": told.get("state") or request.state.value,
        "rows": told.get("rows", request.rows),
        "by": request.by,
        "sent": moment(request.sent or None),
        "ended": moment(request.ended or None),
        "answer": request.answer,
        "progress": told or None,
    }


def _show(ident: PipelineId, requests: Sequence[LoadRequest], output: str, end: str) -> None:
    if output != "table":
        print_value([_row(ident, request, {}) for request in requests], output)
        return
    for request in requests:
        words = request.answer or f"asked for: {request.what}"
        if request.state is RequestState.DONE or not request.ended:
            console().print(f"{ident} load {_short(request.id)}: {words}{end}", markup=False)


def _progress() -> Progress:
    # On standard error, so that the result alone is on standard output.
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
