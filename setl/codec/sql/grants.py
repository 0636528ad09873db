"""Reads privileges from SHOW GRANTS: who may do what on which schema."""

from __future__ import annotations

from typing import NamedTuple

from setl.codec.sql.names import listed, name_of
from setl.codec.sql.tokens import Token, tokenize


class Grant(NamedTuple):
    """A line of SHOW GRANTS.

    Attributes:
        privileges: such as ``REPLICATION SLAVE``, in upper case; those of columns without them.
        schema: on which schema, as it stands there, with its wildcards; "" for all of them.
        to_account: whether it is the account's own, and not that of a role without a host.
    """

    privileges: frozenset[str]
    schema: str
    to_account: bool


def read_grant(text: str) -> Grant | None:
    """Read a line; None if it is not about all schemas, nor about all tables of one."""
    tokens = tokenize(text)
    words = [token.word for token in tokens]
    if words[:1] != ["GRANT"] or "ON" not in words:
        return None
    on = words.index("ON")
    schema, rest = tokens[on + 1 : on + 2], words[on + 2 : on + 5]
    everywhere = words[on + 1 : on + 2] == ["*"]
    if rest != [".", "*", "TO"] or not (everywhere or name_of(schema[0])):
        return None
    privileges = frozenset(_privilege(tokens) for tokens in map(list, listed(tokens[1:on])))
    to_account = words[on + 6 : on + 7] == ["@"]
    return Grant(privileges, "" if everywhere else name_of(schema[0]), to_account)


def _privilege(tokens: list[Token]) -> str:
    words = [token.word for token in tokens]
    return " ".join(words[: words.index("(")] if "(" in words else words)
