"""The command that asks a leader for something: rollback or restart."""

from __future__ import annotations

import time

import click

from arbiter import requests
from arbiter.values import Signal, SignalKind, SignalState
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
from setl.cli.leadership.handing_over import Outcome, refusal, sent_by, show
from setl.cli.terminal.completion import complete_pipeline


@click.command()
@click.argument("what", type=click.Choice(("rollback", "restart")), metavar="rollback|restart")
@click.argument("pipeline", shell_complete=complete_pipeline)
@click.option("--wait/--no-wait", default=True, help="Wait for the answer. [default: wait]")
@timeout_option
@cluster_options
@output_option
def signal(  # noqa: PLR0917 - click passes options by name
    what: str, pipeline: str, wait: bool, timeout: float, zookeeper: str, root: str, output: str
) -> None:
    """Ask the leader of PIPELINE for a rollback or restart.

    rollback: finish what is loading, go back to the stored checkpoint and on from there.
    restart: end the run in order and build it again, by the channel file as it is stored now.
    """
    kind = SignalKind(what)
    with joined(zookeeper, root) as arbiter:
        ident = pipeline_named(arbiter.facts(), pipeline)

        def ask() -> Signal:
            return requests.ask_leader(arbiter, ident, kind, requester())

        with acting(arbiter, what, str(ident)):
            sent = sent_by(ask, ident, kind, output)
        name = str(ident)
        if not wait:
            outcome = Outcome(name, what, "sent", from_=sent.leader, to=sent.leader)
            show(outcome, output, f"{what} of {ident} sent to {sent.leader}")
            return
        began = time.monotonic()
        answered = requests.await_answer(arbiter, ident, sent, timeout)
    seconds = round(time.monotonic() - began, 3)
    if answered.state is SignalState.REFUSED:
        raise refusal(ident, kind, answered.answer, output)
    done = answered.state is SignalState.DONE
    outcome = Outcome(
        name, what, "done" if done else "timeout", reason=answered.answer, from_=sent.leader,
        to=sent.leader, epoch=sent.epoch, seconds=seconds,
    )  # fmt: skip
    if done:
        show(outcome, output, f"{what} of {ident}: {answered.answer or 'done'}, {seconds:.1f} s")
        return
    if output != "table":
        show(outcome, output, "")
    raise AnswerNo(
        f"{what} of {ident} is not done after {timeout:g} s; {sent.leader} was asked, and the"
        " request stands"
    )
