"""What a step of a load reads: ranges of tables, or some keys of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from setl.bulk.key_rows import KeyRows
from setl.bulk.rows_to_load import RangeRows, WholeRows
from setl.bulk.source_reader import SnapshotReader, SourceReader, SourceTables
from setl.channel.routes.routing import Route
from setl.errors import ConfigurationError, DataError, FatalError
from setl.model.change import Row
from setl.model.checkpoint import ShownPosition
from setl.model.key_values import normal_key
from setl.model.load_request import FREE_GATE, LoadRequest
from setl.model.table_load import TableLoad
from setl.transform.columns import identity_indexes, key_indexes
from setl.transform.work import TableRows, WorkItem

LoadItem = tuple[WorkItem, Sequence[Route]]
"""Rows that a task reads, with the routes that they go by."""


class MappedTable(NamedTuple):
    """A table of the source that is loaded.

    Attributes:
        name: schema and table.
        routes: the routes that its rows go by.
        entries: names of the channel file's entries that they come from.
    """

    name: tuple[str, str]
    routes: tuple[Route, ...]
    entries: frozenset[str]

    @property
    def text(self) -> str:
        """``schema.table``."""
        return ".".join(self.name)


class StepSize(NamedTuple):
    """How much a step reads, and as of when.

    Attributes:
        rows: rows of the step, about.
        at_once: how many ranges are loaded side by side.
        least: rows below which a range costs more than its rows.
        items: ranges of a step at most.
        position: what the rows have to show.
        back: the pipeline that writes into the source's tables, ``channel/pipeline``; "" without.
    """

    rows: int
    at_once: int
    least: int
    items: int
    position: ShownPosition
    back: str = ""


class Step(NamedTuple):
    """What a step reads.

    Attributes:
        items: what tasks read; empty if nothing is left.
        load: how far the load has come then.
        rows: rows that are looked at, whether or not they are loaded; 0 if nobody knows.
        refused: what is wrong with keys that are left out.
    """

    items: list[LoadItem]
    load: TableLoad
    rows: int = 0
    refused: tuple[str, ...] = ()


def tables_of(load: TableLoad, mapped: Sequence[MappedTable]) -> list[str]:
    """The tables that a load wants of those that are mapped, as ``schema.table``."""
    if load.entries:
        return [table.text for table in mapped if table.entries & set(load.entries)]
    wanted = {*load.tables, *load.only, *load.again}
    return [table.text for table in mapped if not load.tables or table.text in wanted]


def check_request(
    request: LoadRequest, mapped: Sequence[MappedTable], source: SourceTables
) -> None:
    """See whether a request can be carried out.

    Raises:
        ConfigurationError: it names a table that is not mapped, or a condition or a column that
            the table does not know.
        SetlError: the source cannot be asked.
    """
    names = {table.text: table.name for table in mapped}
    routes = {table.text: table.routes for table in mapped}
    unknown = [name for name in request.tables if name not in names]
    if unknown:
        raise ConfigurationError(
            f"the pipeline does not map {', '.join(unknown)}, or the source has no such table",
            hint="Name source tables as schema.table",
        )
    if not request.narrowed:
        return
    tables = request.tables or tuple(names)
    readers = source.readers([names[name] for name in tables])
    for name, reader in zip(tables, readers, strict=True):
        if reader is None:
            continue
        if not reader.schema.key and any(route.takes_keyless for route in routes[name]):
            raise ConfigurationError(
                f"{reader.name} has no key, so no row of it can be sent without the others",
                hint=f"Load it as a whole: `setl load --table {reader.name}`",
                table=reader.name,
            )
        for column in request.key:
            if column not in reader.schema.index:
                raise ConfigurationError(
                    f"{reader.name} has no column {column}",
                    hint="Give the keys again, with the columns that the table has now",
                    table=reader.name,
                )
        if request.where:
            reader.only(request.where).check()


def ranges_of(
    load: TableLoad,
    mapped: Mapping[str, MappedTable],
    where: str,
    source: SourceTables,
    size: StepSize,
    *,
    joined: Collection[tuple[str, str]] = (),
) -> Step:
    """The next ranges of the tables that a load wants.

    A table without a key is read as a whole, in a step of its own or as the last of one.

    Args:
        load: how far it has come.
        mapped: the tables that it wants, by ``schema.table``.
        where: condition for its rows, "" for all.
        source: the tables at the source.
        size: how much to read, and as of when.
        joined: targets that rows of several tables go to.

    Raises:
        ConfigurationError: a table without a key cannot be loaded.
        SetlError: the source cannot be asked.
    """
    items: list[LoadItem] = []
    budget, looked_at = size.rows, 0
    for name in load.left(list(mapped)):
        if budget <= 0 or len(items) >= size.items:
            break
        table = mapped[name]
        (reader,) = source.readers([table.name])
        after = load.after if load.table == name else None
        routes = table.routes
        if reader is not None and not reader.schema.key and after is None:
            whole = [route for route in routes if route.takes_keyless]
            routes = tuple(route for route in routes if not route.takes_keyless)
            if whole:
                items.append((_item(table, _as_a_whole(reader, whole, size, joined)), whole))
                load, budget = load.with_whole(name), 0
                if not routes:
                    load = load.at(name, None, 0)
                    break
        if reader is None:  # it was dropped, so there is nothing to load
            load = load.at(name, None, 0)
            continue
        rows = max(size.least, budget // size.at_once)
        count = max(1, min(budget // rows, size.items - len(items)))
        shown = reader.reading_at(size.position.position, inside=size.position.inside)
        chosen = shown.only(where) if where else shown
        for found in reader.ranges(after, rows, count):
            if found.rows or found.last is not None or after is None:
                for read, own in _by_policy(routes, chosen, size.back):
                    items.append((_item(table, RangeRows(read, found.part)), own))
            budget -= found.rows
            looked_at += found.rows
            after = found.last
            load = load.at(name, after, found.rows)
        if after is not None:
            break  # the next table is not begun before this one is done
    return Step(items, load, looked_at)


def _as_a_whole(
    reader: SourceReader,
    routes: Sequence[Route],
    size: StepSize,
    joined: Collection[tuple[str, str]],
) -> WholeRows:
    """What reads a table without a key, whose rows replace those of its targets.

    Raises:
        ConfigurationError: rows of other tables would be removed with them.
    """
    shared = [route.target for route in routes if route.target in joined]
    if shared:
        raise ConfigurationError(
            f"{reader.name} has no key, so a load replaces all rows of its target, and rows of"
            f" other tables go to {'.'.join(shared[0])}, too",
            hint="Give each table a target of its own, or a primary key, or name columns that are"
            " unique and never NULL under `key`",
            table=reader.name,
        )
    shown = reader.reading_at(size.position.position, inside=size.position.inside)
    if not isinstance(shown, SnapshotReader):
        raise FatalError("nobody can tell when these rows were read", table=reader.name)
    return WholeRows(shown)


def keys_of(
    load: TableLoad,
    mapped: Mapping[str, MappedTable],
    request: LoadRequest,
    source: SourceTables,
    size: StepSize,
) -> Step:
    """The next keys of a request; arguments and errors as `ranges_of`."""
    table = mapped[request.tables[0]]
    if not load.left([table.text]):
        return Step([], load)
    done = int(str(load.after[0])) if load.after else 0
    (reader,) = source.readers([table.name])
    given = request.keys[done : done + max(size.least, size.rows)]
    done += len(given)
    moved = load.at(table.text, (done,) if done < len(request.keys) else None, len(given))
    if reader is None or not given:
        return Step([], moved)
    own = key_indexes(reader.schema, table.routes[0].key)
    names = request.key or tuple(reader.schema.columns[i].name for i in own)
    key = tuple(reader.schema.columns[reader.schema.index[name]] for name in names)
    keys: list[Row] = []
    refused: list[str] = []
    for values in given:
        try:
            keys.append(normal_key(key, values))
        except DataError as error:
            if request.reason != FREE_GATE:
                raise
            refused.append(error.message)
    if not keys:
        return Step([], moved, refused=tuple(refused))
    found_by = tuple(reader.schema.columns[i] for i in own)
    if not set(found_by) < set(key):
        found_by = ()
    deletes = _identified_by(names, reader)
    items: list[LoadItem] = []
    for reported in (True, False):
        routes = [route for route in table.routes if deletes(route) is reported]
        if routes:
            shown = reader.reading_at(size.position.position, inside=size.position.inside)
            for read, own in _by_policy(routes, shown, size.back):
                of_keys = KeyRows(read, key, tuple(keys), reported, found_by)
                items.append((_item(table, of_keys), own))
    return Step(items, moved, len(keys), tuple(refused))


def _identified_by(names: Sequence[str], reader: SourceReader) -> Callable[[Route], bool]:
    """Whether values of these columns are enough to delete what a route has made of a row."""
    schema = reader.schema

    def identifies(route: Route) -> bool:
        if route.conflict is not None:
            return False  # nobody says when the row went, so it is the policy's alone
        identity = identity_indexes(schema, route.key, route.routing)
        return route.processor is None and {schema.columns[i].name for i in identity} <= set(names)

    return identifies


def _by_policy(
    routes: Sequence[Route], reader: SourceReader, back: str
) -> Iterator[tuple[SourceReader, Sequence[Route]]]:
    """Routes with what reads their rows: those that both sites write have to be decided."""
    contested = [route for route in routes if route.conflict is not None]
    others = [route for route in routes if route.conflict is None]
    if contested:
        yield reader.decided(back), contested
    if others:
        yield reader, others


def _item(table: MappedTable, rows: TableRows) -> WorkItem:
    return WorkItem((), 0, (), b"", table.name, table_rows=rows)
