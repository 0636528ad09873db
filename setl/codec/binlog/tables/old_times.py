"""Times in the format of MariaDB 5.3, of which the binlog does not say how many digits they have.

MariaDB before 10.1, and later ones with ``mysql56_temporal_format=OFF``, make TIMESTAMP, DATETIME
and TIME so; tables keep the format until they are altered. A TABLE_MAP event names the type alone.
Without a fraction of a second the values are as in MySQL before 5.6. With one they are longer, and
written in another way, by the digits of the column, which a replica takes from its own.

So the source is asked which digits a column has, when its table comes up. What it says holds while
the column is in the old format: fractions are refused, since nobody can say whether the column had
as many digits when a row was written, and whole seconds are read. If the source has the column no
more, or has altered it meanwhile, the bytes have to show that the times have no fractions, see
`setl.codec.binlog.rows.whole_seconds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from setl.codec.binlog.tables.table_map import ColumnType, TableMap, WireColumn

TimeDigits = Callable[[str, str], Mapping[str, str]]
"""What is known of a table's times, by schema and table: for a column's name "0" to "6" for the
digits that it has in the old format, or one of `UNSURE`."""

UNKNOWN: Final = "?"  # the source does not say, or it has digits in the younger format
LIKELY_NONE: Final = "-"  # it has none in the younger format
UNSURE: Final = frozenset({UNKNOWN, LIKELY_NONE})

OLD_FORMAT: Final = "/* mariadb-5.3 */"
"""How MariaDB marks such a column's type in its descriptions."""

HINT: Final = (
    "Run ALTER TABLE … FORCE for the table on the source, with mysql56_temporal_format=ON. Rows"
    " that were logged before that cannot be read: leave the table out of `tables` until the"
    " pipeline is past it, then take it in again, with `setl load --replace`"
)
"""What to do about a table with fractions in the old format."""

_OLD: Final = frozenset({ColumnType.TIMESTAMP, ColumnType.TIME, ColumnType.DATETIME})


def old_times(columns: Sequence[WireColumn]) -> list[int]:
    """Places of the columns that are in the old format, whatever their digits."""
    return [i for i, column in enumerate(columns) if column.type in _OLD]


def logged_digits(table: TableMap, names: Sequence[str], digits: TimeDigits) -> str:
    """What is known of each of `old_times`, see `TimeDigits`.

    Args:
        table: a table.
        names: of its columns.
        digits: asked if it has such columns.
    """
    indexes = old_times(table.columns)
    if not indexes:
        return ""
    known = digits(table.schema, table.table)
    return "".join(known.get(names[i], UNKNOWN) for i in indexes)
