"""How far the cut-over of a pipeline is, for whoever looks at the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.error_text import ErrorText
from setl.errors import FatalError
from setl.operate import units
from setl.operate.cutover.steps import CutOver, Step


@dataclass(frozen=True, slots=True)
class OpenCutover:
    """A cut-over that was begun and not put back.

    Attributes:
        words: how far it is, and what ends it.
        stops_writes: whether it keeps its source read-only and has not come to its end.
    """

    words: str
    stops_writes: bool


def stopping_cutover(arbiter: Arbiter, ident: PipelineId) -> str:
    """A cut-over that keeps its source read-only and has not come to its end; "" if there is none.

    Raises:
        ArbiterError: nobody can tell now.
    """
    record = _record(arbiter, ident)
    return _sentence(record) if record is not None and _stops_writes(record) else ""


def open_cutovers(arbiter: Arbiter, idents: Sequence[PipelineId]) -> dict[PipelineId, OpenCutover]:
    """How far the cut-overs of several pipelines are, of those that have one.

    With the commands that end it: whoever began it may be gone.
    """
    found = {ident: _read(value) for ident, value in arbiter.cutovers.all(idents).items()}
    return {
        ident: OpenCutover(_with_ways_out(record, ident), _stops_writes(record))
        for ident, record in found.items()
    }


def _stops_writes(record: CutOver | FatalError) -> bool:
    """Whether it keeps a source read-only and has not come to its end, as far as anybody knows."""
    if isinstance(record, FatalError):
        return True
    ended = record.step is Step.DONE and not record.aborting
    return not ended and record.restore is not None


def _sentence(record: CutOver | FatalError) -> ErrorText:
    if isinstance(record, FatalError):
        return record.text
    sentence = record.sentence(units.moment(record.begun))
    return ErrorText(sentence, sentence)


def _with_ways_out(record: CutOver | FatalError, ident: PipelineId) -> ErrorText:
    sentence = _sentence(record)
    if isinstance(record, FatalError):
        return sentence
    goes_on = record.step is not Step.DONE and not record.aborting
    carries_on = f"`setl cutover {ident}` carries it on, " if goes_on else ""
    text = f"{sentence}; {carries_on}`setl cutover {ident} --abort` puts it back"
    return ErrorText(text, text)


def _record(arbiter: Arbiter, ident: PipelineId) -> CutOver | FatalError | None:
    """What is kept of it, or why that cannot be read; None if there is nothing."""
    found = arbiter.cutovers.read(ident)
    return None if found is None else _read(found[0])


def _read(value: dict[str, Any]) -> CutOver | FatalError:
    try:
        return CutOver.from_json(value)
    except FatalError as error:
        return error
