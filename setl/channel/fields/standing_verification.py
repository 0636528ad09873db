"""How a pipeline's tables are compared with their targets, again and again, while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from setl.channel.fields.checks import Duration
from setl.channel.rules.tables import policy_of
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, items, part
from setl.channel.text.strict_model import StrictModel

_TWO_WAY = (
    "cannot be `true` for pipelines[{0}], which writes what pipelines[{1}] reads, while {2} has no"
    " `conflict` policy: a row that the other site has just changed would look like one that"
    " differs, and be written over or deleted; give the table a policy, or leave `repair` out, and"
    " repair with `setl verify --repair` while nobody writes there"
)


class StandingVerification(StrictModel):
    """Tables are compared with their targets while the pipeline runs."""

    every: Duration = Field(
        description="Interval between the starts of two passes over all tables. If a pass takes"
        " longer, the next one follows at once.",
    )
    rate: int = Field(
        default=20_000,
        ge=1,
        description="Average rows a second that are compared; fewer while the pipeline has changes"
        " to apply.",
    )
    repair: bool = Field(
        default=False,
        description="Resend rows that differ, delete rows that only the target has, and compare"
        " again. In a two-way channel each table needs a `conflict` policy, which decides, and"
        " nothing is deleted.",
    )
    repair_limit: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Keys that one pass repairs at most. If more differ, it stops repairing and"
        " says so.",
    )


def verification_of(channel: Raw, pipeline: Raw) -> Raw:
    """What counts for a pipeline: its own `verify`, else the channel's; empty for none."""
    own = pipeline.get("verify")
    return part(channel.get("verify") if own is None else own)


def wrong_verification(channel: Raw) -> Iterator[tuple[Path, str]]:
    """Which pipelines can be verified, and repaired, without anybody looking."""
    pipelines = [part(each) for each in items(channel.get("pipelines"))]
    for i, pipeline in enumerate(pipelines):
        wanted = verification_of(channel, pipeline)
        if not wanted:
            continue
        of_its_own = pipeline.get("verify") is not None
        path: Path = ("pipelines", i, "verify") if of_its_own else ("verify",)
        whose = "" if of_its_own else f" (pipelines[{i}])"
        source, target = part(pipeline.get("source")), part(pipeline.get("target"))
        if target.get("type") == "kafka":
            yield path, f"means nothing to a relay, which writes records and no tables{whose}"
        elif source.get("type") == "kafka" and not source.get("database"):
            needs = "needs the `database` of the topic, since no record has the rows"
            yield path, f"{needs}{whose}"
        elif source.get("partitions") is not None or source.get("partition"):
            needs = "needs a topic of one partition, since the others' changes come apart"
            yield path, f"{needs}{whose}"
        if wanted.get("repair") is True:
            back = _reads_target(i, pipelines)
            plain = _without_policy(i, pipeline)
            if back is not None and plain:
                yield (*path, "repair"), _TWO_WAY.format(i, back, plain)


def _without_policy(at: int, pipeline: Raw) -> str:
    """The first table of a pipeline that has no conflict policy, "" if all have one."""
    tables = [part(table) for table in items(pipeline.get("tables"))]
    without = [i for i, table in enumerate(tables) if policy_of(table) is None]
    return f"pipelines[{at}].tables[{without[0]}]" if without else ""


def _reads_target(at: int, pipelines: Sequence[Raw]) -> int | None:
    """The pipeline that reads the server that another writes; None if there is none, or unknown.

    As `setl.channel.relations.directions.is_two_way` decides it.
    """
    target = part(pipelines[at].get("target"))
    if target.get("type") != "mysql":
        return None
    for i, other in enumerate(pipelines):
        source = part(other.get("source"))
        server = source if source.get("type") == "mysql" else part(source.get("database"))
        if i != at and (not server or _address(server) == _address(target)):
            return i
    return None


def _address(end: Raw) -> tuple[str, str]:
    return str(end.get("host")).lower(), str(end.get("port", 3306))
