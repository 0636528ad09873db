"""What the page of one pipeline shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arbiter.values import Channel, ChannelState, HistoryItem, PipelineId, leadership_words
from setl.node.cluster.pipeline_texts import endpoints_of, load_sentence
from setl.node.cluster.view import ClusterView, PipelineView, handover_sentence
from setl.node.console.links import channel_link, letters_link, series_link
from setl.node.console.pages.mapping import MappedTable, mapped_tables
from setl.node.console.pages.overview import PipelineRow, pipeline_row
from setl.node.console.pages.problems import Problem, of_contact, problems_with
from setl.operate import units

WIDTH = 1000
_MOST = 40
_LEAST_WIDTH = 4


@dataclass(frozen=True, slots=True)
class Term:
    """One leadership on the line.

    Attributes:
        nid: who led.
        x: where it begins, of `WIDTH`.
        width: how long it lasts, likewise; at least as much as can be seen.
        number: of the node, which decides its colour and pattern.
        title: everything about it.
    """

    nid: str
    x: int
    width: int
    number: int
    title: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The last leaderships.

    Attributes:
        terms: oldest first.
        begins: when the line begins, as text.
        ends: when it ends, as text.
        nodes: who led, with the number of each.
    """

    terms: tuple[Term, ...] = ()
    begins: str = ""
    ends: str = ""
    nodes: tuple[tuple[str, int], ...] = ()


def timeline_of(items: Sequence[HistoryItem], now: float, *, leads: bool) -> Timeline:
    """The last leaderships up to now.

    Args:
        items: all that is known, oldest first.
        now: seconds since 1970 UTC.
        leads: whether a node leads now; the last leadership ends now or is still on.
    """
    shown = items[-_MOST:]
    if not shown:
        return Timeline()
    begins = shown[0].at
    span = max(now - begins, 1.0)
    numbers = {nid: n for n, nid in enumerate(dict.fromkeys(item.nid for item in shown))}
    terms: list[Term] = []
    for number, item in enumerate(shown):
        following = shown[number + 1] if number + 1 < len(shown) else None
        ends = now if following is None else following.at - _surely_without(following)
        x = round(WIDTH * (item.at - begins) / span)
        width = max(_LEAST_WIDTH, round(WIDTH * max(0.0, ends - item.at) / span))
        width = min(width, WIDTH - min(x, WIDTH - _LEAST_WIDTH))
        terms.append(
            Term(
                item.nid,
                min(x, WIDTH - _LEAST_WIDTH),
                width,
                numbers[item.nid] % 6,
                _title(item, ends, over=following is not None or not leads),
            )
        )
    return Timeline(
        tuple(terms),
        units.moment(begins),
        units.moment(now),
        tuple((nid, n % 6) for nid, n in numbers.items()),
    )


def _surely_without(item: HistoryItem) -> float:
    """Seconds before a leadership in which nobody led for certain."""
    return (item.outage if item.outage_least is None else item.outage_least) or 0.0


def _title(item: HistoryItem, ends: float, *, over: bool) -> str:
    leadership = leadership_words(item.number, item.epoch)
    parts = [f"{item.nid}, {leadership}: {item.reason}; since {units.moment(item.at)}"]
    parts.append(f"for {units.duration(max(0.0, ends - item.at))}" + ("" if over else " so far"))
    if item.outage is not None:
        parts.append(f"outage {units.between(item.outage_least, item.outage)}")
    if item.redelivered is not None:
        parts.append(f"{units.count(item.redelivered, 'row', 'rows')} redelivered")
    return ", ".join(parts)


_KINDS = ("missing", "extra", "different", "undecided")


@dataclass(frozen=True, slots=True)
class FindingRow:
    """What was found in one table, as text."""

    table: str
    missing: str
    extra: str
    different: str
    undecided: str
    error: str


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """Standing verification.

    Attributes:
        sentence: how far it is, in a sentence.
        percent: how much of the pass is done, of 100.
        under_way: whether a pass is.
        findings: tables of which there is something to say.
        unnamed: differing tables besides.
    """

    sentence: str
    percent: int
    under_way: bool
    findings: Sequence[FindingRow]
    unnamed: int


def verification_part(
    verification: Mapping[str, Any] | None, now: float
) -> VerificationPart | None:
    """What a leader tells of it, None if it tells nothing.

    Args:
        verification: `setl.run.measured.figures.VerificationFigures` as JSON.
        now: seconds since 1970 UTC.
    """
    if not verification:
        return None
    percent, coming = (
        round(100 * (verification.get("coverage") or 0.0)),
        verification.get("next_at"),
    )
    differences = verification.get("differences") or 0
    words = [
        units.count(differences, "key differs", "keys differ") if differences else "nothing differs"
    ]
    words.append(
        f"pass {verification.get('number', 0)} {verification.get('state', '')}, {percent} % done"
    )
    if verification.get("table"):
        words.append(f"now {verification['table']}")
    if verification.get("waits_for"):
        words.append(f"is throttled by {verification['waits_for']}")
    if coming is not None:
        words.append(f"the next one in {units.duration(max(0.0, coming - now))}")
    if verification.get("repaired"):
        words.append(units.count(verification["repaired"], "key") + " repaired")
    if verification.get("tables_left_out"):
        words.append(
            units.count(verification["tables_left_out"], "table") + " could not be compared"
        )
    findings: Sequence[Mapping[str, Any]] = verification.get("findings") or ()
    return VerificationPart(
        ", ".join(words),
        percent,
        coming is None,
        [_row(found) for found in findings],
        int(verification.get("unnamed_tables") or 0),
    )


def _row(found: Mapping[str, Any]) -> FindingRow:
    return FindingRow(
        table=str(found.get("target") or found.get("table")),
        error=str(found.get("error") or ""),
        **{kind: units.count(found.get(kind, 0)) for kind in _KINDS},
    )


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
    behind = figures.get("behind")
    return [
        Figure("lag", units.duration(figures.get("lag")), f"p50 {lags[0]}, p99 {lags[1]}"),
        Figure("rows/s", units.rate(figures.get("rows_per_second")), "over the last 10 s"),
        Figure(
            "batches in flight",
            units.count(figures.get("pending")),
            f"{units.size(buffered)} of {units.size(room)} buffered" if room else "",
        ),
        # Not every source counts them: of a binlog nobody knows.
        *(
            ()
            if behind is None
            else (Figure("behind", units.count(behind), "records to the stream's end"),)
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
        counted("schema changes replicated", "ddl_replicated", str(figures.get("last_ddl") or "")),
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
