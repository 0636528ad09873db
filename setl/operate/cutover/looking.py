"""How far the cut-over of a pipeline is, for whoever looks at the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    if isinstance(record, CutOver):
        ended = record.step is Step.DONE and not record.aborting
        if ended or record.restore is None:
            return ""
    return _sentence(record)


def cutover_sentence(arbiter: Arbiter, ident: PipelineId) -> str:
    """How far it is; "" if there is none."""
    return _sentence(_record(arbiter, ident))


def open_cutovers(arbiter: Arbiter, idents: Sequence[PipelineId]) -> dict[PipelineId, str]:
    """The same for several pipelines at once, of those that have one.

    With the commands that end it: whoever began it may be gone.
    """
    found = arbiter.cutovers(idents)
    return {ident: _with_ways_out(_read(value), ident) for ident, value in found.items()}


def _sentence(record: CutOver | FatalError | None) -> str:
    if record is None or isinstance(record, FatalError):
        return str(record or "")
    return record.sentence(units.moment(record.begun))


def _with_ways_out(record: CutOver | FatalError, ident: PipelineId) -> str:
    sentence = _sentence(record)
    if isinstance(record, FatalError):
        return sentence
    goes_on = record.step is not Step.DONE and not record.aborting
    carries_on = f"`setl cutover {ident}` carries it on, " if goes_on else ""
    return f"{sentence}; {carries_on}`setl cutover {ident} --abort` puts it back"


def _record(arbiter: Arbiter, ident: PipelineId) -> CutOver | FatalError | None:
    """What is kept of it, or why that cannot be read; None if there is nothing."""
    found = arbiter.cutover(ident)
    return None if found is None else _read(found[0])


def _read(value: dict[str, Any]) -> CutOver | FatalError:
    try:
        return CutOver.from_json(value)
    except FatalError as error:
        return error
