"""Applies schema changes of the source to indexes.

A new column gets its field at once. A column that is renamed or dropped stays in documents until
their rows are written again. If a table has its index to itself, its documents go when it is
emptied or dropped. Each is deleted under the change's own version, as a row would be. So a change
that is repeated, or that comes from a node that thaws, deletes nothing newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from setl.channel.names.shadow_tables import ShadowPart
from setl.channel.routes.routed_table import RoutedTable
from setl.channel.routes.routing import Route, Router, selected_columns
from setl.codec.sql.table_ddl import Action, Clause, Role, TableDdl, TableName
from setl.counting import count
from setl.errors import ConfigurationError, FatalError, TransientError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.schema import Column, Kind
from setl.systems.mysql.ddl.declared_columns import defined_columns
from setl.systems.mysql.ddl.effects import effects_of
from setl.systems.mysql.ddl.statements import refuse_other
from setl.systems.search_index.client import SearchClient, make_client
from setl.systems.search_index.errors import translating
from setl.systems.search_index.load.document_origin import other_pipelines
from setl.systems.search_index.load.index import ensure_index
from setl.systems.search_index.mapping import fields_of, mapped_field
from setl.systems.search_index.port import ClusterEndpoint, Hit

_GONE: Final = 200
_DELETED: Final = frozenset({_GONE, 404, 409})  # gone, was gone, or newer than the change
_BY_IGNORING: Final = (
    ". Then `setl apply` the file with `ddl: ignore`, and `setl start` the channel. Write"
    " `ddl: pass` again when the pipeline is past it"
)
_LOAD_AGAIN: Final = "load its index again, with `setl load --replace`"
_PRIMARY: Final = "PRIMARY"
_ROWS_LEAVE: Final = frozenset({"TRUNCATE", "DROP", "EXCHANGE", "CONVERT", "DISCARD", "IMPORT"})

# Types of fields that hold each other's values; text takes them all.
_ALIKE: Final = (
    frozenset({"long", "unsigned_long", "integer", "short", "byte", "double", "float", "half_float",
               "scaled_float"}),
    frozenset({"date", "date_nanos"}),
    frozenset({"object", "flattened", "flat_object", "nested"}),
    frozenset({"binary"}),
)  # fmt: skip


class IndexDdl:
    """The `setl.load.sink.SchemaChanges` of an index target."""

    def __init__(self, endpoint: ClusterEndpoint, router: Router) -> None:
        """Connect to nothing yet."""
        self._endpoint = endpoint
        self._router = router

    def apply(self, ticket: LoadTicket, change: SchemaChange) -> Sequence[str]:
        """See `setl.load.sink.SchemaChanges.apply`."""
        if (ddl := change.ddl) is None:
            self._refuse_other(ticket, change)
            return ()
        try:
            with translating(self._endpoint), make_client(self._endpoint) as client:
                return tuple(self._carry_out(client, ddl, ticket.pipeline_key, change.version))
        except (ConfigurationError, FatalError, TransientError) as error:
            where = {"server": self._endpoint, "position": change.position, "ddl": change.id}
            error.at(pipeline=ticket.pipeline_key, **where)
            raise

    def _refuse_other(self, ticket: LoadTicket, change: SchemaChange) -> None:
        try:
            refuse_other(change, self._router)
        except FatalError as error:
            error.hint += _BY_IGNORING
            error.at(pipeline=ticket.pipeline_key, server=self._endpoint, ddl=change.id)
            raise

    def _carry_out(
        self, client: SearchClient, ddl: TableDdl, pipeline: str, version: int
    ) -> Iterator[str]:
        moved = any(name.role is Role.NEW_NAME for name in ddl.names)
        if moved:
            self._refuse_moves(ddl)
        self._refuse_exchange(ddl)
        for name in ddl.subjects:
            self._refuse_new_key(client, ddl, name)
            for route in self._router.route(name.schema, name.table):
                if route.nests(name.schema, name.table):
                    yield _nested(ddl, route)
                elif ddl.action is Action.ALTER:
                    yield from self._alter(client, ddl, route)
                elif _removes_rows(ddl) or (_makes(ddl) and self._alone(route)):
                    yield self._empty(client, ddl, route, pipeline, version)
                else:
                    yield f"nothing to do for {route.target[1]}: {ddl.text}"

    def _alter(self, client: SearchClient, ddl: TableDdl, route: Route) -> Iterator[str]:
        if _rows_leave(ddl):
            raise _refused(
                ddl,
                "rows leave the table or a partition, or come from a file, and nothing says which",
                _LOAD_AGAIN,
            )
        index = route.target[1]
        if effects_of(ddl).loses and client.exists(index) and _has_documents(client, index):
            raise _refused(
                ddl,
                "IGNORE removes rows that have the same key, and nothing says which",
                _LOAD_AGAIN,
            )
        columns = list(_renamed(route, defined_columns(ddl)))
        if not columns or not client.exists(index):
            yield f"nothing to do for {index}: {ddl.text}"
            return
        existing = client.mappings(index)
        for description in existing.values():
            properties = description.get("mappings", {}).get("properties", {})
            _refuse_misfits(ddl, route, properties, columns)
        try:
            ensure_index(client, index, columns, route.geometry)
        except ConfigurationError as error:
            (name,) = ddl.subjects
            raise error.at(table=f"{name.schema}.{name.table}") from None
        names = ", ".join(column.name for column in columns)
        yield f"fields of {index} for {names}: {ddl.text}"

    def _empty(
        self, client: SearchClient, ddl: TableDdl, route: Route, pipeline: str, version: int
    ) -> str:
        index = route.target[1]
        if not client.exists(index):
            return f"{index} is not there: {ddl.text}"
        if not self._alone(route):
            raise _refused(
                ddl,
                f"the index {index} may hold documents of other tables, too",
                "delete those of this table from it",
            )
        others = other_pipelines(client.mappings(index), pipeline)
        if others:
            raise _refused(
                ddl,
                f"the index {index} has, or had, documents of {', '.join(others)}, too",
                "delete those of this table from it",
            )
        client.refresh(index)
        hits = (hit for page in client.scroll(index, {"_source": False}) for hit in page)
        deleted = 0
        for item in client.act((_delete(hit, version), None) for hit in hits):
            outcome: dict[str, Any] = item["delete"]
            if outcome.get("status") not in _DELETED:
                raise TransientError(
                    f"the cluster has not deleted a document of {index}: {outcome.get('error')}"
                )
            deleted += outcome["status"] == _GONE
        if _makes(ddl) and not ddl.replaces and not deleted:
            return f"nothing to do for {index}: {ddl.text}"
        return f"{count(deleted, 'document')} of {index} deleted: {ddl.text}"

    def _alone(self, route: Route) -> bool:
        """Whether only one table of the pipeline can go to a route's index."""
        own, index = self._router.entries[route.index], route.target[1]
        if own.pattern.exact is None and not _is_index_of_one(own):
            return False
        for entry in self._router.entries:
            exact = entry.pattern.exact
            if entry is own:
                continue
            if exact is not None:
                if any(r.target[1] == index for r in self._router.route(*exact)):
                    return False
            elif _may_name(entry, index) and (
                entry.target is not None or self._comes_there(entry, index)
            ):
                return False
        return True

    def _comes_there(self, entry: RoutedTable, index: str) -> bool:
        """Whether a table of an entry without `to` would go to an index, if there is such a one."""
        try:
            routes = self._router.route(entry.pattern.schema.literal or "", index)
        except ConfigurationError:  # two tables whose documents could be the same
            return True
        return any(r.target[1] == index and r.index == entry.index for r in routes)

    def _refuse_exchange(self, ddl: TableDdl) -> None:
        """Refuse what moves rows into a mapped table, or out of it, from another one."""
        for name in ddl.names:
            if name.role is Role.OTHER and self._router.route(name.schema, name.table):
                raise _refused(
                    ddl,
                    f"it moves rows of {name.schema}.{name.table}, and nothing says which",
                    _LOAD_AGAIN,
                )

    def _refuse_new_key(self, client: SearchClient, ddl: TableDdl, name: TableName) -> None:
        """Refuse another primary key: documents of rows as they are now have ids of the old one."""
        if not _changes_key(ddl):
            return
        shadow = self._router.shadow(name.schema, name.table)
        copied = shadow is not None and shadow.part is ShadowPart.NEXT
        table = shadow.table if shadow is not None and copied else name.table
        for route in self._router.route(name.schema, table):
            index = route.target[1]
            if route.key or route.id or route.nests(name.schema, table):
                continue  # `id` has to name the whole key, so rows that come with another one fail
            if client.exists(index) and _has_documents(client, index):
                raise _refused(
                    ddl,
                    f"the ids of the documents of {index} are made of the primary key,"
                    " and there they are made of the former one",
                    "load a new index",
                )

    def _refuse_moves(self, ddl: TableDdl) -> None:
        """Refuse a renaming that would leave documents under another table's name."""
        names = [n for n in ddl.names if n.role in (Role.SUBJECT, Role.NEW_NAME)]
        for old, new in zip(names[::2], names[1::2], strict=True):
            leaving = self._router.shadow(old.schema, old.table)
            coming = self._router.shadow(new.schema, new.table)
            if (leaving and leaving.part is ShadowPart.NEXT and leaving.table == new.table) or (
                coming and coming.part is ShadowPart.FORMER and coming.table == old.table
            ):
                continue
            olds = [(r.target, r.id) for r in self._router.route(old.schema, old.table)]
            news = [(r.target, r.id) for r in self._router.route(new.schema, new.table)]
            if olds != news:
                raise _refused(
                    ddl,
                    f"documents of {old.schema}.{old.table} do not move to where those of"
                    f" {new.schema}.{new.table} go",
                    "load the index of the new name",
                )


def _is_index_of_one(entry: RoutedTable) -> bool:
    """Whether each table of an entry with wildcards has an index of its own."""
    if entry.target is None:
        return entry.pattern.schema.literal is not None
    # With several, a-b and c make the same name as a and b-c.
    return entry.target.wildcards == 1


def _may_name(entry: RoutedTable, index: str) -> bool:
    """Whether a table of an entry may go to an index, whose name is in lower case."""
    named = entry.pattern.table if entry.target is None else entry.target.table
    return named.folded.match(index) is not None


def _renamed(route: Route, columns: Iterator[Column]) -> Iterator[Column]:
    """The columns under the names that they have in documents; only those that pass."""
    for column in columns:
        # The field of a spatial column depends on how it is written; its first row knows.
        if column.kind is not Kind.GEOMETRY:
            for _, name in selected_columns(route, [column.name]):
                yield replace(column, name=name)


def _refuse_misfits(
    ddl: TableDdl, route: Route, properties: dict[str, Any], columns: Sequence[Column]
) -> None:
    """Refuse columns whose values their field would not take."""
    index = route.target[1]
    for name, wanted in fields_of(columns, route.geometry).items():
        existing = mapped_field(properties, name)
        if existing is None:
            continue
        held, coming = (str(field.get("type", "object")) for field in (existing, wanted))
        alike = next((kinds for kinds in _ALIKE if held in kinds), None)
        if alike is not None and coming not in alike:
            raise _refused(
                ddl,
                f"the field {name} of {index} is {held}, and the column needs {coming}",
                "load a new index whose field fits",
            )


def _rows_leave(ddl: TableDdl) -> bool:
    """Whether an ALTER takes rows away, or brings some, without saying which."""
    return any(
        len(words) > 1
        and words[0] in _ROWS_LEAVE
        and words[1] in ("PARTITION", "TABLE", "TABLESPACE")
        for words, _ in ddl.clauses()
    )


def _has_documents(client: SearchClient, index: str) -> bool:
    client.refresh(index)
    return int(client.count(index)["count"]) > 0


def _removes_rows(ddl: TableDdl) -> bool:
    """Whether it takes all rows of a table away, perhaps with the table."""
    return ddl.action in (Action.TRUNCATE, Action.DROP) or ddl.replaces


def _makes(ddl: TableDdl) -> bool:
    """Whether it makes a table where none was; one of its name was renamed if there was one."""
    return ddl.action is Action.CREATE and not ddl.conditional


def _changes_key(ddl: TableDdl) -> bool:
    """Whether it gives a table another primary key, or takes its key away."""
    if ddl.action is Action.INDEX:
        return [t.word or t.name.upper() for t in ddl.tokens[:3]] == ["DROP", "INDEX", _PRIMARY]
    return ddl.action is Action.ALTER and any(map(_clause_changes_key, ddl.clauses()))


def _clause_changes_key(clause: Clause) -> bool:
    words = [token.word for token in clause.tokens]
    if words[0] == "DROP" and words[1] in ("INDEX", "KEY", "CONSTRAINT"):
        return any(_PRIMARY in (t.word, t.name.upper()) for t in clause.tokens[2:])
    # Of a column, KEY alone means PRIMARY KEY.
    alone = any(
        column[at].word == "KEY" and column[at - 1].word != "UNIQUE"
        for column in clause.columns
        for at in range(1, len(column))
    )
    return _PRIMARY in words or alone


def _nested(ddl: TableDdl, route: Route) -> str:
    """A change of a table whose rows are shown in documents of another one."""
    index = route.target[1]
    if _removes_rows(ddl) or _rows_leave(ddl) or effects_of(ddl).loses:
        raise _refused(
            ddl,
            f"its rows are shown in documents of {index}, which nothing rebuilds",
            "update a column of each row whose document has them",
        )
    return f"documents of {index} show it when they are written next: {ddl.text}"


def _delete(hit: Hit, version: int) -> dict[str, Any]:
    action = {
        "_index": hit["_index"],
        "_id": hit["_id"],
        "version": version,
        "version_type": "external_gte",
    }
    if "_routing" in hit:
        action["routing"] = hit["_routing"]
    return {"delete": action}


def _refused(ddl: TableDdl, why: str, hint: str) -> FatalError:
    return FatalError(
        f"this schema change cannot be replicated: {why}: {ddl.text[:300]}",
        hint=f"By hand: {hint}{_BY_IGNORING}",
    )
