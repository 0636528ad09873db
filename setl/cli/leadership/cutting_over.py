"""The command that moves an application from a pipeline's source to its target."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from arbiter.arbiter import Arbiter
from arbiter.errors import Conflict
from arbiter.requests import Refused
from arbiter.values import PipelineId
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    cluster_options,
    joined,
    output_option,
    pipeline_named,
    requester,
    stored_file,
    timeout_option,
)
from setl.cli.access.spark_options import spark_options
from setl.cli.streams.position_waits import ClusterPositionWaiter
from setl.cli.streams.positions import own_nid
from setl.cli.streams.waiting import ProgressLine
from setl.cli.terminal.completion import complete_name
from setl.cli.terminal.confirmation import confirm, yes_option
from setl.cli.terminal.interruption import interrupt_when_left
from setl.cli.terminal.output import console, print_value, to_stderr
from setl.clock import SystemClock
from setl.node.cluster.view import look_at, moment
from setl.operate.cutover.cluster_access import ClusterAccess, Seen
from setl.operate.cutover.course import Course
from setl.operate.cutover.steps import (
    ORDER,
    WHAT,
    CutOver,
    Known,
    Rules,
    Step,
    StepReport,
    objections,
)
from setl.operate.questions import before_abort, before_cutover

if TYPE_CHECKING:
    # Spark comes with these.
    from setl.bulk.position_waiter import PositionWaiter
    from setl.bulk.verdict import TableVerdict
    from setl.channel.file import Pipeline
    from setl.run.spark.session import SparkSettings

    _Verify = Callable[[Pipeline, PositionWaiter], Sequence[TableVerdict]]

_ARRIVE_SECONDS = 60.0  # that rows on their way may take, before they count as different


@click.command()
@click.argument("name", shell_complete=complete_name, metavar="CHANNEL[/PIPELINE]")
@click.option("--abort", "what", flag_value="abort", help="Put back what a cut-over has changed.")
@click.option("--status", "what", flag_value="status", help="Say how far a cut-over is.")
@click.option("--dry-run", "what", flag_value="dry-run", help="Say what would be done, do nothing.")
@click.option("--by-hand", is_flag=True, help="You make the source read-only; setl waits for it.")
@click.option(
    "--max-lag", default=10.0, show_default=True, metavar="SECONDS",
    help="How far the target may be behind at the beginning.",
)  # fmt: skip
@click.option("--without-standby", is_flag=True, help="Go on though no other node could take over.")
@click.option(
    "--verify-again/--no-verify-again", default=True,
    help="Compare once more while the source is read-only. [default: verify again]",
)  # fmt: skip
@yes_option
@timeout_option
@spark_options
@cluster_options
@output_option
def cutover(  # noqa: PLR0917 - click passes options by name
    name: str,
    what: str | None,
    by_hand: bool,
    max_lag: float,
    without_standby: bool,
    verify_again: bool,
    yes: bool,
    timeout: float,
    spark: Callable[[str], SparkSettings],
    zookeeper: str,
    root: str,
    output: str,
) -> None:
    """Make a pipeline's source read-only and its target complete.

    A step that fails, Ctrl-C, SIGTERM and a terminal that is closed put everything back. A
    cut-over that was broken off is carried on by running the command again, from anywhere, or put
    back with --abort. Exit status 1: it was refused, and everything is as before.
    """
    rules = Rules(by_hand, max_lag, not without_standby, timeout, verify_again)
    with joined(zookeeper, root) as arbiter:
        ident = pipeline_named(arbiter.facts(), name)
        if what == "status":
            found = arbiter.cutovers.read(ident)
            _print_status(ident, CutOver.from_json(found[0]) if found else None, output)
            return
        with _verifying(spark) as verify:
            access = _access(arbiter, ident, verify)
            clock, said = SystemClock(), _Said(ident, output)
            course = Course(ident, arbiter, access, rules, clock, time.sleep, said)
            if what == "dry-run":
                _print_plan(ident, access.known(), rules, output)
                return
            interrupt_when_left()
            before = course.record()
            if what == "abort":
                with acting(arbiter, "cutover --abort", str(ident)):
                    _abort(course, ident, before, yes=yes, output=output)
                return
            if before is None or before.step is not Step.DONE:
                step = before.step.value if before else ""
                confirm(before_cutover(ident, step), yes=yes)
            try:
                with acting(arbiter, "cutover", str(ident)):
                    done = course.carry_out(requester().by)
            except (Conflict, Refused) as error:
                raise AnswerNo(str(error)) from None
            except (Exception, KeyboardInterrupt):
                _warn(ident)
                raise
    said.done(done, by_hand=by_hand, back=access.goes_back)


def _warn(ident: PipelineId) -> None:
    with suppress(OSError):
        to_stderr(
            f"the cut-over of {ident} is not put back, and its source may be read-only:"
            f" `setl cutover {ident} --abort` puts it back; without ZooKeeper, set the source's"
            " read_only OFF yourself",
        )


def _abort(
    course: Course, ident: PipelineId, before: CutOver | None, *, yes: bool, output: str
) -> None:
    if before is None:
        raise AnswerNo(f"there is no cut-over of {ident}")
    if before.step is Step.DONE:
        confirm(before_abort(ident), yes=yes)
    try:
        course.abort()
    except Conflict as error:
        raise AnswerNo(str(error)) from None
    except (Exception, KeyboardInterrupt):
        _warn(ident)
        raise
    if output != "table":
        print_value({"pipeline": str(ident), "outcome": "put back"}, output)
        return
    text = "the source is as before" if before.restore else "setl had changed nothing"
    console().print(f"{ident}: the cut-over is over, {text}")


@contextmanager
def _verifying(
    spark: Callable[[str], SparkSettings],
) -> Generator[_Verify]:
    """What compares; Spark starts when that is first wanted, and ends with the block."""
    # Imported late: pyspark comes with these, and not every cut-over compares.
    from setl.run.spark.session import start_context  # noqa: PLC0415
    from setl.transform.spark_on_demand import SparkOnDemand  # noqa: PLC0415

    session = SparkOnDemand(lambda: start_context(spark("setl cutover")))

    def verify(pipeline: Pipeline, waiter: PositionWaiter) -> Sequence[TableVerdict]:
        from setl.operate.verify import verify_pipeline  # noqa: PLC0415

        return verify_pipeline(session, pipeline, sample=0, waiter=waiter)

    try:
        yield verify
    finally:
        session.stop()


def _access(
    arbiter: Arbiter,
    ident: PipelineId,
    verify: _Verify,
) -> ClusterAccess:
    file = stored_file(arbiter.channels.one(ident.channel))
    pipeline = next(p for p in file.pipelines if p.name == ident.pipeline)
    return ClusterAccess(
        file,
        pipeline,
        arbiter=arbiter,
        look=lambda which: _seen(arbiter, which),
        verify=lambda which: verify(
            which,
            ClusterPositionWaiter(ident, which, lambda: arbiter, _ARRIVE_SECONDS, lambda _: None),
        ),
        nid=own_nid("cutover"),
        clock=SystemClock(),
        pause=time.sleep,
        progress=ProgressLine,
    )


def _seen(arbiter: Arbiter, ident: PipelineId) -> Seen:
    view = look_at(arbiter, ident.channel).pipeline(ident)
    figures = view.figures
    return Seen(
        wanted=view.channel_state,
        state=view.state,
        error=str(figures.get("error", "")),
        standbys=sum(s.warm and s.rank > 0 for s in view.standbys),
        lag=figures.get("lag"),
        dead_letters=figures.get("dead_letters"),
        failed=view.state == "failed",
    )


class _Said:
    """Says what is done as it is done, and keeps it for programs."""

    def __init__(self, ident: PipelineId, output: str) -> None:
        self._ident = ident
        self._output = output
        self._lines: list[dict[str, Any]] = []

    def __call__(self, step_report: StepReport) -> None:
        """Say one thing, on standard error: the result alone is on standard output."""
        problems = list(step_report.problems)
        self._lines.append(
            {"step": step_report.step.value, "text": step_report.text, "problems": problems}
        )
        to_stderr(": ".join([step_report.step.value, step_report.text, *problems]))

    def done(self, record: CutOver, *, by_hand: bool, back: bool) -> None:
        """Say that the application may move, and what is left to do."""
        left = _left_to_do(self._ident, by_hand=by_hand, back=back)
        if self._output != "table":
            value = {**_row(self._ident, record), "steps": self._lines, "left": left}
            print_value({**value, "outcome": "done"}, self._output)
            return
        out = console()
        out.print(f"{self._ident}: the application may write to the target now.")
        for each in left:
            out.print(f"  - {each}")


def _left_to_do(ident: PipelineId, *, by_hand: bool, back: bool) -> list[str]:
    warning = "read_only does not outlive a start of the server, unless its configuration says so"
    left = [
        "let the application's connections (its configuration, DNS, proxies) go to the target",
        f"keep the source read-only: {warning}",
        f"`setl cutover {ident} --abort` lets the source take writes again"
        + (", what you have set yourself aside" if by_hand else ""),
    ]
    if back:
        left.append("leave the channel running: what is written to the target goes back")
    else:
        left.append("there is no way back: what is written to the target is only there")
    return left


def _row(ident: PipelineId, record: CutOver) -> dict[str, Any]:
    return {
        "pipeline": str(ident),
        "step": record.step.value,
        "begun": moment(record.begun),
        "by": record.by,
        "source_changed": record.restore is not None,
        "aborting": record.aborting,
    }


def _print_status(ident: PipelineId, record: CutOver | None, output: str) -> None:
    if output != "table":
        print_value({"pipeline": str(ident)} if record is None else _row(ident, record), output)
    elif record is None:
        console().print(f"{ident}: there is no cut-over")
    else:
        console().print(f"{ident}: {record.sentence(moment(record.begun))}")


def _print_plan(ident: PipelineId, known: Known, rules: Rules, output: str) -> None:
    against = objections(known, rules)
    steps = [{"step": step.value, "what": WHAT[step]} for step in ORDER]
    back = known.way_back.name if known.way_back else ""
    if output != "table":
        value = {"pipeline": str(ident), "steps": steps, "objections": against, "way_back": back}
        print_value({**value, "lag": known.lag, "state": known.state}, output)
        return
    out = console()
    for number, step in enumerate(steps, 1):
        out.print(f"{number}. {step['step']}: {step['what']}")
    lag = "unknown" if known.lag is None else f"{known.lag:.1f} s"
    out.print(f"now: {known.state}, lag {lag}, way back: {back or 'none'}")
    for each in against:
        out.print(f"  against it: {each}")
