"""When standing verification waits, so that what matters more gets on."""

from __future__ import annotations

from setl.counting import count
from setl.run.measured.figures import Figures, RunState
from setl.run.verification.parts import VerifyingParts

_LAG = 5.0  # seconds behind, above which nothing is compared if the channel file says nothing


def throttled_by(parts: VerifyingParts, figures: Figures) -> str:
    """What verification is throttled by now, for people; "" if to nothing. May ask the source.

    Raises:
        SetlError: the source does not answer.
    """
    limits = parts.limits
    reason = reason_to_wait(figures, limits.lag or _LAG)
    if reason or limits.threads_running is None:
        return reason
    opened = parts.tables()
    if opened is None:
        return ""
    with opened as there:
        busy = there.busy()
    too_many = busy > limits.threads_running
    return f"the source carries out {count(busy, 'statement')}" if too_many else ""


def reason_to_wait(figures: Figures, lag: float) -> str:
    """Why nothing is to be compared now, for people; "" if nothing speaks against it.

    Args:
        figures: how the run does.
        lag: seconds by which the target may be behind.
    """
    if figures.state is not RunState.RUNNING:
        return f"the pipeline is {figures.state.value}"
    if figures.stalled:
        return f"the pipeline stands still: {figures.stalled}"
    if figures.table_load is not None and not figures.table_load.ended:
        return "whole tables are loaded"
    if figures.lag is not None and figures.lag > lag:
        return f"the target is {figures.lag:.1f} s behind"
    return ""
