"""The mark of a DDL statement.

DDL has no transaction and so no row of the mark table. A statement that setl passes on carries
its mark in a comment instead (I10): ``/*setl:17*/ ALTER TABLE shop.orders …``.

Servers log most statements as they were sent, comments included. But some they write anew, without
the comment: ``DROP TABLE``, ``CREATE VIEW``, ``CREATE TRIGGER`` and ``CREATE TABLE … SELECT``. Of
these only the first is ever passed on, and where another pipeline reads it, the table is renamed
first: the RENAME carries the mark, and a DROP of a name that no pipeline maps concerns nobody (see
`setl.channel.names.shadow_tables.DROPPED_PREFIX`).
"""

from __future__ import annotations

import re

from setl.codec.sql.statement import quoting_of
from setl.codec.sql.tokens import comments_of
from setl.extract.loopback import MarkIdentity
from setl.model.session import StatementSession

_OWN_SCHEMA = "retl"
_MARK = re.compile(r"/\*\s*setl:(\d+)\s*\*/", re.IGNORECASE)


def is_without_its_mark(identity: MarkIdentity, statement: str, session: StatementSession) -> bool:
    """Whether setl ran what a server logged in other words, without any channel's mark.

    Where marks matter, setl runs DDL with its own schema as the session's, which is logged too.
    """
    if identity.mark_id is None or session.schema.lower() != _OWN_SCHEMA:
        return False
    return not any(map(_MARK.fullmatch, comments_of(statement, quoting_of(session))))


def is_own_ddl(
    identity: MarkIdentity, statement: str, session: StatementSession | None = None
) -> bool:
    """Whether a comment of the statement names this channel."""
    if identity.mark_id is None or "setl:" not in statement.lower():
        return False
    quoting = quoting_of(session or StatementSession())
    marks = map(_MARK.fullmatch, comments_of(statement, quoting))
    return any(mark is not None and int(mark[1]) == identity.mark_id for mark in marks)
