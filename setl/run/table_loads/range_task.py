"""What Spark's tasks run for a range of a table: from the source's server to the target.

Where the rows go as they are, and the source's server can write them as the target's takes them,
they pass without becoming values (`RenderingReader`, `RenderedSink`). Otherwise, and wherever that
finds anything amiss, they are read, transformed and loaded as changes of the stream are.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark import TaskContext

from setl import failpoints
from setl.bulk.range_rows import RangeRows
from setl.channel.routes.routing import Route
from setl.errors import FencedError, SetlError, TransientError
from setl.garbage_collection import keep_what_is_loaded
from setl.load.sink import LoadTicket, RenderedSink, SinkSettings
from setl.load.worker import sink_for
from setl.model.change import TargetChanges
from setl.run.runners.tasks import TaskReport, load, transform
from setl.transform.columns import ColumnPlan
from setl.transform.work import TransformPlan, WorkItem


def load_range(
    settings: SinkSettings, plan: TransformPlan, ticket: LoadTicket, slot: int, item: bytes
) -> TaskReport:
    """Load a pickled work item that reads its rows from a table."""
    work: WorkItem = pickle.loads(item)  # noqa: S301 - made by our own driver
    report = _as_rendered(settings, plan, replace(ticket, slot=slot), work)
    if report is None:
        return load(settings, ticket, slot, transform(plan, pickle.dumps([work], protocol=5)))
    task = TaskContext.get()
    if task is None:
        return report
    keep_what_is_loaded(collect_rarely=True)
    return replace(report, repeated=task.attemptNumber() > 0)


def _as_rendered(
    settings: SinkSettings, plan: TransformPlan, ticket: LoadTicket, work: WorkItem
) -> TaskReport | None:
    """Load it without a look at its rows; None if that cannot be done, and nothing was."""
    route, sink = _way(plan, work), sink_for(settings)
    if route is None or not isinstance(sink, RenderedSink):
        return None
    assert isinstance(work.table_rows, RangeRows)
    rows, schema = work.table_rows, work.table_rows.schema

    def read(form: str, places: Sequence[int]) -> Iterator[list[bytes]] | None:
        return rows.rendered(form, [schema.columns[i] for i in places])

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
