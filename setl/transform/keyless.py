"""Takes in the changes of a table without a key: all of them, since none overtakes another.

Such a table may hold a row several times, and a change says no more than that one of these rows
came, went, or became another one. So nothing is compacted, and an update is one row that goes and
one that comes. Whoever writes them counts what comes and goes, see
`setl.systems.mysql.load.keyless`.
"""

from __future__ import annotations

from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, filled
from setl.model.schema import RowSchema
from setl.transform.survivors import Survivors

_WHOLE_ROWS = (
    "Have the source log whole rows (binlog_row_image=FULL; the session that wrote this one may"
    " have another), and give the table a primary key, or leave it out with `except`, to go on"
)


def is_keyless(codec: str, route: Route, schema: RowSchema) -> bool:
    """Whether rows of a table are distinguished by all of their values.

    Only where a record is delivered with its position, and never under another one: a DTS topic has
    records of its own places, and may repeat them.

    Args:
        codec: name of the pipeline's codec.
        route: by which they go.
        schema: the table, as the record describes it.
    """
    return codec == "binlog" and not schema.key and route.takes_keyless


class KeylessRows:
    """Changes of one table by one route, in groups of rows that have the same columns."""

    def __init__(self) -> None:
        """Nothing is taken in yet."""
        self._groups: dict[RowSchema, Survivors] = {}

    def add_many(self, decoded: DecodedRows, version: int) -> None:
        """Take in the changes of one entry.

        Raises:
            DataError: an image is missing, or does not say all of its row.
        """
        schema, op, images = decoded
        if op is Op.UPDATE:
            # With MINIMAL the record of an update says what has changed, and before it all.
            images = [(b, filled(a, b)) if a and b else (b, a) for b, a in images]
        for before, after in images:
            for row in (before, after):
                if row is not None and ABSENT in row:
                    raise _half_a_row(schema, row)
        group = self._groups.get(schema)
        if group is None:
            positions = tuple(range(len(schema.columns)))
            group = self._groups[schema] = Survivors(schema, positions, keyless=True)
        gone = [before for before, _ in images if before is not None]
        come = [after for _, after in images if after is not None]
        group.deletes.extend(gone)
        group.delete_versions.extend([version] * len(gone))
        group.own_upserts.extend(come)
        group.upsert_versions.extend([version] * len(come))

    def survivors(self) -> list[Survivors]:
        """All of them, one group for each schema."""
        return [*self._groups.values()]


def _half_a_row(schema: RowSchema, row: Row) -> DataError:
    absent = [n for n, v in zip(schema.names, row, strict=True) if v is ABSENT]
    return DataError(
        f"{schema.name} has no key, and a record of it does not say all of its row:"
        f" {', '.join(absent)} absent",
        hint=_WHOLE_ROWS,
        table=schema.name,
    )
