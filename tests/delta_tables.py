"""Delta tables for tests: delta-rs makes them, and pyarrow reads them."""

from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from setl.systems.delta.creation import statistics_of
from setl.systems.delta.types import made_type
from setl.systems.delta.values import values_of


def create_table(folder, columns):
    """A table as setl would make it."""
    schema = pa.schema([pa.field(column.name, made_type(column)) for column in columns])
    return DeltaTable.create(folder.uri, schema, configuration=statistics_of(schema))


def rows_in(table):
    """The rows of a table. (With `to_pyarrow_table`, Python sometimes aborts when it ends.)"""
    schema = pa.schema(table.schema().to_arrow())
    parts = [pq.read_table(unquote(path)) for path in table.file_uris()]
    return pa.concat_tables([schema.empty_table(), *parts], promote_options="default")


def rows_of(folder, columns):
    """The rows of a table, in the form in which loads have them."""
    found = rows_in(DeltaTable(folder.uri))
    rows = list(zip(*(values_of(c, found.column(c.name)) for c in columns), strict=True))
    assert len(set(rows)) == len(rows)
    return set(rows)
