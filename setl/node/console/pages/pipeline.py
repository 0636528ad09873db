"""What the page of one pipeline shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arbiter.values import Channel, ChannelState, HistoryItem, PipelineId
from setl.node.cluster.endpoint_texts import endpoints_of
from setl.node.cluster.load_sentence import load_sentence
from setl.node.cluster.view import ClusterView, PipelineView, handover_sentence
from setl.node.console.links import channel_link, letters_link, series_link
from setl.node.console.pages.mapping import MappedTable, mapped_tables
from setl.node.console.pages.overview import PipelineRow, pipeline_row
from setl.node.console.pages.problems import Problem, of_contact, problems_with
from setl.node.console.pages.timeline import Timeline, timeline_of
from setl.node.console.pages.verification import VerificationPart, verification_part
from setl.operate import units

MOST_TABLES = 50
"""Tables whose rows are listed, those with the most rows first."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its name.

    Attributes:
        name: what it is.
        value: as text.
        note: more about it, "" for nothing.
    """

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class StageShare:
    """How much of the time a stage takes.

    Attributes:
        name: the stage.
        seconds: spent in it by all tasks, as text.
        share: of all stages, as text.
        x: where its part of the bar begins, of 1000; so with width.
        number: its position, which decides its pattern.
    """

    name: str
    seconds: str
    share: str
    x: int
    width: int
    number: int


@dataclass(frozen=True, slots=True)
class TableRows:
    """What was written to one target table or index in this leadership."""

    table: str
    upserts: str
    deletes: str
    contested: str


@dataclass(frozen=True, slots=True)
class LoadPart:
    """A load of whole tables.

    Attributes:
        sentence: how far it is.
        done: rows read; with `expected` for a bar, which is 0 if nobody knows.
        open: whether it is not over.
    """

    sentence: str
    done: int
    expected: int
    open: bool


@dataclass(frozen=True, slots=True)
class PipelinePage:
    """The page of a pipeline."""

    ident: PipelineId
    row: PipelineRow
    channel_link: str
    letters_link: str
    series_link: str
    source: str
    target: str
    problems: tuple[Problem, ...]
    handovers: tuple[str, ...]
    now: tuple[Figure, ...]
    counters: tuple[Figure, ...]
    stage: str
    stages: tuple[StageShare, ...]
    tables: tuple[TableRows, ...]
    tables_left_out: int
    load: LoadPart | None
    verification: VerificationPart | None
    timeline: Timeline
    history: tuple[HistoryItem, ...]
    mapping: tuple[MappedTable, ...]
    decisions: Mapping[str, str]
    movable: bool


def pipeline_page(
    view: ClusterView,
    ident: PipelineId,
    history: Sequence[HistoryItem],
    environment: Mapping[str, str] | None = None,
    *,
    contact: str = "connected",
) -> PipelinePage:
    """The page of a pipeline.

    Args:
        view: the cluster, which has its channel.
        ident: the pipeline.
        history: its past leaderships, oldest first.
        environment: as for `overview_of`.
        contact: how well the node that shows it reaches the arbiter.
    """
    pipeline, channel = view.pipeline(ident), view.facts.channels[ident.channel]
    source, target = endpoints_of(channel, ident.pipeline, environment)
    figures = pipeline.figures
    tables = _tables(figures.get("tables") or {})
    return PipelinePage(
        ident=ident,
        row=pipeline_row(pipeline),
        channel_link=channel_link(ident.channel),
        letters_link=letters_link(ident),
        series_link=series_link(ident),
        source=source,
        target=target,
        problems=(*of_contact(contact), *problems_with(pipeline)),
        handovers=tuple(handover_sentence(ident, signal) for signal in pipeline.handovers),
        now=tuple(_now(pipeline)),
        counters=tuple(_counters(figures)) if figures else (),
        stage=_stage(figures),
        stages=tuple(_stages(figures.get("seconds") or {})),
        tables=tables[:MOST_TABLES],
        tables_left_out=max(0, len(tables) - MOST_TABLES),
        load=_load(figures.get("table_load")),
        verification=verification_part(figures.get("verification"), view.at),
        timeline=timeline_of(history, view.at, leads=bool(pipeline.leader)),
        history=tuple(reversed(history)),
        mapping=tuple(_mapping(channel, ident)),
        decisions=dict(pipeline.decisions),
        movable=pipeline.channel_state is ChannelState.STOP and not pipeline.leader,
    )


def _mapping(channel: Channel, ident: PipelineId) -> list[MappedTable]:
    return mapped_tables(channel.definition, ident.pipeline)


def _now(view: PipelineView) -> list[Figure]:
    figures = view.figures
    if not figures:
        return []
    lags = [units.duration(figures.get(name)) for name in ("lag_p50", "lag_p99")]
    buffered, room = figures.get("buffered_bytes"), figures.get("buffer_bytes")
    return [
        Figure("lag", units.duration(figures.get("lag")), f"median {lags[0]}, 99 % {lags[1]}"),
        Figure("rows/s", units.rate(figures.get("rows_per_second")), "over the last 10 s"),
        Figure(
            "batches in flight",
            units.count(figures.get("pending")),
            f"{units.size(buffered)} of {units.size(room)} buffered" if room else "",
        ),
        Figure(
            "behind",
            units.count(figures.get("behind")),
            "records to the stream's end",
        ),
        # A leader that failed before it has found the checkpoint counts from 0, and knows nothing.
        Figure(
            "rows applied",
            units.count(figures.get("rows_total") if figures.get("position") else None),
            "since the first start",
        ),
        Figure("position", str(figures.get("position") or units.UNKNOWN)),
    ]


def _counters(figures: Mapping[str, Any]) -> list[Figure]:
    """What this leadership has counted; those first at which an operator looks first."""

    def counted(name: str, key: str, note: str = "") -> Figure:
        return Figure(name, units.count(figures.get(key)), note)

    return [
        counted("row changes", "rows_applied", "before compaction"),
        counted("rows written", "upserts", "after compaction"),
        counted("rows deleted", "deletes"),
        counted("redelivered", "rows_redelivered", "applied again, which changes nothing"),
        counted("echoes dropped", "echoes_dropped", "transactions that this channel wrote"),
        counted("echoes replicated", "echoes_replicated", "0 unless marks are meddled with"),
        counted("conflicts, source stayed", "conflicts_source"),
        counted("conflicts, target stayed", "conflicts_target"),
        counted("refused as older", "stale", "the target holds something newer"),
        counted("dead letters", "dead_letters", "wait for a decision"),
        counted("unmapped", "rows_unmapped", "no table mapping wants them"),
        counted("batches", "batches"),
        counted("loads", "loads", "Spark jobs"),
        counted("rollbacks", "retries"),
        counted("schema changes passed", "ddl_replicated", str(figures.get("last_ddl") or "")),
        counted("schema changes ignored", "ddl_ignored"),
        counted("statements skipped", "statements_skipped"),
        Figure(
            "held back",
            units.duration(figures.get("held_back_seconds")),
            "nothing was read, since nothing more fitted in",
        ),
    ]


def _stage(figures: Mapping[str, Any]) -> str:
    stage = figures.get("stage")
    if not stage or stage == "none":
        return ""
    return f"{stage}, for {units.duration(figures.get('stage_seconds'))}"


def _stages(seconds: Mapping[str, float]) -> list[StageShare]:
    whole, x = sum(seconds.values()), 0
    shares: list[StageShare] = []
    for number, (name, spent) in enumerate(seconds.items()):
        width = round(1000 * spent / whole) if whole else 0
        shares.append(
            StageShare(
                name, units.duration(spent), units.percent(spent, whole), x, width, number % 6
            )
        )
        x += width
    return shares


def _tables(tables: Mapping[str, Mapping[str, int]]) -> tuple[TableRows, ...]:
    by_rows = sorted(tables.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return tuple(
        TableRows(
            name,
            *(units.count(kinds.get(kind, 0)) for kind in ("upserts", "deletes", "contested")),
        )
        for name, kinds in by_rows
    )


def _load(load: Mapping[str, Any] | None) -> LoadPart | None:
    if not load:
        return None
    over = load["state"] in ("done", "cancelled", "failed")
    return LoadPart(
        load_sentence(load), int(load["rows"]), int(load.get("rows_expected") or 0), open=not over
    )
