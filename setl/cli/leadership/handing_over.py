"""Commands that change who leads: switchover and failover."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import click

from arbiter import requests
from arbiter.arbiter import Arbiter
from arbiter.errors import Unreachable
from arbiter.requests import Refused
from arbiter.values import PipelineId, Signal, SignalKind, SignalState, leadership_words
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    cluster_options,
    joined,
    output_option,
    pipeline_named,
    requester,
    timeout_option,
)
from setl.cli.inspection.views import topology_line
from setl.cli.terminal.completion import complete_node, complete_pipeline
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.interruption import going_on
from setl.cli.terminal.output import console, print_value
from setl.cli.terminal.progress import busy
from setl.cli.terminal.times import parse_time
from setl.counting import count
from setl.node.cluster.view import PipelineView, look_at, moment
from setl.node.stored import preference_of
from setl.operate.questions import before_failover, before_switchover
from setl.waiting import polling

_ANSWER_SECONDS = 5.0
_POLL = 0.2
_UNKNOWN = "it is not known how many rows were redelivered"
_LEAVES_SECONDS = 2.0
"""Seconds within which a leader that failed of something that it lacks has left the lead."""

_WORKING = ("running", "paused")
"""States of a new leader that is where its channel says it should be."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request, under stable names.

    Attributes:
        pipeline: its full name.
        kind: what was asked.
        outcome: done, sent, scheduled, cancelled, refused, timeout; failed if it is done, and the
            new leader stopped with an error.
        reason: why it was refused, or what is known after a timeout or a failure; "" else.
        from: who led before, "" if nobody did.
        to: who leads now, or was named; "" if neither.
        leadership: number of the new leadership, None as long as it is not known.
        epoch: likewise.
        state: what the new leader is doing, "" as long as there is none.
        at: when it is due, "" for at once.
        seconds: from the request until the new leader worked, None if it was not waited for.
        redelivered: rows that were applied again, None if that is not known (yet).
    """

    pipeline: str
    kind: str
    outcome: str
    reason: str = ""
    from_: str = ""
    to: str = ""
    leadership: int | None = None
    epoch: int | None = None
    state: str = ""
    at: str = ""
    seconds: float | None = None
    redelivered: int | None = None


_to = click.option(
    "--to",
    default="",
    metavar="NODE",
    shell_complete=complete_node,
    help="Who is to lead. [default: the next]",
)
_wait = click.option(
    "--wait/--no-wait", default=True, help="Wait until the new leader works. [default: wait]"
)


@click.command()
@click.argument("pipeline", shell_complete=complete_pipeline)
@_to
@click.option("--at", "at", default="", metavar="TIME", help="Later: 2026-11-21T22:00, or +5m.")
@click.option("--cancel", is_flag=True, help="Take a scheduled switchover back.")
@yes_option
@_wait
@timeout_option
@cluster_options
@output_option
def switchover(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    to: str,
    at: str,
    cancel: bool,
    yes: bool,
    wait: bool,
    timeout: float,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Hand PIPELINE over to another node, in order.

    The leader finishes what it is loading, stores the checkpoint and hands over; nothing is
    applied twice. At a terminal you are asked first, unless you say --yes.
    """
    if cancel and (to or at):
        raise click.UsageError("--cancel goes with neither --to nor --at")
    with joined(zookeeper, root) as arbiter:
        view = _seen(arbiter, pipeline, output)
        ident = view.ident
        if cancel:
            _cancel(arbiter, ident, output)
            return
        asked = requester()
        due = parse_time(at, asked.now) if at else 0.0
        if view.leader:
            when = moment(due) if due else ""
            confirm(before_switchover(ident, view.leader, to=to, when=when), yes=yes)
        preference = preference_of(arbiter.channels.one(ident.channel), ident.pipeline)

        def send() -> Signal:
            return requests.switchover(arbiter, ident, preference, asked, to=to, at=due)

        with acting(arbiter, "switchover", str(ident)) as entry:
            sent = sent_by(send, ident, SignalKind.SWITCHOVER, output)
            entry.outcome = _sent_words(sent)
            _follow(arbiter, ident, sent, wait=wait, limit=timeout, output=output)


@click.command()
@click.argument("pipeline", shell_complete=complete_pipeline)
@_to
@yes_option
@_wait
@timeout_option
@cluster_options
@output_option
def failover(  # noqa: PLR0917 - click passes options by name
    pipeline: str,
    to: str,
    yes: bool,
    wait: bool,
    timeout: float,
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Let another node lead PIPELINE, leader or not.

    A live leader is not asked. Its current load fails at the fence, and its successor applies
    that load again. If the leader answers, use `setl switchover`.
    """
    with joined(zookeeper, root) as arbiter:
        view = _seen(arbiter, pipeline, output)
        ident = view.ident
        confirm(before_failover(ident, view.leader, to=to), yes=yes)
        preference = preference_of(arbiter.channels.one(ident.channel), ident.pipeline)
        asked = requester()

        def send() -> Signal:
            return requests.failover(arbiter, ident, preference, asked, to=to)

        with acting(arbiter, "failover", str(ident)) as entry:
            sent = sent_by(send, ident, SignalKind.FAILOVER, output)
            entry.outcome = _sent_words(sent)
            if output == "table" and view.leader:
                console().print("What is in flight will be redelivered.")
            _follow(arbiter, ident, sent, wait=wait, limit=timeout, output=output)


def _seen(arbiter: Arbiter, name: str, output: str) -> PipelineView:
    """The pipeline that was named, shown as it is now."""
    ident = pipeline_named(arbiter.facts(), name)
    view = look_at(arbiter, ident.channel).pipeline(ident)
    if output == "table":
        # Without the library for tables, for which a refusal would wait.
        click.echo(topology_line(view))
    return view


def _cancel(arbiter: Arbiter, ident: PipelineId, output: str) -> None:
    def take_back() -> Signal:
        return requests.cancel(arbiter, ident, requester())[-1]

    with acting(arbiter, "cancel", str(ident)):
        signal = sent_by(take_back, ident, SignalKind.SWITCHOVER, output)
    outcome = Outcome(
        str(ident), signal.kind.value, "cancelled", from_=signal.leader, to=signal.to,
        at=moment(signal.at),
    )  # fmt: skip
    show(outcome, output, f"{ident}: the switchover scheduled at {outcome.at} is taken back")


def _sent_words(sent: Signal) -> str:
    """What is asked, for the log of actions."""
    when = f"scheduled at {moment(sent.at)}" if sent.at else "done or asked for"
    return f"{when}: {sent.leader or 'nobody'} → {sent.to or 'whoever is next'}"


def sent_by(send: Callable[[], Signal], ident: PipelineId, kind: SignalKind, output: str) -> Signal:
    """What `send` returns; if it is refused, the error that says so."""
    try:
        return send()
    except Refused as error:
        raise refusal(ident, kind, str(error), output) from None


def refusal(ident: PipelineId, kind: SignalKind, why: str, output: str) -> AnswerNo:
    """The error that says no and why; programs get an outcome too."""
    if output != "table":
        _print_outcome(Outcome(str(ident), kind.value, "refused", reason=why), output)
    return AnswerNo(f"{kind.value} of {ident} refused: {why}")


def _follow(
    arbiter: Arbiter, ident: PipelineId, sent: Signal, *, wait: bool, limit: float, output: str
) -> None:
    """Wait for the answer and for the new leader, and say what came of it."""
    kind, name = sent.kind.value, str(ident)
    if sent.at > time.time():
        outcome = Outcome(
            name, kind, "scheduled", from_=sent.leader, to=sent.to, at=moment(sent.at)
        )
        way = f"{sent.leader} → {sent.to or 'whoever is next'}"
        show(outcome, output, f"{kind} of {ident} scheduled at {outcome.at}: {way}")
        return
    if not wait:
        outcome = Outcome(name, kind, "sent", from_=sent.leader, to=sent.to)
        show(outcome, output, f"{kind} of {ident} sent; `setl list` shows it under way")
        return
    with busy(f"waiting for the new leader of {ident}"):
        outcome = carried_through(arbiter, ident, sent, limit, output)
    again = outcome.redelivered
    leads = leadership_words(outcome.leadership, outcome.epoch)
    rest = _UNKNOWN if again is None else f"{count(again, 'row')} redelivered"
    if outcome.state == "paused":
        rest = f"paused; `setl resume {ident.channel}` goes on"
    show(
        outcome,
        output,
        f"{time.strftime('%Y-%m-%d %H:%M:%S')} Successfully "
        + ("switched" if sent.kind is SignalKind.SWITCHOVER else "failed")
        + f' {ident} over from {sent.leader or "nobody"} to "{outcome.to}": {leads},'
        f" {outcome.seconds:.1f} s, {rest}",
    )


def carried_through(
    arbiter: Arbiter, ident: PipelineId, sent: Signal, limit: float, output: str = "table"
) -> Outcome:
    """Wait until a request is answered and the new leader works; returns what came of it.

    Args:
        arbiter: the cluster.
        ident: the pipeline.
        sent: the request, which is due.
        limit: seconds to wait for both.
        output: how an outcome that is an error is printed before it is raised; a table for not.

    Raises:
        AnswerNo: the request is refused, or the new leader does not work in time.
    """
    began = time.monotonic()
    with going_on("the request stands, see `setl list`"):
        answered = requests.await_answer(arbiter, ident, sent, limit)
    if answered.state is SignalState.REFUSED:
        raise refusal(ident, sent.kind, answered.answer, output)
    view = _working(arbiter, ident, sent, began + limit - time.monotonic())
    seconds = round(time.monotonic() - began, 3)
    if answered.state is SignalState.PENDING or view.state not in _WORKING:
        raise _not_working(view, sent, answered, seconds, output)
    if _came_to_another(view, sent):
        raise _left_again(view, sent, seconds, output)
    # One that is paused has read nothing yet, so nobody knows what comes again.
    again = _redelivered(arbiter, view) if view.state == "running" else None
    return Outcome(
        str(ident), sent.kind.value, "done", from_=sent.leader, to=view.leader,
        leadership=view.number or None, epoch=view.epoch, state=view.state, seconds=seconds,
        redelivered=again,
    )  # fmt: skip


def _working(arbiter: Arbiter, ident: PipelineId, sent: Signal, limit: float) -> PipelineView:
    """The pipeline once its new leader runs or stays failed, or as it is after `limit` seconds."""
    failed: tuple[int | None, float] = None, 0.0  # epoch, and since when it was seen to have failed
    for left in polling(limit, _POLL):
        try:
            view = look_at(arbiter, ident.channel).pipeline(ident)
        except Unreachable:
            if not left:
                raise
            continue
        now = time.monotonic()
        new = view.epoch is not None and view.epoch > sent.epoch
        if new and view.state == "failed" and failed[0] != view.epoch:
            failed = view.epoch, now
        stays = view.state == "failed" and now - failed[1] >= _LEAVES_SECONDS
        if (new and (stays or view.state in _WORKING)) or not left:
            return view
    raise AssertionError("the last look returns or raises")


def _came_to_another(view: PipelineView, sent: Signal) -> bool:
    """Whether who was to lead has left the lead again to somebody else."""
    if sent.to:
        return view.leader != sent.to
    return bool(sent.leader) and view.leader == sent.leader


def _left_again(view: PipelineView, sent: Signal, seconds: float, output: str) -> AnswerNo:
    """The error that a new leader could not lead, and that another one does now."""
    whys = [f"{s.node} cannot lead: {s.not_ready}" for s in view.standbys if s.not_ready]
    what = f"{sent.to or 'the new leader'} has left the lead again"
    leads = f"{view.leader} leads, {view.leadership}, {view.state}"
    why = "; ".join([f"came to another end after {seconds:.1f} s: {what}", *whys, leads])
    return _without_success(view, sent, why, output, ended="failed", seconds=seconds)


def _without_success(
    view: PipelineView,
    sent: Signal,
    why: str,
    output: str,
    *,
    ended: str,
    seconds: float | None = None,
) -> AnswerNo:
    """The error that a request failed, which programs are told on the output, too."""
    if output != "table":
        outcome = Outcome(
            str(view.ident), sent.kind.value, ended, reason=why, from_=sent.leader,
            to=view.leader, leadership=view.number or None, epoch=view.epoch, state=view.state,
            seconds=seconds,
        )  # fmt: skip
        _print_outcome(outcome, output)
    return AnswerNo(f"{sent.kind.value} of {view.ident} {why}")


def _redelivered(arbiter: Arbiter, view: PipelineView) -> int | None:
    """Rows applied again, once the new leader knows.

    None if nobody knows: the target does not tell, or the leader has not passed all that may come
    again for a while, and nothing has come yet.
    """
    for _ in polling(_ANSWER_SECONDS, _POLL):
        items = [item for item in arbiter.history.all(view.ident) if item.epoch == view.epoch]
        if items and (items[-1].redelivered is not None or items[-1].outage is not None):
            return items[-1].redelivered  # both are recorded at once, when the cost is known
    figures = look_at(arbiter, view.ident.channel).pipeline(view.ident).figures
    return int(figures.get("rows_redelivered") or 0) or None


def _not_working(
    view: PipelineView, sent: Signal, answered: Signal, seconds: float, output: str
) -> AnswerNo:
    """The error that there is no answer, or no new leader that works, after some seconds."""
    leads = f"{view.leader} leads, {view.leadership}, {view.state}" if view.leader else view.state
    if view.figures.get("error"):
        leads += f": {view.figures['error']}"
    ended, what, advice = "timeout", "is done, but nothing runs", ""
    if answered.state is SignalState.PENDING:
        what, advice = "is not done", "; the request stands, see `setl list`"
    elif view.state == "failed":
        ended, what = "failed", "is done, but the new leader failed"
        if any(standby.rank for standby in view.standbys):
            # The new leader answers, and has nothing in flight that would have to be redelivered.
            advice = f"; `setl switchover {view.ident}` lets another node lead"
    why = f"{what} after {seconds:.1f} s: {leads}{advice}"
    return _without_success(view, sent, why, output, ended=ended)


def show(outcome: Outcome, output: str, sentence: str) -> None:
    """Print an outcome: a sentence for people, named values for programs."""
    if output == "table":
        console().print(sentence)
    else:
        _print_outcome(outcome, output)


def _print_outcome(outcome: Outcome, output: str) -> None:
    print_value({name.rstrip("_"): value for name, value in asdict(outcome).items()}, output)
