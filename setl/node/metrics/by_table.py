"""Rows written by table and kind, as Prometheus counters, up to a bound.

Each table is three series. Prometheus keeps each of them, so a channel of ten thousand tables must
not become thirty thousand series unasked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from setl.log import fields
from setl.model.table_rows import OTHERS, ByTable, TableRows
from setl.node.status import PipelineStatus

_log = logging.getLogger(__name__)

MOST_TABLES = 100
"""Tables of a pipeline that have series of their own, unless a node is told otherwise."""

_LABELS = ("channel", "pipeline")


class TableSeries:
    """Makes the series; remembers of which pipelines it has told that there are too many tables."""

    def __init__(self, most: int = MOST_TABLES) -> None:
        """Series of at most so many tables of each pipeline; 0 counts all tables together."""
        self._most = most
        self._warned: set[tuple[str, str, int]] = set()

    def collected(self, lines: Sequence[PipelineStatus]) -> Iterator[Metric]:
        """The families."""
        rows = CounterMetricFamily(
            "setl_table_rows",
            "Rows written for changes in the stream, by table and kind",
            labels=[*_LABELS, "table", "kind"],
        )
        beyond = GaugeMetricFamily(
            "setl_table_limit_reached",
            "1 if tables are counted together since there are too many, else 0",
            labels=_LABELS,
        )
        for line in lines:
            tables = bounded(line.figures.tables, self._most)
            key = [line.channel, line.pipeline]
            for name, counted in tables.items():
                for kind in ("upserts", "deletes", "contested"):
                    rows.add_metric([*key, name, kind], getattr(counted, kind))
            if line.mine:
                beyond.add_metric(key, float(OTHERS in tables))
                if OTHERS in tables:
                    self._add_metrics(line)
        yield rows
        yield beyond

    def _add_metrics(self, line: PipelineStatus) -> None:
        key = line.channel, line.pipeline, line.epoch
        if key in self._warned:
            return
        # Of this pipeline only the leadership that is now.
        self._warned = {each for each in self._warned if each[:2] != key[:2]} | {key}
        _log.warning(
            "tables beyond a limit are counted together in metrics",
            extra=fields(
                pipeline=f"{line.channel}/{line.pipeline}",
                limit=self._most,
                table=OTHERS,
                hint="--metrics-tables raises the limit",
            ),
        )


def bounded(tables: ByTable, most: int) -> ByTable:
    """The tables counted first, as they are, and all others together.

    Which are first never changes while a leadership lasts, so no series goes backwards.
    """
    own = {name: rows for name, rows in tables.items() if name != OTHERS}
    if len(own) <= most:
        return tables
    remaining = dict(islice(own.items(), most))
    rest = (rows for name, rows in tables.items() if name not in remaining)
    return {**remaining, OTHERS: sum(rest, TableRows())}
