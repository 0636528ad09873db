"""A cut-over on the console: how far it is, what is asked before, and putting it back.

It is carried out by the command, in a process of its own, see
`setl.node.console.actions.long_work`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from arbiter.errors import Conflict
from arbiter.requests import Refused
from arbiter.values import PipelineId
from setl.channel.file import Pipeline
from setl.channel.reading import resolve_and_parse
from setl.clock import SystemClock
from setl.node.console.actions.context import ActionContext, Fields, Preview, pipeline_of
from setl.operate import questions
from setl.operate.cutover.cluster_access import ClusterAccess, Seen
from setl.operate.cutover.course import Course
from setl.operate.cutover.steps import CutOver, Rules, Step, StepReport
from setl.operate.waiting import Waited

if TYPE_CHECKING:
    # Spark comes with it.
    from setl.bulk.verdict import TableVerdict

_SOURCE_SECONDS = 60.0
"""Seconds for which a source that does not answer is asked again."""


def look_before(context: ActionContext, name: str, _: Fields) -> Preview:
    """What is asked before one is begun or carried on."""
    ident = pipeline_of(name)
    found = context.arbiter.cutovers.read(ident)
    if found is None:
        return Preview(questions.before_cutover(ident), {})
    record = CutOver.from_json(found[0])
    if record.step is Step.DONE:
        raise Refused(f"the cut-over of {ident} is done: the application may write to its target")
    return Preview(questions.before_cutover(ident, record.step.value), {})


def look(context: ActionContext, name: str, _: Fields) -> Preview:
    """What is asked before it is put back; the form that confirms it says at which step it was."""
    ident = pipeline_of(name)
    record = _record(context, ident)
    done = record.step is Step.DONE
    question = questions.before_abort(ident) if done else questions.before_early_abort(ident)
    return Preview(question, {"step": record.step.value})


def abort(context: ActionContext, name: str, fields: Fields) -> str:
    """Put back what a cut-over has changed, and forget it."""
    ident = pipeline_of(name)
    record = _record(context, ident)
    if record.step is Step.DONE and fields.get("step") != Step.DONE.value:
        # The application may write to the target since then, which was not asked.
        raise Refused(f"the cut-over of {ident} is done by now; ask again")
    said: list[str] = []
    course = _course(context, ident, lambda step_report: said.append(step_report.text))
    try:
        before = course.abort()
    except Conflict as error:
        raise Refused(str(error)) from error
    restored = before is not None and before.restore is not None
    text = "the source is as before" if restored else "setl had changed nothing"
    return "; ".join([f"{ident}: the cut-over is over", *(said or [text])])


def _record(context: ActionContext, ident: PipelineId) -> CutOver:
    found = context.arbiter.cutovers.read(ident)
    if found is None:
        raise Refused(f"there is no cut-over of {ident}")
    return CutOver.from_json(found[0])


def _course(
    context: ActionContext, ident: PipelineId, tell: Callable[[StepReport], None]
) -> Course:
    file = resolve_and_parse(
        context.arbiter.channels.one(ident.channel).definition, context.environment
    )
    cluster = ClusterAccess(
        file,
        file.pipeline(ident.pipeline),
        arbiter=context.arbiter,
        look=_unseen,
        verify=_uncompared,
        nid=f"cutover.{context.nid}",
        clock=SystemClock(),
        pause=_pause(context),
        progress=_ignore,
    )
    rules = Rules(timeout=_SOURCE_SECONDS)
    return Course(ident, context.arbiter, cluster, rules, SystemClock(), _pause(context), tell)


def _pause(context: ActionContext) -> Callable[[float], None]:
    def pause(seconds: float) -> None:
        context.pause(seconds)

    return pause


# Putting back looks at the source alone; what follows belongs to the steps before.


def _unseen(_: PipelineId) -> Seen:
    raise Refused("a cut-over is carried on by `setl cutover`")


def _uncompared(_: Pipeline) -> Sequence[TableVerdict]:
    raise Refused("a cut-over is carried on by `setl cutover`")


def _ignore(_: PipelineId) -> Callable[[Waited], None]:
    return lambda _: None
