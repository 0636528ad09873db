"""Commands about whole tables: load, list, pause, resume, cancel; and resend of some rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arbiter.arbiter import Arbiter
from arbiter.values import Channel, Facts, PipelineId
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    channel_named,
    cluster_options,
    joined,
    output_option,
    pipeline_config,
    pipeline_named,
    pipelines_named,
    requester,
    stored_file,
)
from setl.cli.access.spark_options import spark_options
from setl.cli.rows.asking import leader_status, notify_leader, sent_words, short_id, wait_for_end
from setl.cli.rows.selection import read_keys, refuse_unmapped
from setl.cli.terminal.completion import complete_name, complete_pipeline
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.interruption import going_on
from setl.cli.terminal.output import console, print_rows, print_value
from setl.cli.terminal.progress import progress_line
from setl.errors import ConfigurationError
from setl.model.load_request import LoadRequest, RequestState, in_pieces
from setl.node.cluster.pipeline_texts import load_sentence
from setl.node.cluster.view import moment
from setl.node.stored import pipelines_of
from setl.operate.questions import before_overwriting
from setl.run.table_loads.requests import StoredLoadRequests

if TYPE_CHECKING:
    # Spark comes with it.
    from setl.channel.file import Pipeline
    from setl.run.spark.session import SparkSettings

_COLUMNS = (
    "pipeline", "id", "reason", "what", "state", "rows", "by", "sent", "ended", "answer",
)  # fmt: skip

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
    """Load the rows of tables while the stream goes on.

    `setl load PIPELINE` loads all tables of a pipeline; `setl load begin --help` shows its options.
    """


@load.command()
@click.argument("pipeline", shell_complete=complete_pipeline)
@_table
@_where
@click.option("--into-empty", is_flag=True, help="Only if the target's tables have no row yet.")
@click.option(
    "--replace", "replacing", is_flag=True,
    help="Afterwards compare, and delete rows that only the target has.",
)  # fmt: skip
@yes_option
@_wait
@_timeout
@spark_options
@cluster_options
@output_option
def begin(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    tables: tuple[str, ...],
    where: str,
    into_empty: bool,
    replacing: bool,
    yes: bool,
    wait: bool,
    timeout: float | None,
    spark: Callable[[str], SparkSettings],
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Load the tables of PIPELINE from its source into its target.

    The leader reads them between two loads of the stream, so that what it writes is never older
    than what is there. Rows that only the target has stay without --replace. If no node leads, the
    next leader does it. Interrupting this command does not interrupt the load; `setl load cancel`
    does.
    """
    if where and len(tables) != 1:
        raise click.UsageError("--where needs one --table")
    if replacing and (into_empty or where or not wait):
        raise click.UsageError("--replace goes with neither --into-empty, --where nor --no-wait")
    asked = requester()
    request = LoadRequest(
        tables=tables, where=where, into_empty=into_empty, by=asked.by, sent=asked.now
    )
    with joined(zookeeper, root) as arbiter:
        ident = _pipeline(arbiter, pipeline)
        channel = channel_named(arbiter, ident.channel)
        config = pipeline_config(channel, ident) if replacing else None
        refuse_unmapped(partial(stored_file, channel), ident, tables)
        _ask_if_overwritten(channel, ident, tables, yes=yes)
        with acting(arbiter, "load", str(ident)) as entry:
            entry.outcome = f"asked for: {request.what}"
            _carry_out(arbiter, ident, [request], _Waiting(wait, timeout, output))
    if config is not None:
        _delete_others(ident, config, tables, spark, partial(joined, zookeeper, root), yes=yes)


@click.command()
@click.argument("pipeline", shell_complete=complete_pipeline)
@click.option("--table", required=True, metavar="TABLE", help="The source table, schema.table.")
@_where
@click.option(
    "--keys", "keys_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV file of keys; its first line names the columns.",
)  # fmt: skip
@yes_option
@_wait
@_timeout
@cluster_options
@output_option
def resend(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    table: str,
    where: str,
    keys_file: Path | None,
    yes: bool,
    wait: bool,
    timeout: float | None,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Send rows of a table again, as the source has them now.

    With --keys, the target's row of a key that the source does not have is deleted.
    """
    if bool(where) == (keys_file is not None):
        raise click.UsageError("give either --where or --keys")
    asked = requester()
    requests = [
        LoadRequest(tables=(table,), where=where, reason="resend", by=asked.by, sent=asked.now)
    ]
    if keys_file is not None:
        key, keys = read_keys(keys_file)
        requests = [replace(requests[0], key=key, keys=tuple(piece)) for piece in in_pieces(keys)]
        if not requests:
            raise click.UsageError(f"{keys_file} has no key")
    with joined(zookeeper, root) as arbiter:
        ident = _pipeline(arbiter, pipeline)
        channel = channel_named(arbiter, ident.channel)
        refuse_unmapped(partial(stored_file, channel), ident, (table,))
        _ask_if_overwritten(channel, ident, (table,), yes=yes)
        with acting(arbiter, "resend", str(ident)) as entry:
            entry.outcome = f"asked for: {requests[0].what}"
            _carry_out(arbiter, ident, requests, _Waiting(wait, timeout, output))


@load.command("list")
@click.argument("name", shell_complete=complete_name, required=False, metavar="[CHANNEL|PIPELINE]")
@cluster_options
@output_option
def list_(name: str | None, zookeeper: str, root: str, output: str) -> None:
    """List loads that wait, are under way or have ended."""
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    with joined(zookeeper, root) as arbiter:
        facts = arbiter.facts()
        for ident in _pipelines(facts, name):
            status = leader_status(facts, ident)
            for request in StoredLoadRequests(arbiter, ident).all():
                mine = status if status.get("id") == request.id and not request.ended else {}
                rows.append(_row(ident, request, mine))
                if mine:
                    lines.append(f"{ident} {short_id(request.id)}: {load_sentence(mine)}")
    print_rows(
        rows,
        _COLUMNS,
        output,
        dispensable=("reason", "by", "sent", "ended"),
        nothing="There is no load, and none has ended lately.",
    )
    if output == "table":
        for line in lines:
            console().print(line)


def _changing(name: str, state: RequestState, text: str) -> click.Command:
    """A command that changes the state of a load."""

    @click.command(name, help=text)
    @click.argument("pipeline", shell_complete=complete_pipeline)
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
            with acting(arbiter, f"load-{name}", str(ident)):
                changed = [requests.change_state(request.id, state) for request in chosen]
                notify_leader(arbiter, ident)
        rows = [_row(ident, request, {}) for request in changed if request is not None]
        if output != "table":
            print_value(rows, output)
            return
        for row in rows:
            console().print(f"{ident} load {row['id']}: {row['state']}")

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


def _ask_if_overwritten(
    channel: Channel, ident: PipelineId, tables: Sequence[str], *, yes: bool
) -> None:
    """Ask before rows are sent that may replace newer ones, as far as the file can be read here."""
    from setl.channel.relations.overwriting import overwritten_by_loads  # noqa: PLC0415

    with suppress(ConfigurationError):
        file = stored_file(channel)
        overwritten = overwritten_by_loads(file, file.pipeline(ident.pipeline), tables)
        if overwritten:
            confirm(f"{before_overwriting(overwritten)} Go on?", yes=yes)


_ARRIVE_SECONDS = 60.0  # that rows on their way may take, before a row counts as one too many


def _delete_others(
    ident: PipelineId,
    config: Pipeline,
    tables: Sequence[str],
    spark: Callable[[str], SparkSettings],
    connect: Callable[[], AbstractContextManager[Arbiter]],
    *,
    yes: bool,
) -> None:
    """Delete rows of the target that the source does not have, after a question."""
    # Imported late: Spark comes with it.
    from setl.bulk.comparison import What  # noqa: PLC0415
    from setl.cli.rows.comparing import FURTHER_KEYS, comparer  # noqa: PLC0415
    from setl.cli.rows.repairing import others_into, repaired  # noqa: PLC0415

    with progress_line() as shown:
        task = shown.add_task("", total=None)

        def show(words: str) -> None:
            shown.update(task, description=words)

        session = spark("setl load")
        limit, further = _ARRIVE_SECONDS, FURTHER_KEYS
        with comparer(session, 20, show, connect, limit, further=further) as compares:
            found = compares.compare(ident.channel, config, tables)
            shown.stop()
            found = repaired(found, compares, connect, yes=yes, only=(What.EXTRA,))
    left = [one for one in found if one.verdict.extra and not others_into(one, connect)]
    if left:
        raise AnswerNo(f"{left[0].verdict.target} has rows that the source does not have")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Whether a command waits for what it asked for, how long, and how it tells the outcome."""

    wait: bool
    timeout: float | None
    output: str


def _pipeline(arbiter: Arbiter, name: str) -> PipelineId:
    return pipeline_named(arbiter.facts(), name)


def _pipelines(facts: Facts, name: str | None) -> list[PipelineId]:
    if name is None:
        return [ident for _, c in sorted(facts.channels.items()) for ident in pipelines_of(c)]
    return pipelines_named(facts, name)


def _chosen(
    ident: PipelineId, found: Sequence[LoadRequest], ids: Sequence[str]
) -> Sequence[LoadRequest]:
    if not found:
        raise AnswerNo(f"{ident} has no load that waits or is under way")
    by_id = {short_id(request.id): request for request in found}
    missing = [name for name in ids if short_id(name) not in by_id]
    if missing:
        raise AnswerNo(f"{ident} has no load {', '.join(missing)}; there are {', '.join(by_id)}")
    return [by_id[short_id(name)] for name in ids] or list(found)


def _row(ident: PipelineId, request: LoadRequest, status: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipeline": str(ident),
        "id": short_id(request.id),
        "reason": request.reason,
        "what": request.what,
        "state": status.get("state") or request.state.value,
        "rows": status.get("rows", request.rows),
        "by": request.by,
        "sent": moment(request.sent or None),
        "ended": moment(request.ended or None),
        "answer": request.answer,
        "progress": status or None,
    }


def _show(ident: PipelineId, requests: Sequence[LoadRequest], output: str, end: str) -> None:
    if output != "table":
        print_value([_row(ident, request, {}) for request in requests], output)
        return
    for request in requests:
        words = request.answer or f"asked for: {request.what}"
        if request.state is RequestState.DONE or not request.ended:
            console().print(f"{ident} load {short_id(request.id)}: {words}{end}")


def _carry_out(
    arbiter: Arbiter, ident: PipelineId, requests: Sequence[LoadRequest], waiting: _Waiting
) -> None:
    """Ask for loads, and tell what became of them."""
    if not waiting.wait:
        stored = StoredLoadRequests(arbiter, ident)
        sent = [stored.add(request) for request in requests]
        notify_leader(arbiter, ident)
        _show(ident, sent, waiting.output, sent_words(arbiter, ident))
        return
    goes_on = f"the load goes on, and `setl load cancel {ident}` ends it"
    with going_on(goes_on), progress_line() as shown:
        task = shown.add_task(f"{ident}: {requests[0].what}", total=None)

        def show(words: str) -> None:
            shown.update(task, description=f"{ident}: {words}")

        ended = wait_for_end(arbiter, ident, requests, show, waiting.timeout)
    _show(ident, ended, waiting.output, "")
    failed = [request for request in ended if request.state is not RequestState.DONE]
    if failed:
        raise AnswerNo("; ".join(f"load {short_id(r.id)}: {r.answer}" for r in failed))
