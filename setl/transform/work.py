"""Transforms a task's share of a batch before anything is loaded.

Decode, compact by key, map columns: rows entries go in, changes of targets come out. No Spark
here and no connections, so all of it can be tested by calling it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from setl.channel.routing import Route, Router
from setl.codec.binlog.rows import BinlogRowCodec
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.row_codec import RowCodec
from setl.codec.scanning import RowScanner
from setl.errors import ConfigurationError, DataError
from setl.model.change import DecodedRows, Row, TargetChanges
from setl.model.checkpoint import Place
from setl.model.document import DocumentForm
from setl.model.faulty import FaultyRow, RawRecord
from setl.model.schema import RowSchema
from setl.transform.columns import ColumnPlan, identity_indexes, key_indexes
from setl.transform.compaction import Compactor, Survivors
from setl.transform.documents import DocumentKeys, DocumentSource
from setl.transform.isolating import Refused, faults_one_by_one, null_keys, take_out, undecodable
from setl.transform.lazy_images import LatestImages, UndecodedRowError
from setl.transform.placement import bucket_of, homes_of, spreads
from setl.transform.processing import processed
from setl.transform.rereading import Lookup, RereadRows
from setl.transform.unchanged import UnchangedRows


class TableRows(Protocol):
    """Rows that a task reads from their table. Picklable."""

    @property
    def schema(self) -> RowSchema:
        """The table."""
        ...

    def read(self) -> Iterator[DecodedRows]:
        """The rows as inserts, some thousand at a time.

        Raises:
            SetlError: the source cannot be asked.
        """
        ...


class WorkItem(NamedTuple):
    """One rows entry on its way to a task: a record, or a run of them.

    Attributes:
        routes: indexes of the routes its table goes by.
        version: order in the source, see `document_version`; of a run, of its last record.
        context: see `Entry.context`.
        payload: see `Entry.payload`.
        table: schema and table, for messages.
        decoded: the rows, if they are decoded already, as those of a dead letter are.
        first: number of the first of them in its record.
        table_rows: what reads the rows, if they do not come from the stream.
    """

    routes: tuple[int, ...]
    version: int
    context: tuple[bytes, ...]
    payload: bytes
    table: tuple[str, str] = ("", "")
    decoded: DecodedRows | None = None
    first: int = 0
    table_rows: TableRows | None = None


@dataclass(frozen=True, slots=True)
class TransformPlan:
    """What tasks need to know of a pipeline; picklable.

    Attributes:
        codec: see `codec_named`.
        router: the pipeline's routes, by table.
        applied_through: changes up to this version were applied by an earlier leadership.
        undivided: targets whose unique values can move between rows, see `spreads`.
        isolates: whether faulty rows are taken out; else the first one is an error.
        excluded: rows known to be faulty, by index of the route, key and version.
        documents: where documents of several tables' rows are looked up; None if there are none.
        lookup: how rows of routes with `Route.rereads` are looked up; None if there are none.
    """

    codec: str
    router: Router
    applied_through: int = 0
    undivided: frozenset[tuple[str, str]] = frozenset()
    isolates: bool = False
    excluded: Mapping[tuple[int, Row, int], DataError] = field(default_factory=dict[Any, Any])
    documents: DocumentSource | None = None
    lookup: Lookup | None = None

    def ending_at(self, place: Place | None) -> TransformPlan:
        """The plan for a load that ends at this place of the stream."""
        return (
            self if self.lookup is None else replace(self, lookup=self.lookup._replace(place=place))
        )


class Compacted(NamedTuple):
    """What is left of a share after compaction.

    Attributes:
        survivors: for each route and shape of its rows, one change for each key.
        rows: row changes decoded.
        redelivered: of these, changes that were applied before.
        faulty: what was taken out, each with its route.
    """

    survivors: list[tuple[Route, RowSchema, Survivors]]
    rows: int
    redelivered: int
    faulty: list[tuple[Route, FaultyRow]]


_PHYSICAL = "dts-physical"  # DTS rows under the names of the parts that their table is split into
_codecs: dict[str, RowCodec] = {}


def codec_named(name: str) -> RowCodec:
    """The codec of this process; codecs keep caches, so there is one of each.

    Args:
        name: see `setl.channel.endpoint.SourceConfig.codec`.
    """
    codec = _codecs.get(name)
    if codec is None:
        if name == "binlog":
            codec = BinlogRowCodec()
        else:
            codec = DtsRowCodec(logical_names=name != _PHYSICAL)
        _codecs[name] = codec
    return codec


def single_items(codec: RowCodec, items: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """Work items of one record each, in order; see `RowCodec.records`."""
    records_of = codec.records
    for item in items:
        if item.table_rows is not None:
            for rows in item.table_rows.read():
                yield item._replace(decoded=rows, table_rows=None)
            continue
        records = () if item.decoded is not None else records_of(item.payload)
        # Also of what is left of a run, which is a run of one record then.
        for older, payload in records or ((0, item.payload),):
            yield item._replace(version=item.version - older, payload=payload)


def compact(plan: TransformPlan, items: Iterable[WorkItem]) -> Compacted:
    """Decode a share, given in stream order, and keep the last change of each key.

    Raises:
        DataError: an entry cannot be decoded or a row has no key, and nothing is isolated.
    """
    share = list(items)
    try:
        return _compacted(plan, share, scanning=True)
    except UndecodedRowError:
        # Which record is at fault, and what else it holds, comes out when each is decoded.
        return _compacted(plan, share, scanning=False)


def _compacted(plan: TransformPlan, share: list[WorkItem], *, scanning: bool) -> Compacted:
    # Rows of a table come alone, and as they were read.
    if any(item.table_rows is not None for item in share):
        plan = replace(plan, lookup=None)
    compaction = _Compaction(plan, codec_named(plan.codec))
    take = compaction.take_run if scanning else compaction.take_records
    for item in share:
        take(item)
    return compaction.compacted()


Taking = Compactor | DocumentKeys | RereadRows
"""What takes the changes of a table in."""


class _Table(NamedTuple):
    """What takes the changes of a table in, for one of its routes."""

    route: Route
    compactor: Taking
    images: LatestImages | None  # None where each change has to be seen
    unchanged: UnchangedRows | None = None


class _Compaction:
    """A share of a batch that is being compacted."""

    def __init__(self, plan: TransformPlan, codec: RowCodec) -> None:
        self._plan = plan
        self._codec = codec
        self._tables: dict[tuple[int, str, str], _Table] = {}
        self._scanners: dict[tuple[int, tuple[bytes, ...]], RowScanner | None] = {}
        self._rows = self._redelivered = 0
        self._faulty: list[tuple[Route, FaultyRow]] = []

    def take_run(self, item: WorkItem) -> None:
        """Take an entry in: its rows undecoded, as far as it can be without decoding them."""
        images = scanner = None
        undecoded = item.decoded is None and item.table_rows is None
        if len(item.routes) == 1 and undecoded and item.table[1]:
            route, _, images, _ = self._table((item.routes[0], *item.table))
            scanner = None if images is None else self._scanner(route, item)
        if images is None or scanner is None:
            self.take_records(item)
            return
        payload = item.payload
        scanned = scanner.scan(payload, 0, item.version)
        if scanned.keys:
            images.take(scanner, payload, scanned)
            self._count(scanned.versions)
        if scanned.reached < len(payload):
            self.take_records(item._replace(payload=payload[scanned.reached :]))

    def take_records(self, item: WorkItem) -> None:
        """Take an entry in, each of its records decoded."""
        for single in single_items(self._codec, (item,)):
            self._take(single)

    def _take(self, item: WorkItem) -> None:
        routes, version, context, payload, name, ready, first, _ = item
        plan = self._plan
        try:
            keys_alone = plan.lookup is not None and self._all_reread(item)
            decoded = ready or self._codec.decode(payload, context, keys_alone=keys_alone)
        except DataError as error:
            if not plan.isolates:
                raise
            record = RawRecord(plan.codec, payload, context, name)
            self._faulty += [
                (route, undecodable(route, version, record, error))
                for route in plan.router.route(*name)
                if route.index in routes
            ]
            self._rows += 1
            return
        self._count([version] * len(decoded.images))
        schema = decoded.schema
        for index in routes:
            table = self._table((index, schema.schema, schema.table))
            route, images = table.route, table.images
            if images is not None:
                images.hand_on()
            # What was put aside is written, whatever it changes.
            take = partial(_take_in, table, version, skipping=ready is None)
            try:
                take(decoded)
            except DataError:
                if not plan.isolates:
                    raise
                one_by_one = faults_one_by_one(route, decoded, version, take, first=first)
                self._faulty += [(route, fault) for fault in one_by_one]

    def _all_reread(self, item: WorkItem) -> bool:
        routes = self._plan.router.route(*item.table)
        return all(route.rereads for route in routes if route.index in item.routes)

    def _count(self, versions: Sequence[int]) -> None:
        """Count changes of these versions, which do not fall."""
        self._rows += len(versions)
        through = self._plan.applied_through
        if versions and versions[0] <= through:
            self._redelivered += sum(version <= through for version in versions)

    def _table(self, place: tuple[int, str, str]) -> _Table:
        found = self._tables.get(place)
        if found is None:
            index, schema, table = place
            routes = self._plan.router.route(schema, table)
            route = next(route for route in routes if route.index == index)
            compactor = _compactor(self._plan, route, schema, table)
            images = unchanged = None
            if isinstance(compactor, Compactor) and route.processor is None:
                if route.skips_unchanged:
                    unchanged = UnchangedRows(route)
                else:
                    images = LatestImages(compactor)
            found = self._tables[place] = _Table(route, compactor, images, unchanged)
        return found

    def _scanner(self, route: Route, item: WorkItem) -> RowScanner | None:
        key = partial(identity_indexes, names=route.key, routing=route.routing)
        if not item.context:
            # Such records describe their tables themselves, and the codec keeps what it knows.
            with suppress(DataError):  # decoding finds it again, in each record
                return self._codec.scanner((), key, item.payload)
            return None
        place = (route.index, item.context)
        if place not in self._scanners:
            try:
                self._scanners[place] = self._codec.scanner(item.context, key)
            except DataError:
                self._scanners[place] = None  # decoding finds it again, in each record
        return self._scanners[place]

    def compacted(self) -> Compacted:
        """What is left."""
        plan, faulty = self._plan, self._faulty
        survivors: list[tuple[Route, RowSchema, Survivors]] = []
        for route, compactor, images, _ in self._tables.values():
            # Keys that a mapping names may be null, which the compactor looks for.
            alone = images.alone() if images is not None and not route.key else None
            if images is not None and alone is None:
                images.hand_on()
            if plan.isolates:
                taken = compactor.take_null_keys()
                faulty += [(route, fault) for fault in null_keys(route, taken)]
            for part in compactor.survivors() if alone is None else [alone]:
                refused = _excluded(plan, route, part)
                faulty += [(route, f) for f in take_out(route, part.schema, part, refused)]
                survivors.append((route, part.schema, part))
        return Compacted(survivors, self._rows, self._redelivered, faulty)


def _compactor(plan: TransformPlan, route: Route, schema: str, table: str) -> Taking:
    """What takes the changes of a table in, for one of its routes."""
    if route.rereads and plan.lookup is not None:
        return RereadRows(plan.lookup)
    if route.documents is None:
        return Compactor(route.key, route.routing)
    return DocumentKeys(route.documents, (schema, table), document_source(plan))


def document_source(plan: TransformPlan) -> DocumentSource:
    """Where the pipeline's documents are looked up.

    Raises:
        ConfigurationError: nowhere, which a checked channel file rules out.
    """
    if plan.documents is None:
        raise ConfigurationError("documents with nested rows need the source's database")
    return plan.documents


def _take_in(table: _Table, version: int, decoded: DecodedRows, *, skipping: bool) -> None:
    route, compactor, _, unchanged = table
    if unchanged is not None and skipping:
        decoded = unchanged.left_out(decoded)
    if route.processor is None:
        compactor.add_many(decoded, version)
        return
    for part in processed(route.processor, decoded, route.key):
        compactor.add_many(part, version)


def _excluded(plan: TransformPlan, route: Route, part: Survivors) -> list[Refused]:
    """The survivors that are known to be faulty."""
    if plan.isolates and part.partial and route.into_index:
        error = _half_a_document(part.schema, part)
        return [(number, error) for number in range(len(part.upserts))]
    if not plan.excluded:
        return []
    found = (
        (number, plan.excluded.get((route.index, tuple(row[i] for i in part.key), version)))
        for number, (row, version) in enumerate(
            zip(part.upserts, part.upsert_versions, strict=True)
        )
    )
    return [(number, error) for number, error in found if error is not None]


def project(survivors: Sequence[tuple[Route, RowSchema, Survivors]]) -> list[TargetChanges]:
    """Survivors as changes of their targets, columns mapped; for routes without expressions.

    Raises:
        ConfigurationError: a mapping names a column that the table does not have.
        DataError: a document would lack columns.
    """
    changes: list[TargetChanges] = []
    for route, schema, part in survivors:
        if part.partial and route.into_index and part.upserts:
            raise _half_a_document(schema, part)
        plan = ColumnPlan.build(schema, route, incomplete=part.partial)
        changes.append(
            TargetChanges(
                target=route.target,
                columns=plan.columns,
                key=plan.key,
                upserts=plan.rows(part.upserts),
                deletes=part.deletes,
                upsert_versions=part.upsert_versions,
                delete_versions=part.delete_versions,
                group=route.group,
                document=document_form(schema, route),
                source=schema.name,
                partial=part.partial,
            )
        )
    return changes


def document_form(schema: RowSchema, route: Route) -> DocumentForm | None:
    """How rows of a table become documents; None if they go to a table.

    Raises:
        ConfigurationError: the mapping does not fit the table's key.
    """
    return route.document([schema.names[i] for i in key_indexes(schema, route.key)])


def _half_a_document(schema: RowSchema, part: Survivors) -> DataError:
    row = part.upserts[0]
    return DataError(
        f"a record of {schema.name} mentions only the columns {', '.join(schema.names)}, and the"
        " document would lose the others",
        hint="Set binlog_row_image=FULL at the source, or subscribe to all columns",
        table=schema.name,
        key=", ".join(str(row[i]) for i in part.key)[:200],
    )


def split(
    changes: TargetChanges, group: str | None, buckets: int, *, undivided: bool = False
) -> dict[int, TargetChanges]:
    """Deal one target's changes out to `buckets` tasks, each key to one of them."""
    key_columns = [changes.columns[i] for i in changes.key]
    if buckets == 1 or not spreads(key_columns, group, undivided=undivided):
        home = bucket_of((group or ".".join(changes.target),), buckets)
        # Rows of another source table may go to the same target by another way.
        alone = buckets == 1 or undivided
        return {home: changes if alone else replace(changes, shared=True)}
    parts = [replace(changes.without_rows(), shared=True) for _ in range(buckets)]
    upserts = [(part.upserts.append, part.upsert_versions.append) for part in parts]
    homes = homes_of(changes.upserts, changes.key, buckets)
    for row, version, home in zip(changes.upserts, changes.upsert_versions, homes, strict=True):
        add_row, add_version = upserts[home]
        add_row(row)
        add_version(version)
    homes = homes_of(changes.deletes, range(len(changes.key)), buckets)
    for key, version, home in zip(changes.deletes, changes.delete_versions, homes, strict=True):
        parts[home].deletes.append(key)
        parts[home].delete_versions.append(version)
    return {home: part for home, part in enumerate(parts) if part.upserts or part.deletes}
