"""Which tables go where: the `tables` of a pipeline, compiled.

Exact names come before wildcards; among wildcards the first entry that matches counts. All
entries with the same `from` as the one that counts apply, so that one table can go to several
targets. System schemas never match. What an online schema change of a mapped table works with does
not match wildcards, see `setl.channel.names.shadow_tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from setl.channel.fields.nested_rows import nested_table
from setl.channel.fields.table_mapping import NewestRow
from setl.channel.file import Pipeline, TableMapping
from setl.channel.names.document_ids import IdsOf, IdTemplate, document_form
from setl.channel.names.patterns import (
    index_problem,
    is_system,
    parse_from,
)
from setl.channel.names.shadow_tables import DROPPED_PREFIX, Shadow, possible_shadows
from setl.channel.routes.routed_table import RoutedTable, compiled
from setl.channel.routes.shared_indexes import SharedIndexes
from setl.channel.rules.spark_sql import bare_column
from setl.errors import ConfigurationError
from setl.model.conflict import ConflictPolicy, ReturningColumns
from setl.model.document import DocumentForm, Geometry
from setl.model.nesting import Documents

# Tables come and go, and their names with them; the answers can always be found again.
_MAX_ROUTES = 10_000


@dataclass(frozen=True, slots=True)
class Route:
    """Where the rows of one source table go, and how. Picklable: it travels to Spark tasks.

    Attributes:
        index: place of the entry in the pipeline's `tables`.
        target: (schema, table), or ("", index) for Elasticsearch.
        include: the only source columns that pass under their own names; None for all.
        exclude: source columns that do not pass under their own names.
        renames: target column → the source column whose values it takes. The source column
            does not pass under its own name then.
        expressions: target column → Spark SQL expression over the source's columns.
        where: Spark SQL condition over the source's columns, or None.
        group: name of the table group, or None.
        key: source columns that identify a row; empty for the primary key.
        processor: ``module:function`` that changes go through, or None.
        id: template of document ids, the table's names filled in; None for the default.
        routing: source column by which documents are routed, or None.
        no_dates_as_null: see `DocumentForm`.
        geometry: see `DocumentForm`.
        conflict: who wins where both sites have changed a row; None for whoever comes last.
        returning: with a conflict policy, the target's columns that go to the source, if known.
        documents: what the target's documents are made of, where that is more than one table.
        create: whether the target is created if it is missing.
        rereads: whether changes only name rows, which are read at the source then.
        skips_unchanged: whether updates are left out that change no column that passes.
        ids_of: what tells its documents' ids from those of other entries, or of other times.
        mapped_by: see `RoutedTable.mapped_by`.
    """

    index: int
    target: tuple[str, str]
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    expressions: Mapping[str, str] = field(default_factory=dict[str, str])
    where: str | None = None
    group: str | None = None
    key: tuple[str, ...] = ()
    processor: str | None = None
    id: IdTemplate | None = None
    routing: str | None = None
    no_dates_as_null: bool = False
    geometry: Geometry = "base64"
    conflict: ConflictPolicy | None = None
    returning: ReturningColumns | None = None
    documents: Documents | None = None
    create: bool = False
    rereads: bool = False
    skips_unchanged: bool = False
    ids_of: IdsOf = field(default_factory=IdsOf)
    mapped_by: str = ""

    def nests(self, schema: str, table: str) -> bool:
        """Whether rows of this table are only nested in documents of another table."""
        of = self.documents
        return of is not None and (schema, table) != (of.schema, of.table)

    @property
    def into_index(self) -> bool:
        """Whether rows become documents."""
        return not self.target[0]

    def document(self, key: Sequence[str]) -> DocumentForm | None:
        """How rows become documents, None if they do not.

        Args:
            key: names of the columns that identify a row, without the routing column.

        Raises:
            ConfigurationError: `id` does not fit the key.
        """
        if not self.into_index:
            return None
        form = document_form(self.id, self.routing, key, location=f"tables[{self.index}]")
        return replace(form, no_dates_as_null=self.no_dates_as_null, geometry=self.geometry)

    @property
    def takes_keyless(self) -> bool:
        """Whether rows of a table without a key can go by it: all of what they are is their key.

        So it must be told of a row alone, before and after each of its changes.
        """
        made = self.expressions or self.where or self.processor or self.documents
        return not (self.into_index or self.key or made or self.conflict or self.rereads)

    @property
    def plain(self) -> bool:
        """Whether rows go to the target as they are, under another table name at most."""
        changed = self.include is not None or self.exclude or self.renames or self.expressions
        return not (changed or self.where or self.processor or self.documents)


class Router:
    """Answers where the rows of a table go. Picklable; not thread-safe."""

    def __init__(
        self, pipeline: Pipeline, *, from_home: bool = False, back: Pipeline | None = None
    ) -> None:
        """Compile the pipeline's `tables`.

        Args:
            pipeline: the pipeline.
            from_home: whether its source is the channel's home site.
            back: the pipeline that goes the other way, None if there is none or it is not known.

        Raises:
            ConfigurationError: a pattern is malformed, which a checked channel file rules out.
        """
        self._into_index = pipeline.target.holds_documents
        self._into_log = pipeline.target.is_log
        self._from_home = from_home
        self._way_back = Router(back) if back else None
        self._creates = pipeline.create
        self.entries = tuple(compiled(i, pipeline) for i in range(len(pipeline.tables)))
        self._exact: dict[tuple[str, str], list[RoutedTable]] = {}
        self._wildcards: list[RoutedTable] = []
        self._nested: dict[tuple[str, str], list[RoutedTable]] = {}
        for entry in self.entries:
            name = entry.pattern.exact
            if name is None:
                self._wildcards.append(entry)
            else:
                self._exact.setdefault(name, []).append(entry)
            for nested in dict.fromkeys(
                parse_from(rows.from_).exact for rows in entry.mapping.nested
            ):
                if nested is not None:
                    self._nested.setdefault(nested, []).append(entry)
        self._known: dict[tuple[str, str], tuple[Route, ...]] = {}
        self._shared = SharedIndexes()
        self._shadows: dict[tuple[str, str], Shadow | None] = {}

    def route(self, schema: str, table: str) -> tuple[Route, ...]:
        """The routes of a table in the order of the file, none if it is not mapped.

        Raises:
            ConfigurationError: the table's name makes no valid index name, or its rows could have
                the ids of another table's rows in the same index.
        """
        found = self._known.get((schema, table))
        if found is None:
            found = (*self._routes(schema, table), *self._nesting(schema, table))
            if len(self._known) >= _MAX_ROUTES:
                self._known.clear()
            self._known[schema, table] = found
        return found

    def entries_to_load(self, *, every: bool) -> tuple[str, ...]:
        """Names of the entries whose tables are to be loaded as a whole.

        Args:
            every: whether those are meant, too, that do not say it themselves.
        """
        return tuple(
            dict.fromkeys(
                entry.name
                for entry in self.entries
                if (every if entry.mapping.load is None else entry.mapping.load)
            )
        )

    def maps(self, schema: str) -> bool:
        """Whether tables of a schema are mapped, if it has any."""
        nested = any(schema == of for of, _ in self._nested)
        return nested or any(e.pattern.schema.match(schema) is not None for e in self.entries)

    def maps_name(self, table: str) -> bool:
        """Whether a table of this name is mapped, if it is in the right schema."""
        nested = any(table == of for _, of in self._nested)
        return nested or any(e.pattern.table.match(table) is not None for e in self.entries)

    def may_fill(self, schema: str, target: tuple[str, str]) -> bool:
        """Whether some table of a schema may go to a target."""
        return any(
            e.pattern.schema.match(schema) is not None
            and (target[0] == schema or (e.target is not None and e.target.schema is not None))
            and self._may_reach(e, target)
            for e in self.entries
        )

    def gathers(self, route: Route) -> bool:
        """Whether rows of other tables may go where a route leads."""
        own = self.entries[route.index]
        if own.target is not None:
            of_schema = own.pattern.schema if own.target.schema is None else own.target.schema
            if of_schema.wildcards + own.target.table.wildcards < own.pattern.wildcards:
                return True
        return any(self._may_reach(e, route.target) for e in self.entries if e is not own)

    def _may_reach(self, entry: RoutedTable, target: tuple[str, str]) -> bool:
        """Whether some table of an entry may go to a target."""
        exact = entry.pattern.exact
        if exact is not None:
            return any(r.index == entry.index and r.target == target for r in self.route(*exact))
        if entry.target is None:
            return any(r.index == entry.index and r.target == target for r in self.route(*target))
        of_schema = entry.pattern.schema if entry.target.schema is None else entry.target.schema
        parts = (of_schema, entry.target.table)
        return all(part.match(name) is not None for part, name in zip(parts, target, strict=True))

    @property
    def decides(self) -> bool:
        """Whether any table has a conflict policy."""
        return any(_policy(entry.mapping, from_home=False) for entry in self.entries)

    @property
    def mixes(self) -> Callable[[str], bool]:
        """Says whether rows of a schema's tables may come behind later ones of other tables.

        In a transaction that is loaded as a whole. Rows of setl's own tables say something of those
        behind them; what both sites write is looked at in the order in which it was written; and a
        log is to have that order.
        """
        keeps = self._into_log or self.decides
        return lambda schema: not (keeps or is_system(schema))

    @property
    def rereads(self) -> bool:
        """Whether rows of any table are read at the source."""
        return any(entry.mapping.read == "source" for entry in self.entries)

    @property
    def creates(self) -> bool:
        """Whether targets of any table are created."""
        return any(map(self._is_created, self.entries))

    def shadow(self, schema: str, table: str) -> Shadow | None:
        """The mapped table whose online schema change this one belongs to; None for any other.

        A table that an entry names exactly is what the entry says.
        """
        name = (schema, table)
        if name not in self._shadows:
            if len(self._shadows) >= _MAX_ROUTES:
                self._shadows.clear()
            guesses = () if name in self._exact else possible_shadows(table)
            self._shadows[name] = next((g for g in guesses if self.route(schema, g.table)), None)
        return self._shadows[name]

    def _routes(self, schema: str, table: str) -> Iterator[Route]:
        if is_system(schema) or table.startswith(DROPPED_PREFIX):
            return
        entries: Sequence[RoutedTable] = self._exact.get((schema, table), ())
        carried: tuple[str, ...] | None = ()
        if not entries:
            if self.shadow(schema, table) is not None:
                return
            first = next((e for e in self._wildcards if e.pattern.match(schema, table)), None)
            if first is None:
                return
            alike = (e for e in self._wildcards if e.pattern == first.pattern)
            # Of one `from` each entry leaves its own tables out.
            entries = [e for e in alike if not e.pattern.leaves_out(schema, table)]
            carried = first.pattern.match(schema, table)
        for entry in entries:
            template = entry.id.of_table(schema, table) if entry.id else None
            route = _route(entry, self._target(entry, schema, table, carried or ()), template)
            policy = _policy(entry.mapping, from_home=self._from_home)
            if policy and self._way_back:
                (back, *_) = self._way_back.route(*route.target) or (None,)
                route = replace(route, returning=back and _returning_columns(back))
            route = replace(route, conflict=policy)
            if self._into_index:
                self._shared.claim(route, (schema, table), own_ids=entry.has_unique_ids)
            yield replace(route, create=self._is_created(entry))

    def _is_created(self, entry: RoutedTable) -> bool:
        return self._creates if entry.mapping.create is None else entry.mapping.create

    def _nesting(self, schema: str, table: str) -> Iterator[Route]:
        """The routes by which rows of this table change documents of others."""
        for entry in self._nested.get((schema, table), ()):
            if (name := entry.pattern.exact) is not None and name != (schema, table):
                template = entry.id.of_table(*name) if entry.id else None
                yield _route(entry, self._target(entry, *name, ()), template)

    def _target(
        self, entry: RoutedTable, schema: str, table: str, carried: tuple[str, ...]
    ) -> tuple[str, str]:
        if not self._into_index:
            return entry.target.fill(schema, carried) if entry.target else (schema, table)
        index = entry.target.fill("", carried)[1] if entry.target else table
        # What is carried over, or the table's name itself, may be in upper case.
        index = index.lower()
        if reason := index_problem(index):
            raise ConfigurationError(
                f"the index name `{index}`, made from {schema}.{table}, {reason}",
                hint=f"Name an index in tables[{entry.index}].to",
            )
        return "", index


def _route(entry: RoutedTable, target: tuple[str, str], template: IdTemplate | None) -> Route:
    mapping = entry.mapping
    renames: dict[str, str] = {}
    expressions: dict[str, str] = {}
    for column, text in mapping.columns.items():
        source = bare_column(text)
        if source is None:
            expressions[column] = text
        else:
            renames[column] = source
    return Route(
        index=entry.index,
        target=target,
        include=None if mapping.include is None else tuple(mapping.include),
        exclude=tuple(mapping.exclude),
        renames=renames,
        expressions=expressions,
        where=mapping.where,
        group=mapping.group,
        key=tuple(mapping.key or ()),
        processor=mapping.processor,
        id=template,
        routing=mapping.routing,
        no_dates_as_null=mapping.zero_dates == "as_null",
        geometry=mapping.geometry or "base64",
        documents=_documents(entry),
        rereads=mapping.read == "source",
        skips_unchanged=mapping.unchanged == "skip",
        ids_of=IdsOf(
            entry.name, mapping.id or "", entry.pattern.exact is None, entry.distinguishes_types
        ),
        mapped_by=entry.mapped_by,
    )


def _policy(mapping: TableMapping, *, from_home: bool) -> ConflictPolicy | None:
    if mapping.conflict == "home":
        return ConflictPolicy("", from_home)
    if isinstance(mapping.conflict, NewestRow):
        return ConflictPolicy(mapping.conflict.newest, from_home)
    return None


def _documents(entry: RoutedTable) -> Documents | None:
    nested = tuple(nested_table(rows) for rows in entry.mapping.nested)
    name = entry.pattern.exact
    return Documents(*name, nested) if nested and name else None


def _returning_columns(route: Route) -> ReturningColumns:
    """The source columns that pass, whether the source has them or not; see `selected_columns`."""
    renamed = {name.lower() for name in route.renames.values()}
    replaced = {n.lower() for n in (*route.exclude, *route.renames, *route.expressions)}
    only = None if route.include is None else renamed.union(n.lower() for n in route.include)
    only = None if only is None else frozenset(only)
    return ReturningColumns(only, frozenset(replaced - renamed))


def selected_columns(route: Route, names: Sequence[str]) -> list[tuple[int, str]]:
    """Which source columns go to which target columns, apart from expressions.

    Names are compared without regard to case, as MySQL compares them.

    Args:
        route: the route.
        names: the source's columns.

    Returns:
        (index in `names`, target column), in the order of the source.
    """
    include = None if route.include is None else {n.lower() for n in route.include}
    replaced = {n.lower() for n in (*route.exclude, *route.renames, *route.expressions)}
    selected: list[tuple[int, str]] = []
    for i, name in enumerate(names):
        lowered = name.lower()
        targets = [t for t, source in route.renames.items() if source.lower() == lowered]
        if not targets and lowered not in replaced and (include is None or lowered in include):
            targets = [name]
        selected += [(i, target) for target in targets]
    return selected
