"""What Spark's tasks run for a range of a table: from the source's server to the target.

Where the rows go as they are, and the source's server can write them as the target's takes them,
they pass without becoming values (`RenderingReader`, `RenderedSink`). Otherwise, and wherever that
finds anything amiss, they are read, transformed and loaded as changes of the stream are.

Rows of a table without a key replace those of the target, see `ReplacingSink`.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark import TaskContext

from setl import failpoints
from setl.bulk.rows_to_load import RangeRows, WholeRows
from setl.channel.routes.routing import Route
from setl.errors import FatalError, FencedError, SetlError, TransientError
from setl.garbage_collection import freeze_loaded_objects
from setl.load.sink import LoadTicket, RenderedSink, ReplacingSink, SinkSettings, WholeTable
from setl.load.worker import sink_for
from setl.model.change import TargetChanges
from setl.model.loaded import Loaded
from setl.run.runners.tasks import TaskReport, load, transform
from setl.transform.columns import ColumnPlan
from setl.transform.work import TransformPlan, WorkItem


def load_range(
    settings: SinkSettings, plan: TransformPlan, ticket: LoadTicket, slot: int, item: bytes
) -> TaskReport:
    """Load a pickled work item that reads its rows from a table."""
    work: WorkItem = pickle.loads(item)  # noqa: S301 - made by our own driver
    ticket = replace(ticket, slot=slot)
    if isinstance(work.table_rows, WholeRows):
        report = _as_a_whole(settings, plan, ticket, work, work.table_rows)
    else:
        report = _as_rendered(settings, plan, ticket, work)
    if report is None:
        return load(settings, ticket, slot, transform(plan, pickle.dumps([work], protocol=5)))
    task = TaskContext.get()
    if task is None:
        return report
    freeze_loaded_objects(collect_rarely=True)
    return replace(report, repeated=task.attemptNumber() > 0)


def _as_a_whole(
    settings: SinkSettings, plan: TransformPlan, ticket: LoadTicket, work: WorkItem, rows: WholeRows
) -> TaskReport:
    """Replace what targets have of a table without a key."""
    sink, loaded = sink_for(settings), Loaded()
    if not isinstance(sink, ReplacingSink):
        raise FatalError("rows of a table without a key go to a target that does not count them")
    try:
        for route in plan.router.route(*work.table):
            if route.index in work.routes:
                columns = ColumnPlan.build(rows.schema, route, keyless=True)
                change = TargetChanges(
                    route.target,
                    columns.columns,
                    columns.key,
                    group=route.group,
                    source=rows.schema.name,
                    mapped_by=route.mapped_by,
                    keyless=True,
                )
                failpoints.reached("task.before_load")
                loaded += sink.replace_rows(ticket, change, partial(_opened, ticket, rows, columns))
    except SetlError as error:
        return TaskReport(error=error)
    return TaskReport(replace(loaded, rows=loaded.upserts))


@contextmanager
def _opened(ticket: LoadTicket, rows: WholeRows, columns: ColumnPlan) -> Generator[WholeTable]:
    """A table's rows as its target gets them, with the version of their position."""
    with rows.reader.snapshot(rows.schema.columns) as snapshot:
        # The stream counts a file's length when it leaves it.
        counted = replace(ticket, files=ticket.files.past_all(snapshot.files))
        through = counted.version_of(snapshot.position)
        yield WholeTable(through, map(columns.rows, snapshot.rows))


def _as_rendered(
    settings: SinkSettings, plan: TransformPlan, ticket: LoadTicket, work: WorkItem
) -> TaskReport | None:
    """Load it without a look at its rows; None if that cannot be done, and nothing was."""
    route, sink = _way(plan, work), sink_for(settings)
    if route is None or not isinstance(sink, RenderedSink):
        return None
    assert isinstance(work.table_rows, RangeRows)
    rows, schema = work.table_rows, work.table_rows.schema

    def read(form: str, positions: Sequence[int]) -> Iterator[list[bytes]] | None:
        return rows.rendered(form, [schema.columns[i] for i in positions])

    try:
        columns = ColumnPlan.build(schema, route)
        change = TargetChanges(
            route.target,
            columns.columns,
            columns.key,
            group=route.group,
            source=schema.name,
            mapped_by=route.mapped_by,
        )
        failpoints.reached("task.before_load")
        loaded = sink.apply_rendered(ticket, change, read)
    except (FencedError, TransientError) as error:
        return TaskReport(error=error)
    except SetlError:
        return None  # it is found again, and then with the row that it is about
    return None if loaded is None else TaskReport(replace(loaded, rows=loaded.upserts))


def _way(plan: TransformPlan, work: WorkItem) -> Route | None:
    """The only route of rows that go to a table as they are; None if theirs is another."""
    if not isinstance(work.table_rows, RangeRows):
        return None
    routes = [r for r in plan.router.route(*work.table) if r.index in work.routes]
    if len(routes) != 1:
        return None
    (route,) = routes
    # Rows that a mapping's key identifies may be several with the same key.
    plain = route.plain and not route.key and route.conflict is None
    return route if plain and not route.into_index else None
