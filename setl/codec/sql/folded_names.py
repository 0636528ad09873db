"""The names of tables in a statement, as a server has them that folds their case.

With ``lower_case_table_names=1`` a server keeps names of schemas and tables in lower case, and so
they stand beside the rows in its binlog. A statement stands there as somebody has written it:
``TRUNCATE Shop.Orders`` empties ``shop.orders``.
https://dev.mysql.com/doc/refman/9.7/en/identifier-case-sensitivity.html.
"""

from __future__ import annotations

from itertools import islice

from setl.codec.sql.names import behind_condition, read_name
from setl.codec.sql.objects import SCHEMAS, object_of
from setl.codec.sql.table_ddl import behind_settings, read_table_ddl
from setl.codec.sql.tokens import Quoting, Token, tokenize, tokens_of

_VERBS = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "SET"})


def with_folded_names(text: str, quoting: Quoting) -> str:
    """DDL whose names of schemas and tables are in lower case; any other statement as it is.

    Args:
        text: one statement, as it was logged.
        quoting: how its session quotes.
    """
    # What is not DDL may have megabytes of values.
    if not {token.word for token in islice(tokens_of(text, quoting), 1)} & _VERBS:
        return text
    tokens = tokenize(text, quoting)
    tokens = tokens[behind_settings(tokens) :]
    pieces: list[str] = []
    at = 0
    for start, end in _names(text, tokens):
        pieces += [text[at:start], _folded(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def _names(text: str, tokens: list[Token]) -> list[tuple[int, int]]:
    """Where names of schemas and tables stand, in order."""
    if not tokens:
        return []
    ddl = read_table_ddl(text, tokens, "")
    if ddl is not None:
        return [(name.start, name.end) for name in ddl.names]
    at = object_of(tokens)
    if at < len(tokens) and tokens[at].word in SCHEMAS:
        found = read_name(tokens, behind_condition(tokens, at + 1))
        return [] if found is None else [(found[0].start, found[0].end)]
    return []


def _folded(name: str) -> str:
    # Letter by letter, as servers do: in a whole word, a last sigma has another form.
    return "".join(map(str.lower, name))
