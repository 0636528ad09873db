"""Reads what CREATE, ALTER and DROP DATABASE say about the default collation of a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from setl.codec.sql.names import behind_condition, name_of
from setl.codec.sql.objects import SCHEMAS, object_of
from setl.codec.sql.statement import parse_statement
from setl.codec.sql.tokens import Quoting, Token, text_of, tokenize

_VERBS: Final = frozenset({"CREATE", "ALTER", "DROP"})
DEFAULT: Final = "DEFAULT"
"""Stands for a character set or collation that is not named."""


class DatabaseDdl(NamedTuple):
    """A statement about a database.

    Attributes:
        verb: CREATE, ALTER or DROP.
        schema: the database.
        conditional: whether it does nothing to a database that is there: IF NOT EXISTS.
        charset: the character set that it names, in lower case, or `DEFAULT`; "" for none.
        collation: likewise.
    """

    verb: str
    schema: str
    conditional: bool = False
    charset: str = ""
    collation: str = ""

    @property
    def leaves_default(self) -> bool:
        """Whether the database has the default collation that it had before."""
        if self.verb == "CREATE":
            return self.conditional
        return self.verb == "ALTER" and not self.charset and not self.collation


def parse_database_ddl(text: str, default_schema: str, quoting: Quoting) -> DatabaseDdl | None:
    """Read a statement; None if it is not about a database.

    Args:
        text: one statement, as it was logged.
        default_schema: the database that ALTER DATABASE without a name means.
        quoting: how its session quotes.
    """
    tokens = tokenize(text, quoting)
    verb = tokens[0].word if tokens else ""
    if verb not in _VERBS:
        return None
    at = object_of(tokens)
    if at >= len(tokens) or tokens[at].word not in SCHEMAS:
        return None
    ((schema, _),) = parse_statement(text, default_schema, quoting).tables
    conditional = behind_condition(tokens, at + 1) > at + 1
    charset, collation = _options(tokens[at + 1 :])
    return DatabaseDdl(verb, schema, conditional, charset, collation)


def _options(tokens: Sequence[Token]) -> tuple[str, str]:
    charset = collation = ""
    for at, token in enumerate(tokens):
        if token.word == "COLLATE":
            collation = _value(tokens, at + 1)
        elif token.word == "CHARSET" or (
            token.word == "SET" and at and tokens[at - 1].word in ("CHARACTER", "CHAR")
        ):
            charset = _value(tokens, at + 1)
    return charset, collation


def _value(tokens: Sequence[Token], at: int) -> str:
    if at < len(tokens) and tokens[at].word == "=":
        at += 1
    if at >= len(tokens):
        return ""
    if tokens[at].word == DEFAULT:
        return DEFAULT
    return (text_of(tokens[at]) or name_of(tokens[at])).lower()
