"""The tables that documents are made of, as a server describes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from setl.errors import ConfigurationError
from setl.model.nesting import Documents
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.catalog import read_table


@dataclass(frozen=True, slots=True)
class DescribedDocuments:
    """What the server said of the tables of documents.

    Attributes:
        schema: the documents' columns.
        own: the columns that their own table has.
        nested: the nested tables, in the order of `Documents.nested`.
    """

    schema: RowSchema
    own: tuple[Column, ...]
    nested: tuple[RowSchema, ...]

    def lacks(self, seen: RowSchema) -> bool:
        """Whether a table has columns by now that the server did not name."""
        own = RowSchema(self.schema.schema, self.schema.table, self.own)
        return any(
            table.name == seen.name and not table.folded.keys() >= seen.folded.keys()
            for table in (own, *self.nested)
        )


def describe_documents(connection: Connection[Any], documents: Documents) -> DescribedDocuments:
    """Ask a server for the tables that documents are made of.

    Raises:
        ConfigurationError: a table or column is missing, or `on` is not the whole key.
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    own = _table(connection, documents.schema, documents.table)
    key = {own.names[i].lower() for i in own.key}
    if {name.lower() for name in documents.key} != key:
        raise ConfigurationError(
            f"`on` names {', '.join(documents.key)}, which is not the primary key of {own.name}",
            hint="Rows belong to a document by all columns of its key",
            table=own.name,
        )
    nested: list[RowSchema] = []
    arrays: list[Column] = []
    for each in documents.nested:
        table = _table(connection, each.schema, each.table)
        named = [*(column for column, _ in each.on), *(each.include or ()), *each.exclude]
        unknown = [name for name in named if name.lower() not in table.folded]
        if unknown:
            raise ConfigurationError(
                f"`nested` names {', '.join(unknown)}, which {table.name} does not have",
                hint=f"The columns are {', '.join(table.names)}",
                table=table.name,
            )
        shown = tuple(table.columns[i] for i in each.shown(table.names))
        if each.field.lower() in own.folded:
            raise ConfigurationError(
                f"{each.field} is a column of {own.name} already",
                hint="Give the `field` of `nested` another name",
                table=own.name,
            )
        nested.append(table)
        arrays.append(Column(each.field, Kind.ROWS, fields=shown))
    return DescribedDocuments(
        replace(own, columns=own.columns + tuple(arrays)), own.columns, tuple(nested)
    )


def _table(connection: Connection[Any], schema: str, table: str) -> RowSchema:
    described = read_table(connection, schema, table, logged=True)
    if described is None:
        raise ConfigurationError(
            "the table does not exist, or the account may not see it",
            hint="Create it, grant SELECT on it, or fix the channel file",
            table=f"{schema}.{table}",
        )
    return described
