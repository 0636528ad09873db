"""Collects every change of rows that both sites write, since any may be a conflict.

Elsewhere only the last state of a row in a load matters. Here the target has to see which row a
change replaces, and which was applied before, so nothing is compacted. (The target writes only
the last state all the same.) What the other site has taken in stands between the changes, as
rows of ``retl.setl_recent``, see `setl.systems.mysql.conflicts.agreement`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from setl.channel.routes.routing import Route, Router, selected_columns
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row
from setl.model.conflict import (
    RECENT_TABLE,
    ConflictPolicy,
    History,
    Mark,
    ReadRow,
    SiteWrites,
    Step,
    Values,
    WritesSeen,
    row_from,
    site_writes_from,
    values_of,
)
from setl.model.schema import RowSchema
from setl.model.unlogged_columns import unlogged_error
from setl.transform.columns import ColumnPlan, key_indexes
from setl.transform.work import TransformPlan, WorkItem, codec_named, single_items

_FULL_IMAGES = (
    "Set binlog_row_image=FULL at the source, or subscribe to all columns. `setl stop` the channel,"
    " move on with `setl position reset PIPELINE --to latest`, start it, and `setl load` both"
    " pipelines; rows that were deleted at one site meanwhile may come back"
)


class Histories:
    """Collects what a share of a batch says of rows that both sites write, in stream order."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._found: dict[tuple[int, tuple[str, ...], tuple[str, str]], History] = {}
        # Holds the schema too, lest another gets its id.
        self._plans: dict[tuple[int, int], tuple[RowSchema, ColumnPlan, History]] = {}
        self._marks: list[Mark] = []

    def collected(self) -> list[History]:
        """What was found, one for each target and set of columns, and one of marks."""
        found = [h for h in self._found.values() if h.steps or h.writes_seen or h.read]
        if self._marks:
            marks = History(RECENT_TABLE, ConflictPolicy("", from_home=False), "", (), ())
            marks.marks.extend(self._marks)
            found.append(marks)
        return found

    def add(self, route: Route, decoded: DecodedRows, version: int) -> None:
        """Take the changes of one entry in.

        Raises:
            ConfigurationError: the mapping does not fit the table.
            DataError: an image is missing or lacks columns.
        """
        schema, op, images = decoded
        if schema.unlogged:
            raise unlogged_error(schema.name, schema.unlogged)
        plan, history = self._planned(route, schema)
        for before, after in images:
            _require(schema, op, before, after)
            old = None if op is Op.INSERT or before is None else plan.row(before)
            new = None if op is Op.DELETE or after is None else plan.row(after)
            history.steps.extend(_steps(version, plan.key, old, new))

    def read(self, route: Route, decoded: DecodedRows, version: int) -> None:
        """Take rows in that were read from their table.

        Raises:
            ConfigurationError: the mapping does not fit the table.
        """
        plan, history = self._planned(route, decoded.schema)
        for _, row in decoded.images:
            if row is not None:
                mapped = plan.row(row)
                key = tuple(mapped[i] for i in plan.key)
                history.read.append(ReadRow(version, key, mapped))

    def add_report(self, decoded: DecodedRows, version: int) -> None:
        """Take rows of ``retl.setl_recent`` in; only inserted ones say anything.

        Raises:
            ConfigurationError: the two directions do not fit each other.
            DataError: a row cannot be read.
        """
        if decoded.op is not Op.INSERT:
            return
        names = [name.lower() for name in decoded.schema.names]
        for _, after in decoded.images:
            if after is not None:
                mark, message = _message(dict(zip(names, after, strict=True)), version)
                self._marks.append(mark)
                for route in self._router.route(*message.table) if message else ():
                    if message and route.conflict is not None:
                        self._heard(route, message, version)

    def _planned(self, route: Route, schema: RowSchema) -> tuple[ColumnPlan, History]:
        found = self._plans.get((route.index, id(schema)))
        if found is None:
            plan = ColumnPlan.build(schema, route)
            names = tuple(column.name for column in plan.columns)
            history = self._history(route, names, tuple(names[i] for i in plan.key))
            found = self._plans[route.index, id(schema)] = schema, plan, history
        return found[1:]

    def _heard(self, route: Route, message: _Message, version: int) -> None:
        pairs = selected_columns(route, message.columns)
        sources = tuple(message.columns[i] for i, _ in pairs)
        targets = tuple(target for _, target in pairs)
        positions = {
            source.lower(): target for source, target in zip(sources, targets, strict=True)
        }
        if any(name.lower() not in positions for name in message.key):
            raise ConfigurationError(
                f"a key column of {'.'.join(message.table)} does not pass in both directions",
                hint="`setl check` compares the two directions",
            )
        history = self._history(route, targets, tuple(positions[k.lower()] for k in message.key))
        row = None if message.writes.row is None else tuple(message.writes.row[i] for i, _ in pairs)
        key = tuple(message.key.values())
        history.writes_seen.append(WritesSeen(version, key, message.writes._replace(row=row)))
        if message.held is not None:
            held = tuple(message.held[i] for i, _ in pairs)
            history.held.append(ReadRow(version, key, held))

    def _history(self, route: Route, columns: tuple[str, ...], key: tuple[str, ...]) -> History:
        position = (route.index, columns, route.target)
        history = self._found.get(position)
        if history is None:
            policy = route.conflict or ConflictPolicy("", from_home=False)
            newest = policy.newest
            renamed = [t for t, s in route.renames.items() if s.lower() == newest.lower()]
            name = renamed[0] if renamed else newest
            history = History(route.target, policy, name, columns, key, returning=route.returning)
            self._found[position] = history
        return history


class _Message(NamedTuple):
    """What a row of ``retl.setl_recent`` says of a row, in names of the source's table."""

    table: tuple[str, str]
    columns: tuple[str, ...]
    key: Values
    writes: SiteWrites
    held: Row | None


def _message(record: Mapping[str, Any], version: int) -> tuple[Mark, _Message | None]:
    try:
        mark = Mark(version, int(record["number"]), int(record["through"]), int(record["passed"]))
        if record["said"] is None:
            return mark, None
        columns = tuple(map(str, json.loads(record["column_names"])))
        stored = json.loads(record["said"])
        return mark, _Message(
            table=(str(record["schema_name"]), str(record["table_name"])),
            columns=columns,
            key=values_of(record["row_key"]) or {},
            writes=site_writes_from(stored, columns),
            held=row_from(stored.get("held"), columns),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"a row of retl.setl_recent cannot be read: {error!r}",
            hint="Nothing but setl may write there",
        ) from error


def _steps(
    version: int, key: tuple[int, ...], before: Row | None, after: Row | None
) -> Iterator[Step]:
    """A change as what it does to each key: one that changes the key leaves one for another."""
    old = None if before is None else tuple(before[i] for i in key)
    new = None if after is None else tuple(after[i] for i in key)
    if old is not None and old == new:
        if before != after:  # else only columns that do not pass have changed
            yield Step(version, old, before, after)
        return
    if old is not None:
        yield Step(version, old, before, None)
    if new is not None:
        yield Step(version, new, None, after)


def _require(schema: RowSchema, op: Op, before: Row | None, after: Row | None) -> None:
    missing = (op is not Op.INSERT and before is None) or (op is not Op.DELETE and after is None)
    if missing or (before is not None and ABSENT in before) or (after and ABSENT in after):
        row = before or after
        raise DataError(
            f"a record of {schema.name} does not have both rows whole, before and after, without"
            " which conflicts cannot be found",
            hint=_FULL_IMAGES,
            table=schema.name,
            key="" if row is None else ", ".join(str(row[i]) for i in key_indexes(schema))[:200],
        )


class Separated(NamedTuple):
    """A share of a batch, separated from rows that both sites write.

    Attributes:
        rest: what is left.
        histories: what was taken out.
        rows: row changes in it that are not in the rest too.
        redelivered: of these, changes that were applied before.
    """

    rest: list[WorkItem]
    histories: list[History]
    rows: int = 0
    redelivered: int = 0


def separated(plan: TransformPlan, items: list[WorkItem]) -> Separated:
    """Take what both sites write out of a share, given in stream order.

    Raises:
        ConfigurationError: a mapping does not fit its table.
        DataError: a row cannot be decoded, or is not whole.
    """
    if not plan.router.decides:
        return Separated(items, [])
    codec = codec_named(plan.codec)
    decode = codec.decode
    rest: list[WorkItem] = []
    found = Histories(plan.router)
    rows = redelivered = 0
    for item in items:
        if item.table == RECENT_TABLE:
            for said in single_items(codec, (item,)):
                found.add_report(said.decoded or decode(said.payload, said.context), said.version)
            continue
        routes = [r for r in plan.router.route(*item.table) if r.index in item.routes]
        contested = [route for route in routes if route.conflict is not None]
        if not contested:
            rest.append(item)
            continue
        others = tuple(r.index for r in routes if r.conflict is None)
        if others:
            rest.append(item._replace(routes=others))
        take = found.add if item.table_rows is None else found.read
        for single in single_items(codec, (item,)):
            decoded = single.decoded or decode(single.payload, single.context)
            for route in contested:
                take(route, decoded, single.version)
            if not others:
                rows += len(decoded.images)
                if single.version <= plan.applied_through:
                    redelivered += len(decoded.images)
    return Separated(rest, found.collected(), rows, redelivered)
