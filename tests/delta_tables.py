"""Delta tables for tests: delta-rs makes them, and pyarrow reads them."""

import pyarrow as pa
from deltalake import DeltaTable

from setl.systems.delta.creation import statistics_of
from setl.systems.delta.types import made_type
from setl.systems.delta.values import values_of


def create_table(folder, columns):
    """A table as setl would make it."""
    schema = pa.schema([pa.field(column.name, made_type(column)) for column in columns])
    return DeltaTable.create(folder.uri, schema, configuration=statistics_of(schema))


def rows_of(folder, columns):
    """The rows of a table, in the form in which loads have them."""
    found = DeltaTable(folder.uri).to_pyarrow_table()
    rows = list(zip(*(values_of(c, found.column(c.name)) for c in columns), strict=True))
    assert len(set(rows)) == len(rows)
    return set(rows)
