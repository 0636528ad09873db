"""What a channel file accepts of the findings of a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setl.channel.file import Pipeline
from setl.systems.finding import FOUND_LATER, Finding, accepting


def with_accepted(pipeline: Pipeline, findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a pipeline, those that its `accept` names as accepted.

    An error that keeps the channel from working cannot be accepted, and says so. An entry that
    names nothing that was found is a warning: what it accepted has gone, and the next thing of
    that name would pass unseen. That is not said where a server did not answer.
    """
    used: set[str] = set()
    result: list[Finding] = []
    for finding in findings:
        names = accepting(pipeline.accept, finding.id)
        if finding.level in ("ok", "accepted") or not names:
            result.append(finding)
            continue
        used.update(names)
        if finding.acceptable:
            result.append(replace(finding, level="accepted"))
        else:
            advice = "This cannot be accepted: the channel would not work"
            result.append(replace(finding, hint=(*finding.hint, advice)))
    if any(finding.unseen for finding in findings):
        return result
    result += [
        Finding(
            "warning",
            f"`accept` names {pattern}, of which nothing was found",
            pipeline.name,
            ("Remove it",),
            code="accept-unused",
        )
        for pattern in pipeline.accept
        if pattern not in used and pattern.partition("@")[0] not in FOUND_LATER
    ]
    return result
