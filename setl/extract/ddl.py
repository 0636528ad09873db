"""The mark of a DDL statement.

DDL has no transaction and so no row of the mark table. A statement that setl replicates carries
its mark in a comment instead (I10): ``/*setl:17*/ ALTER TABLE shop.orders …``.

Servers log most statements as they were sent, comments included. But some they write again, without
the comment: ``DROP TABLE``, ``CREATE VIEW``, ``CREATE TRIGGER`` and ``CREATE TABLE … SELECT``. Of
these only the first is ever replicated, and where another pipeline reads it, the table is renamed
first: the RENAME carries the mark, and a DROP of a name that no pipeline maps concerns nobody (see
`setl.channel.names.shadow_tables.DROPPED_PREFIX`).
"""

from __future__ import annotations

import re

from setl.codec.binlog.refused import past
from setl.codec.sql.redaction import without_texts
from setl.codec.sql.statement import may_be_temporary, quoting_of
from setl.codec.sql.tokens import comments_of
from setl.errors import FatalError
from setl.extract.loopback import MarkIdentity
from setl.model.entry import Entry
from setl.model.position import BinlogPosition
from setl.model.session import StatementSession

_OWN_SCHEMA = "retl"
_SHOWN = 200  # characters of a statement in messages
_MARK = re.compile(r"/\*\s*setl:(\d+)\s*\*/", re.IGNORECASE)


def is_without_its_mark(identity: MarkIdentity, statement: str, session: StatementSession) -> bool:
    """Whether setl ran what a server logged in other words, without any channel's mark.

    Where marks matter, setl runs DDL with its own schema as the session's, which is logged too.
    """
    if identity.mark_id is None or session.schema.lower() != _OWN_SCHEMA:
        return False
    return not any(map(_MARK.fullmatch, comments_of(statement, quoting_of(session))))


def refuse_temporary(entry: Entry) -> None:
    """Refuse DDL that does not say whether a temporary or a lasting table is meant.

    All statements of a procedure that has used a temporary table are logged as such that use one. A
    MySQL tells by what takes part in a statement: InnoDB does, if it is about a lasting table.

    Args:
        entry: DDL that names a mapped table.

    Raises:
        FatalError: its session used a temporary table, and it may be about that.
    """
    session = entry.session
    if session is None or not session.temporary or session.committed:
        return
    quoting = quoting_of(session)
    if not may_be_temporary(entry.statement, quoting):
        return
    position = entry.position
    hint = (
        "If the session's binlog_format was ROW, it was about the lasting table: do the same to"
        " the target's. If not, it may have been about the temporary one, which leaves nothing to"
        " do; SET GLOBAL binlog_format='ROW' on the source, and let no session choose otherwise"
    )
    if isinstance(position, BinlogPosition):
        hint = f"{hint}. Then {past(position)}"
    raise FatalError(
        "a session that used a temporary table changed a table, and the binlog does not say"
        f" whether it was that one: {without_texts(entry.statement, quoting)[:_SHOWN]!r}",
        hint=hint,
        position=position,
        schema=entry.schema,
    )


def is_own_ddl(
    identity: MarkIdentity, statement: str, session: StatementSession | None = None
) -> bool:
    """Whether a comment of the statement names this channel."""
    if identity.mark_id is None or "setl:" not in statement.lower():
        return False
    quoting = quoting_of(session or StatementSession())
    marks = map(_MARK.fullmatch, comments_of(statement, quoting))
    return any(mark is not None and int(mark[1]) == identity.mark_id for mark in marks)
