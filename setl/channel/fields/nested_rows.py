"""Rows of another table inside a document: an order with its items.

A document then shows, under one field, all rows of a second table that belong to its row. It is
made again, from the source's tables, whenever its own row or one of these rows changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from setl.channel.fields.checks import Text
from setl.channel.fields.endpoints import takes_documents
from setl.channel.names.patterns import PatternError, parse_from
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, items, part
from setl.channel.text.references import has_reference
from setl.channel.text.strict_model import StrictModel, problem
from setl.model.nesting import NestedTable

_ONE_PARTITION = (
    "needs one `partition` of the topic that has all of its tables, in place of `partitions`:"
    " places of two partitions do not say which change of a document is newer"
)


def _exact(value: str) -> str:
    if not has_reference(value):
        try:
            exact = parse_from(value).exact
        except PatternError as error:
            raise problem(str(error)) from error
        if exact is None:
            raise problem("must name one table, without wildcards")
    return value


class NestedRows(StrictModel):
    """Rows of another table inside documents."""

    field: Text = Field(description="The document's field: an array with an object for each row.")
    from_: Annotated[str, AfterValidator(_exact)] = Field(
        alias="from", description="The table of these rows, as schema.table."
    )
    on: dict[Text, Text] = Field(
        min_length=1,
        description="Columns of that table → the key columns of the document's table that they"
        " refer to; all of the key. Create an index on them.",
    )
    include: list[Text] | None = Field(
        default=None, description="Columns to include. Default: all."
    )
    exclude: list[Text] = Field(default_factory=list[str], description="Columns to leave out.")

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """`include` and `exclude` exclude each other, and a key column is named once."""
        if raw.get("include") is not None and raw.get("exclude"):
            yield ("exclude",), "cannot be given together with `include`; choose one of them"
        named = [str(name).lower() for name in part(raw.get("on")).values()]
        if len(set(named)) < len(named):
            yield ("on",), "names a column of the document's table twice"


def nested_table(rows: NestedRows) -> NestedTable:
    """What stands in a checked channel file, compiled."""
    schema, table = parse_from(rows.from_).exact or ("", "")
    return NestedTable(
        field=rows.field,
        schema=schema,
        table=table,
        on=tuple(sorted(rows.on.items(), key=lambda pair: pair[1].lower())),
        include=None if rows.include is None else tuple(rows.include),
        exclude=tuple(rows.exclude),
    )


def wrong_nesting(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """What is wrong with `nested` of tables, given the endpoints of the pipeline."""
    for i, table in enumerate(tables):
        nested = [part(each) for each in items(table.get("nested"))]
        if not nested:
            continue
        path = ("tables", i, "nested")
        if not takes_documents(target):
            yield path, "only means something for a target of documents, such as Elasticsearch"
        if source.get("type") == "kafka" and not source.get("database"):
            yield path, "needs `database:` in the source, since rows are looked up there"
        if source.get("partitions") is not None:
            yield path, _ONE_PARTITION
        yield from _clashes(table, path, nested)


def _clashes(table: Raw, path: Path, nested: Sequence[Raw]) -> Iterator[tuple[Path, str]]:
    """What does not go together with `nested`, and what its entries must have in common."""
    for key in ("processor", "routing", "key"):
        if table.get(key):
            yield (*path[:-1], key), "cannot be given together with `nested`"
    try:
        exact = parse_from(str(table.get("from", table.get("from_")))).exact
    except PatternError:
        return
    if exact is None:
        yield (*path[:-1], "from"), "must name one table where there is `nested`"
    keys = [sorted(str(name).lower() for name in part(each.get("on")).values()) for each in nested]
    fields = [str(each.get("field")) for each in nested]
    for i in range(1, len(nested)):
        if keys[i] != keys[0]:
            yield (*path, i, "on"), "must name the same key columns as the first of `nested`"
        if fields[i] in fields[:i]:
            yield (*path, i, "field"), "is already the field of another one"
