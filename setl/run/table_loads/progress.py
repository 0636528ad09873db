"""What is told of a load of whole tables while it goes on."""

from __future__ import annotations

from dataclasses import replace

from setl.model.load_request import LoadRequest
from setl.model.table_load import TableLoad
from setl.run.measured.figures import LoadOutlook
from setl.run.measured.progress import Progress
from setl.run.table_loads.listed_tables import ListedTables
from setl.run.table_loads.throttle import Throttle


class LoadProgress:
    """Tells a pipeline's `Progress` how far its load has come, and what is left of it."""

    def __init__(self, progress: Progress, tables: ListedTables, throttle: Throttle) -> None:
        """Nothing is known of a load yet.

        Args:
            progress: is reported.
            tables: the source's.
            throttle: knows for what the load waits.
        """
        self._progress = progress
        self._tables = tables
        self._throttle = throttle
        self._outlook = LoadOutlook()

    def expect(self, load: TableLoad, request: LoadRequest | None) -> None:
        """Learn how many rows there are to load, now that the tables are listed."""
        sizes = self._tables.sizes_of(load)
        rows, size = sum(each.rows for each in sizes), sum(each.bytes for each in sizes)
        expected = rows if request is None or not request.where else None
        if request is not None and request.keys:
            expected = len(request.keys)
        row_bytes = size / rows if rows else 0.0
        self._outlook = LoadOutlook(rows_expected=expected, row_bytes=row_bytes)

    def publish(
        self, load: TableLoad, *, tables_left: int | None = None, paused: bool = False
    ) -> None:
        """Tell how far the load has come.

        Args:
            load: the load.
            tables_left: see `LoadOutlook`; likewise the next.
            paused: whether an operator has paused it.
        """
        size = self._tables.size_of(load.table)
        outlook = replace(
            self._outlook,
            table_rows_expected=None if size is None else size.rows,
            tables_left=tables_left,
            paused=paused,
            throttle_count=self._throttle.count,
            waits_for=self._throttle.waits_for,
        )
        self._progress.loads_tables(load, outlook)
