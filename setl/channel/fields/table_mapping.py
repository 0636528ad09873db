"""One entry of a pipeline's `tables`: which source tables go where, and how."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag

from setl.channel.fields.checks import Name, PythonFunction, Text
from setl.channel.fields.nested_rows import NestedRows
from setl.channel.fields.start_position import NOTHING, WORD, start_error, start_kind
from setl.channel.names.document_ids import IdTemplateError, parse_id
from setl.channel.names.patterns import PatternError, parse_from
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw
from setl.channel.text.references import has_reference
from setl.channel.text.strict_model import StrictModel, problem


def _from(value: str) -> str:
    if not has_reference(value):
        try:
            parse_from(value)
        except PatternError as error:
            raise problem(str(error)) from error
    return value


def _id(value: str) -> str:
    if not has_reference(value):
        try:
            parse_id(value)
        except IdTemplateError as error:
            raise problem(str(error)) from error
    return value


_From = Annotated[
    str,
    AfterValidator(_from),
    Field(json_schema_extra={"pattern": r"^([^.\\]|\\.)+\.([^.\\]|\\.)+$"}),
]


class NewestRow(StrictModel):
    """The conflict policy by which the newer row stays."""

    newest: Text = Field(
        description="Source column that says how new a row is: a date, a time or a number."
    )


_Conflict = Annotated[
    Annotated[Literal["source", "home"], WORD]
    | Annotated[NewestRow, Tag("newest")]
    | Annotated[None, NOTHING],
    Discriminator(
        start_kind(optional=True, newest=NewestRow),
        **start_error("source, home or {newest: COLUMN}"),
    ),
]


class TableMapping(StrictModel):
    """Which source tables go where, and how."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "required": ["include", "exclude"],
                "properties": {"include": {"type": "array"}, "exclude": {"minItems": 1}},
            }
        }
    )

    from_: _From = Field(
        alias="from",
        description="Source tables as schema.table. * stands for any text, ? for one character,"
        " [1-128] for a number in that range ([001-128] with leading zeros). A backslash escapes"
        " these and a dot.",
    )
    except_: list[_From] = Field(
        default_factory=list[str],
        alias="except",
        description="Patterns of tables to exclude from a `from` with wildcards, as schema.table,"
        " together with the shadow tables of their online schema changes. A later entry may still"
        " map them.",
    )
    to: Text | None = Field(
        default=None,
        description="Target table (schema.table, or table to keep the schema) or index. Each *"
        " carries over what the wildcard at its position in `from` stood for; without any, all"
        " tables go into one. Default: the same schema and table, or an index with the table's"
        " name in lower case.",
    )
    columns: dict[Text, Text] = Field(
        default_factory=dict[str, str],
        description="Target column → Spark SQL expression over the source's columns, in addition"
        " to the columns that are copied. A bare column name renames that column.",
    )
    include: list[Text] | None = Field(
        default=None,
        description="Source columns to copy under their own names. Default: all.",
    )
    exclude: list[Text] = Field(
        default_factory=list[str],
        description="Source columns not to copy.",
    )
    where: Text | None = Field(
        default=None,
        description="Spark SQL condition over the source's columns; the target has only rows for"
        " which it is true.",
    )
    group: Name | None = Field(
        default=None,
        description="Tables of one group share transactions, in the source's order, at the price"
        " of fewer parallel tasks.",
    )
    key: list[Text] | None = Field(
        default=None,
        min_length=1,
        description="Source columns that identify a row, for tables without a primary key.",
    )

    load: bool | None = Field(
        default=None,
        description="Load the existing rows of these tables, once, when this is first set."
        " Default: as the source's `start` says.",
    )
    create: bool | None = Field(
        default=None,
        description="Create missing target tables. Default: as the pipeline says.",
    )
    read: Literal["event", "source"] | None = Field(
        default=None,
        description="Where the values of a changed row come from. event (default): the stream."
        " source: the source's table, when the change is loaded.",
    )
    unchanged: Literal["send", "skip"] | None = Field(
        default=None,
        description="An update that changes no column of the target. send (default): write the"
        " row again, which adds it if the target lacks it. skip: omit it; needs `include` or"
        " `exclude`.",
    )
    nested: list[NestedRows] = Field(
        default_factory=list[NestedRows],
        description="Elasticsearch: rows of other tables inside the documents, such as an order's"
        " items.",
    )
    processor: PythonFunction | None = Field(
        default=None,
        description="Python function, as module:function, that processes every change of these"
        " tables. It is installed where tasks run, or sent by the node's --py-files.",
    )

    id: Annotated[Text, AfterValidator(_id)] | None = Field(
        default=None,
        description="Elasticsearch: template of document ids, with {column} for every column of"
        " the key and no other, and {schema} and {table} for the source table; {{ is a brace."
        " Default: the key's columns, joined by commas.",
    )
    routing: Text | None = Field(
        default=None,
        description="Elasticsearch: source column whose value is the routing. If it changes, the"
        " document is deleted where it was.",
    )
    zero_dates: Literal["refuse", "as_null"] | None = Field(
        default=None,
        description="Elasticsearch: dates that do not exist, such as 2024-00-10. refuse (default):"
        " an error. as_null: the field is null.",
    )
    geometry: Literal["base64", "wkt"] | None = Field(
        default=None,
        description="Elasticsearch: spatial values. base64 (default): all bytes, not searchable."
        " wkt: well-known text in a geo_shape, for SRID 0 and 4326.",
    )

    conflict: _Conflict = Field(
        default=None,
        description="Which row stays if both sites changed it. source (default): whatever arrives,"
        " so they can end up different. home: that of the channel's `home` site. newest: the one"
        " with the greater value in a column.",
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """`include` and `exclude` exclude each other, and something has to pass."""
        include = raw.get("include")
        left_out, from_ = raw.get("except"), raw.get("from")
        if left_out and isinstance(from_, str) and not has_reference(from_):
            with suppress(PatternError):
                if parse_from(from_).exact is not None:
                    yield ("except",), "needs a `from` with wildcards; this one names one table"
        if include is not None and raw.get("exclude"):
            yield ("exclude",), "cannot be given together with `include`; choose one of them"
        if include == [] and not raw.get("columns"):
            yield ("include",), "is empty and there are no `columns`, so nothing would be written"
