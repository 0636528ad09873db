"""The command that asks a leader for something: rollback or restart."""

from __future__ import annotations

import time

import click

from arbiter import requests
from arbiter.requests import Refused
from arbiter.values import SignalKind, SignalState
from setl.cli.cluster import AnswerNo, asker, cluster_options, joined, output_option, pipeline_named
from setl.cli.handing_over import Outcome, refusal, show

_LIMIT = 60.0


@click.command()
@click.argument("what", type=click.Choice(("rollback", "restart")), metavar="rollback|restart")
@click.argument("pipeline")
@click.option("--wait/--no-wait", default=True, help="Wait for the answer. [default: wait]")
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=_LIMIT, show_default=True, metavar="SECONDS",
    help="How long to wait.",
)  # fmt: skip
@cluster_options
@output_option
def signal(  # noqa: PLR0917 - click passes options by name
    what: str, pipeline: str, wait: bool, timeout: float, zookeeper: str, root: str, output: str
) -> None:
    """Ask the leader of PIPELINE for a rollback or restart.

    rollback: finish what is loading, go back to the stored checkpoint and on from there.
    restart: end the run in order and build it anew, by the channel file as it is stored now.
    """
    kind = SignalKind(what)
    with joined(zookeeper, root) as arbiter:
        ident = pipeline_named(arbiter.facts(), pipeline)
        try:
            sent = requests.ask_leader(arbiter, ident, kind, asker())
        except Refused as error:
            raise refusal(ident, kind, str(error), output) from None
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
