"""Chooses the form in which rows are sent to a server. How much each gains: decision record 0011.

===========  =======================================================================================
form         what for
===========  =======================================================================================
text of the  Rows of a table that is loaded as a whole into one that is alike (`takes_as_is`): they
source       are not decoded at all. Sent as a data file where the server reads one, else in INSERT.
data file    Many rows that are most likely new, to servers without bulk execution: MySQL.
parameters   Eight rows and more, to MariaDB: one bulk execution of a prepared statement.
literals     All else, and whatever another form could not write: it updates rows that are there,
             refuses what does not fit, and says which row it was.
===========  =======================================================================================

Which statement it is, by the unique keys of the table, is another question: see
`setl.systems.mysql.load.statements`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from setl.model.change import Row, TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.mysql.load.row_statement import Limits, RowStatement
from setl.systems.mysql.load.statements import Strategy, TableWrites
from setl.systems.mysql.values.row_text import BYTES, FLOATING, INTEGERS, TEXTS

_COLUMNS: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.INTEGER: INTEGERS,
    Kind.DECIMAL: frozenset({"decimal"}),
    Kind.FLOAT: FLOATING,
    Kind.TEXT: TEXTS,
    Kind.JSON: frozenset({"longtext"}),  # MariaDB's; what MySQL makes of a document's text differs
    Kind.ENUM: frozenset({"enum"}),
    Kind.SET: frozenset({"set"}),
    Kind.DATE: frozenset({"date"}),
    Kind.TIME: frozenset({"time"}),
    Kind.DATETIME: frozenset({"datetime"}),
    Kind.TIMESTAMP: frozenset({"timestamp"}),
    Kind.YEAR: frozenset({"year"}),
    Kind.BIT: frozenset({"bit"}),
    Kind.BINARY: BYTES,
}
"""Types of columns that keep values of a kind as INSERT would, or count that they do not."""


def takes_parameters(statement: RowStatement, rows: Sequence[Row], limits: Limits) -> bool:
    """Whether a bulk execution writes these rows as literals would; else these do."""
    if len(rows) < limits.bulk_rows or not statement.takes_parameters:
        return False
    return not statement.blanks_in(rows)


def filled_by(plan: TableWrites, change: TargetChanges) -> Sequence[int]:
    """Indexes of the columns in `change` that the statement fills, in its order."""
    picks = plan.inserts.picks
    return range(len(change.columns)) if picks is None else picks


def takes_as_is(plan: TableWrites, change: TargetChanges) -> bool:
    """Whether the table keeps every value that columns of the source can hold, unseen.

    So each column has the same type at both ends, to the length, the digits, the labels and the
    character set; and only the key that identifies a row can collide, compared alike at both ends.
    """
    inserts = plan.inserts
    if plan.strategy is not Strategy.UPSERT or plan.single_writer or change.partial:
        return False
    if not plan.gives_all or inserts.never_null or inserts.watched or inserts.counts is not None:
        return False
    if plan.generated.compared:
        return False  # somebody has to look at the values
    given = [change.columns[i] for i in filled_by(plan, change)]
    return all(
        column.capacity is not None and column.capacity == stored.capacity
        for column, stored in zip(given, inserts.columns, strict=True)
    )


def takes_data(plan: TableWrites, change: TargetChanges, limits: Limits) -> bool:
    """Whether LOAD DATA does what the plan's statement does, for rows that are not there.

    It has to put into each column what INSERT would, or to count that it does not.
    """
    inserts = plan.inserts
    if not change.new or change.deletes or change.partial:
        return False
    if plan.strategy is not Strategy.UPSERT or plan.single_writer or inserts.watched:
        return False
    if not plan.gives_all or len(change.upserts) < limits.bulk_rows:
        return False
    return all(map(_is_preserved, inserts.columns))


def _is_preserved(column: Column) -> bool:
    held = column.capacity
    if held is None or held.type not in _COLUMNS.get(column.kind, frozenset[str]()):
        return False
    return bool(held.labels) or column.kind not in (Kind.ENUM, Kind.SET)
