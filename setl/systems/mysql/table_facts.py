"""The facts about a table, beyond its `RowSchema`, that tell whether rows fit into it."""

from __future__ import annotations

from dataclasses import dataclass

from setl.codec.sql.created_table import definitions_of, without_counter
from setl.systems.mysql.column_labels import labels_of
from setl.systems.mysql.identifiers import quote
from setl.systems.mysql.server import Server

_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_SET_NAME,
       NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, IS_NULLABLE, COLUMN_DEFAULT, EXTRA
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
ORDER BY ORDINAL_POSITION"""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column as information_schema.COLUMNS describes it.

    Attributes:
        name: its name.
        data_type: its type's name, in lower case.
        column_type: its whole type, in lower case.
        length: characters or bytes of text and binary types, else 0.
        charset: character set of text types, else "".
        precision: digits of numbers, bits of BIT, else 0.
        scale: digits after the point, else 0.
        fraction: digits of the fraction of a second, else 0.
        nullable: whether it takes NULL.
        required: whether an INSERT that leaves it out fails.
        generated: whether the server computes it.
    """

    name: str
    data_type: str
    column_type: str
    length: int = 0
    charset: str = ""
    precision: int = 0
    scale: int = 0
    fraction: int = 0
    nullable: bool = True
    required: bool = False
    generated: bool = False

    @property
    def unsigned(self) -> bool:
        """Whether a number has no sign."""
        return "unsigned" in self.column_type

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of an ENUM or SET."""
        return labels_of(self.column_type)


def read_columns(server: Server, schema: str, table: str) -> dict[str, ColumnFacts]:
    """A table's columns by name in lower case, in order; empty if there is no such table."""
    facts: dict[str, ColumnFacts] = {}
    for row in server.rows(_COLUMNS, (schema, table)):
        name, data_type, column_type, length, charset, *numbers, nullable, default, extra = row
        precision, scale, fraction = (int(n or 0) for n in numbers)
        computed = any(f"{how} GENERATED" in str(extra) for how in ("VIRTUAL", "STORED"))
        may_be_null = nullable == "YES"
        filled = may_be_null or default is not None or computed
        facts[str(name).lower()] = ColumnFacts(
            name=str(name),
            data_type=str(data_type).lower(),
            # Labels of ENUM and SET keep their case.
            column_type=str(column_type),
            length=int(length or 0),
            charset=str(charset or ""),
            precision=precision,
            scale=scale,
            fraction=fraction,
            nullable=may_be_null,
            required=not filled and "auto_increment" not in str(extra).lower(),
            generated=computed,
        )
    return facts


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as SHOW CREATE TABLE writes it."""

    text: str

    @classmethod
    def read(cls, server: Server, schema: str, table: str) -> TableText:
        """Ask the server. Raises SetlError."""
        return cls(server.created_text(schema, table))

    def definition(self, column: str, name: str) -> str:
        """The definition of one column under another name; "" if it cannot be found.

        Without AUTO_INCREMENT, which needs a key.
        """
        for found in definitions_of(self.text):
            if found.column and found.column.lower() == column.lower():
                return quote(name) + without_counter(found)
        return ""
