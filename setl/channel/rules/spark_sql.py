"""What setl reads of the Spark SQL in a channel file: which columns it names, if any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from setl.channel.text.raw import Raw, items, part

# Words that look like columns but mean something to Spark SQL without parentheses.
_SPARK_WORDS = frozenset({
    "null", "true", "false", "current_catalog", "current_database", "current_date",
    "current_schema", "current_time", "current_timestamp", "current_user", "localtimestamp",
})  # fmt: skip
_BARE = re.compile(r"(?!\d)\w+")
# https://spark.apache.org/docs/latest/sql-ref-literals.html#string-literal : a backslash escapes
# in texts, but not after the prefix r.
_LEXEMES = re.compile(
    r"""`(?P<quoted>(?:[^`]|``)+)`
      | \br'[^']*' | \br"[^"]*"
      | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"
      | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_STAR = re.compile(r"(?:^|[(,.])\s*\*")


def has_spark_sql(definition: Raw) -> bool:
    """Whether a table of any pipeline has expressions or a `where`.

    Args:
        definition: a channel file as it is stored, which may not be right in other places.
    """
    pipelines = map(part, items(definition.get("pipelines")))
    tables = (part(table) for pipeline in pipelines for table in items(pipeline.get("tables")))
    return any(map(_in_table, tables))


def _in_table(table: Raw) -> bool:
    texts = [text for text in part(table.get("columns")).values() if isinstance(text, str)]
    return bool(table.get("where")) or any(bare_column(text) is None for text in texts)


def bare_column(text: str) -> str | None:
    """The column that an expression consists of, None if it is more than a column's name.

    A word such as ``current_date``, which Spark SQL takes for a function, is an expression;
    a column of that name is written in backticks.
    """
    word = text.strip()
    quoted = _LEXEMES.fullmatch(word)
    if quoted:
        return _unquoted(quoted)
    return word if _BARE.fullmatch(word) and word.lower() not in _SPARK_WORDS else None


def referenced_columns(
    expressions: Iterable[str], where: str | None, names: Sequence[str]
) -> tuple[str, ...]:
    """The source columns that Spark SQL texts may refer to, in the order of `names`.

    By words alone, so a column that shares its name with a function or an alias counts as
    referred to; too many columns cost time, one too few would fail. Text in single or double
    quotes and comments hold no names; a star where a column may stand means all.

    Args:
        expressions: the texts.
        where: one more text, or None.
        names: names of the source's columns.
    """
    words: set[str] = set()

    def blank(lexeme: re.Match[str]) -> str:
        quoted = _unquoted(lexeme)
        if quoted is None:
            return " "
        words.add(quoted.lower())
        return "``"  # something stands here, for what precedes a star

    for text in (*expressions, where or ""):
        bare = _LEXEMES.sub(blank, text)
        if _STAR.search(bare):
            return tuple(names)
        words.update(word.lower() for word in _WORD.findall(bare))
    return tuple(name for name in names if name.lower() in words)


def _unquoted(lexeme: re.Match[str]) -> str | None:
    """The name that stands in backticks, None for texts and comments."""
    quoted = lexeme["quoted"]
    return None if quoted is None else quoted.replace("``", "`")
