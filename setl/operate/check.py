"""Checks a channel against the real servers, and reports everything that is missing.

Nothing is changed on any server, but for a row of no meaning that a probe writes if it is asked
for; and nothing but a defect raises: a server that does not answer is a finding like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from setl.channel.file import ChannelFile, Pipeline
from setl.channel.relations.directions import (
    comes_back,
    is_two_way,
    partitions_read,
    way_back,
)
from setl.channel.relations.overwriting import overwritten_by_loads
from setl.channel.routes.routing import Router
from setl.select.checkpoints.folder import container_sign, lost_with_container
from setl.systems.finding import FOUND_LATER, Finding, Report, accepting
from setl.systems.pipeline_check import ExpressionCheck, PipelineCheck
from setl.systems.port import CreatingTarget, nothing_to_create
from setl.systems.registry import system_of

_NOTHING: Final[Mapping[str, Sequence[Finding]]] = MappingProxyType({})


def check_channel(
    file: ChannelFile,
    *,
    expressions: ExpressionCheck | None = None,
    probe: bool = False,
    beside: Mapping[str, Sequence[Finding]] = _NOTHING,
    targets: bool = True,
) -> list[Finding]:
    """Check all pipelines of a channel.

    Args:
        file: the channel, its references resolved.
        expressions: looks at the `where`, `columns` and `processor` of a route over a table and
            raises SetlError if they would not work; None leaves them unchecked.
        probe: whether to write a row into the mark table where only that tells whether marks
            come out of a subscription; see `setl.systems.kafka.preflight.mark_probe`.
        beside: what is known from the other channels of the cluster, by the pipeline's name.
        targets: whether the targets are known, and asked, too.

    Returns:
        The findings, pipeline by pipeline, source before target, in an order that is the same
        each time.
    """
    findings: list[Finding] = []
    for pipeline in file.pipelines:
        for other in mistaken_for_echoes(file, pipeline):
            Report(pipeline.name, findings).error(
                f"what {other} writes to the source would be dropped here as the channel's own"
                " echo, and never reach the target",
                f"Put {pipeline.name} into a channel of its own; or, if it is the way back of"
                f" {other}, write `host` and `port` of each server in the same way in both",
                code="foreign-echo",
            )
        router = Router(pipeline)
        asked = router.entries_to_load(every=pipeline.source.loads_tables)
        loaded = {entry.mapping.from_ for entry in router.entries if entry.name in asked}
        overwritten = [t for t in overwritten_by_loads(file, pipeline) if t in loaded]
        if overwritten:
            Report(pipeline.name, findings).warning(
                f"a load replaces rows of {', '.join(overwritten)} that clients of the target"
                " change meanwhile: what they write may come to the source after it is read",
                f"Write to these tables only at the source of {pipeline.name} until the load is"
                " done, or give them a `conflict` policy",
                code="overwritten-by-load",
            )
        found = check_pipeline(
            PipelineCheck(
                pipeline,
                file.channel,
                two_way=is_two_way(file, pipeline),
                back=way_back(file, pipeline),
                comes_back=comes_back(file, pipeline),
                partitions=partitions_read(file, pipeline),
                expressions=expressions,
                probe=probe,
                knows_target=targets,
            )
        )
        findings += with_accepted(pipeline, [*beside.get(pipeline.name, ()), *found])
    return findings


def check_pipeline(check: PipelineCheck) -> list[Finding]:
    """Check one pipeline; see `check_channel`."""
    findings: list[Finding] = []
    pipeline = check.pipeline
    origin = pipeline.source.origin
    source = Report(
        f"{pipeline.name}, source {pipeline.source.address}",
        findings,
        end="source",
        server=f"{origin.host}:{origin.port}" if origin else pipeline.source.address,
    )
    target = Report(
        f"{pipeline.name}, target {pipeline.target.address}",
        findings,
        end="target",
        server=pipeline.target.address,
    )
    sign = container_sign() if pipeline.checkpoint == "file" else ""
    if sign:
        source.warning(
            lost_with_container(sign),
            "Put `checkpoint_file` on a volume that stays, or leave `checkpoint` out",
            code="checkpoint-in-container",
        )
    creates = any(table.create for table in pipeline.tables) or pipeline.create
    with check.open:
        with source.failing():
            system_of(pipeline.source).preflight(check, source)
        with target.failing():
            system = system_of(pipeline.target)
            if creates and not isinstance(system, CreatingTarget):
                refused = nothing_to_create()
                target.error(refused.message, refused.hint, code="nothing-to-create")
            if check.knows_target:
                system.preflight(check, target)
    return findings


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


def mistaken_for_echoes(file: ChannelFile, pipeline: Pipeline) -> list[str]:
    """Names of pipelines of the channel whose changes `pipeline` would drop on their way on.

    A pipeline drops every transaction that carries its channel's mark, wherever it came from. That
    is right for the way back of a two-way channel, where such a change came from the target. It is
    wrong for a third pipeline: one that feeds an index from site A would never see what arrives at
    A from site B, and nothing would fail.

    Servers are compared as they are written; of what database a DTS source is, it may not say.
    """
    origin, site = pipeline.source.origin, pipeline.target.site
    if origin is None or pipeline.target.is_log:
        return []  # a relay drops nothing
    source = (origin.host, origin.port)
    names: list[str] = []
    for other in file.pipelines:
        if other is pipeline or other.target.site != source:
            continue
        origin = other.source.origin
        # If no database is named, it may be the target's subscription.
        address = site if origin is None else (origin.host, origin.port)
        comes_back = site is not None and address == site
        if not comes_back:
            names.append(other.name)
    return names
