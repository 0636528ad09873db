"""One entry of a pipeline's `tables`: which source tables go where, and how."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag

from setl.channel.fields.checks import Name, PythonFunction, Text
from setl.channel.fields.nested_rows import NestedRows
from setl.channel.fields.start_place import NOTHING, WORD, start_error, start_kind
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
    """The conflict policy by which the newer of two rows wins."""

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
    """Which source tables go where, and how.

    `from` names ``schema.table``; ``*`` and ``?`` stand for any text and any character, and
    ``[1-128]`` for a number in a range. All columns pass under their own names unless
    `include` or `exclude` say otherwise; `columns` adds or replaces target columns, each with
    a Spark SQL expression over the source's columns (a bare column name renames).
    """

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
        " [1-128] for a number in that range ([001-128] with leading zeros); a backslash takes"
        " their meaning from these and from a dot.",
    )
    except_: list[_From] = Field(
        default_factory=list[str],
        alias="except",
        description="Patterns of tables that a `from` with wildcards leaves out, as schema.table,"
        " and what online schema changes of these work with. A later entry may still take them.",
    )
    to: Text | None = Field(
        default=None,
        description="Target table (schema.table, or table to keep the schema) or index. Each *"
        " carries over what the wildcard at its place in `from` stood for; without any, all"
        " tables come together in one. Not given: the same schema and table, or an index with"
        " the table's name in lower case.",
    )
    columns: dict[Text, Text] = Field(
        default_factory=dict[str, str],
        description="Target column → Spark SQL expression over the source's columns, in addition"
        " to the columns that pass as they are. A bare column name renames that column.",
    )
    include: list[Text] | None = Field(
        default=None,
        description="Source columns that pass under their own names. Not given: all of them.",
    )
    exclude: list[Text] = Field(
        default_factory=list[str],
        description="Source columns that do not pass under their own names.",
    )
    where: Text | None = Field(
        default=None,
        description="Spark SQL condition over the source's columns; rows for which it is not true"
        " are not in the target.",
    )
    group: Name | None = Field(
        default=None,
        description="Tables of one group keep their changes in the source's order among each"
        " other, at the price of fewer parallel tasks.",
    )
    key: list[Text] | None = Field(
        default=None,
        min_length=1,
        description="Source columns that identify a row, for tables without a primary key.",
    )

    load: bool | None = Field(
        default=None,
        description="Whether the rows that these tables have are loaded, beside the stream: once,"
        " when the entry is new or asks for it. Not given: as the source's `start` says.",
    )
    create: bool | None = Field(
        default=None,
        description="Whether target tables that are missing are created from the source's tables."
        " Not given: what the pipeline says.",
    )
    read: Literal["event", "source"] | None = Field(
        default=None,
        description="Where the values of a changed row come from. event (the default): from the"
        " change, as the stream has it. source: the row is read at the source when its change is"
        " loaded, as it is then.",
    )
    unchanged: Literal["send", "skip"] | None = Field(
        default=None,
        description="What to do with an update that changes none of the columns that go to the"
        " target. send (the default): the row is written again, so it comes in if the target lacks"
        " it. skip: it is left out; needs `include` or `exclude`.",
    )
    nested: list[NestedRows] = Field(
        default_factory=list[NestedRows],
        description="Elasticsearch: rows of other tables that the documents show, such as an"
        " order's items. A document is looked up at the source, and written anew, when its row or"
        " one of these rows changes.",
    )
    processor: PythonFunction | None = Field(
        default=None,
        description="Python function, as module:function, that every change of these tables goes"
        " through before it is applied (see `setl/transform/processing.py`). The module is found"
        " where tasks run: installed there, or sent by the node's --py-files.",
    )

    id: Annotated[Text, AfterValidator(_id)] | None = Field(
        default=None,
        description="Elasticsearch: the documents' ids, as text with {column} for every column of"
        " the key and no other, and {schema} and {table} for the source table's names; {{ is a"
        " brace. Not given: the key, its columns joined by commas.",
    )
    routing: Text | None = Field(
        default=None,
        description="Elasticsearch: source column whose value says which shard a document is on."
        " A row in which it changes is deleted where it was.",
    )
    zero_dates: Literal["refuse", "as_null"] | None = Field(
        default=None,
        description="Elasticsearch: what to do with dates that no calendar has, such as 0000-00-00"
        " and 2024-00-10, which it cannot hold. refuse (the default): an error. as_null: the field"
        " is null.",
    )
    geometry: Literal["base64", "wkt"] | None = Field(
        default=None,
        description="Elasticsearch: how spatial values are written. base64 (the default): all of"
        " their bytes, which cannot be searched. wkt: well-known text in a geo_shape, for SRID 0"
        " and 4326, longitude first; the SRID itself is left out.",
    )

    conflict: _Conflict = Field(
        default=None,
        description="Which row stays where both sites have changed one, in a channel of two"
        " directions. source (the default): whatever arrives, so that rows both sites write may"
        " end different. home: that of the channel's `home` site. newest: the one with the"
        " greater value in a column.",
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
