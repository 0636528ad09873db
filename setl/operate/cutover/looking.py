"""How far the cut-over of a pipeline is, for whoever looks at the pipeline."""

from __future__ import annotations

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.errors import FatalError
from setl.operate import units
from setl.operate.cutover.steps import CutOver, Step


def stopping_cutover(arbiter: Arbiter, ident: PipelineId) -> str:
    """A cut-over that keeps its source read-only and has not come to its end; "" if there is none.

    Raises:
        ArbiterError: nobody can tell now.
    """
    record = _record(arbiter, ident)
    if record is None or isinstance(record, FatalError):
        return str(record or "")
    ended = record.step is Step.DONE and not record.aborting
    if ended or record.restore is None:
        return ""
    return record.sentence(units.moment(record.begun))


def cutover_sentence(arbiter: Arbiter, ident: PipelineId, *, ways_out: bool = False) -> str:
    """How far it is; "" if there is none.

    Args:
        arbiter: keeps the record.
        ident: the pipeline.
        ways_out: whether to name the commands that end it: whoever began it may be gone.
    """
    record = _record(arbiter, ident)
    if record is None or isinstance(record, FatalError):
        return str(record or "")
    sentence = record.sentence(units.moment(record.begun))
    if not ways_out:
        return sentence
    goes_on = record.step is not Step.DONE and not record.aborting
    carries_on = f"`setl cutover {ident}` carries it on, " if goes_on else ""
    return f"{sentence}; {carries_on}`setl cutover {ident} --abort` puts it back"


def _record(arbiter: Arbiter, ident: PipelineId) -> CutOver | FatalError | None:
    """What is kept of it, or why that cannot be read; None if there is nothing."""
    found = arbiter.cutover(ident)
    if found is None:
        return None
    try:
        return CutOver.from_json(found[0])
    except FatalError as error:
        return error
