"""Statements without the passwords that stand in them."""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = r"(?:'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\")"

# IDENTIFIED [WITH or VIA plugin] BY, AS or USING [PASSWORD[(]] '…'; PASSWORD [(] '…' as an option
# of servers and replication; SET PASSWORD [FOR account] = [PASSWORD(] '…'. What REPLACE and BY
# name in one statement are two.
_PASSWORD: Final = re.compile(
    rf"""
    (?P<before>
        \b(?:BY|AS|USING|REPLACE) \s+ (?:PASSWORD \s* \(? \s*)?
      | \bPASSWORD \s* (?:\( \s* | = \s*)?
      | \bSET \s+ PASSWORD \b [^=]* = \s* (?:\w+ \s* \( \s*)?
    )
    {_QUOTED}
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ACCOUNTS: Final = re.compile(r"\b(?:IDENTIFIED|PASSWORD|MASTER_PASSWORD)\b", re.IGNORECASE)


def discreet(statement: str) -> str:
    """A statement with ``'***'`` in place of passwords, of which DDL of accounts has some (I19)."""
    if not _ACCOUNTS.search(statement):
        return statement
    return _PASSWORD.sub(r"\g<before>'***'", statement)
