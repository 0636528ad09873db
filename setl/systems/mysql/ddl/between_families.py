"""What a schema change computes for rows that are there, where MariaDB and MySQL may differ."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from setl.systems.mysql.ddl.effects import Effects

# A quotient has other digits in MariaDB than in MySQL, and functions of JSON, of text in a
# collation, of numbers as text and many others have differed. Of these nobody knows a difference.
_ALIKE: Final = frozenset({
    # what values are made of
    "abs", "and", "between", "case", "ceil", "ceiling", "char_length", "character_length",
    "coalesce", "concat", "day", "dayofmonth", "div", "else", "end", "false", "floor", "hour", "if",
    "ifnull", "in", "is", "left", "length", "minute", "mod", "month", "not", "null", "nullif",
    "octet_length", "or", "quarter", "right", "second", "sign", "then", "to_days", "true", "when",
    "xor", "year",
    # types, and what else a definition has
    "after", "always", "as", "bigint", "binary", "bit", "bool", "boolean", "by", "char",
    "character", "column", "comment", "date", "datetime", "dec", "decimal", "default", "first",
    "generated", "int", "integer", "invisible", "key", "mediumint", "numeric", "persistent",
    "smallint", "stored", "text", "time", "tinyint", "unique", "unsigned", "using", "varbinary",
    "varchar", "visible", "zerofill",
})  # fmt: skip


def reason_families_differ(effects: Effects, columns: Collection[str]) -> str:
    """Why rows of a target of the other family may get other values than at the source, or "".

    Args:
        effects: of a statement on a table with rows.
        columns: of the target's table, in lower case.
    """
    known = _ALIKE.union(columns, effects.computed)
    doubtful = {
        name: doubts
        for name, words in effects.computed.items()
        if (doubts := {word for word in words - known if not word[0].isdigit()})
    }
    doubtful |= {name: {"/"} for name in effects.quotients}
    if not doubtful:
        return ""
    words = sorted({word for doubts in doubtful.values() for word in doubts})
    return (
        f"it computes values of {', '.join(doubtful)} for rows that are there, and MariaDB and"
        f" MySQL need not agree on {', '.join(words)}"
    )
