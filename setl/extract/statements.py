"""Row changes that were logged as statements: skipped where they concern no mapped table.

Sessions in the formats STATEMENT and MIXED log them so, whatever a server's own format is: checks
of managed servers, tools such as pt-table-checksum. No rows follow in the stream. So a statement
that may touch a mapped table stops the pipeline, and it goes by what the statement itself names:
the tables that it writes, the functions that it calls. What else happens when those tables are
written is asked of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

from setl.codec.binlog.refused import past
from setl.codec.sql.redaction import without_texts
from setl.codec.sql.row_statement import Name, RowStatement, parse_row_statement
from setl.codec.sql.statement import quoting_of, table_ddl_of
from setl.codec.sql.table_ddl import Action, Role
from setl.codec.sql.tokens import Quoting
from setl.errors import FatalError
from setl.model.entry import Entry
from setl.model.position import BinlogPosition, Position
from setl.model.session import StatementSession

STATEMENT: Final = "statement"
"""What `accept` of a channel file calls the statements of a table: statement@schema.table."""

_OWN_SCHEMA: Final = "retl"
_MAX_CREATED: Final = 1_000  # tables, whose names are a pool without bound
_SHOWN: Final = 200  # characters of a statement in messages


class Reach(NamedTuple):
    """What else happens when a table is written or read by a statement.

    Attributes:
        reason: why that is not known, or may be anything: half a sentence; "" if it is known.
        hint: what would make it known, an instruction or SQL; "" for nothing.
        tables: other tables that are written, too, by foreign keys.
    """

    reason: str = ""
    hint: str = ""
    tables: tuple[Name, ...] = ()


class Effects(Protocol):
    """What a source says about its tables as they are now. Answers may be kept for a while."""

    def of_writing(self, schema: str, table: str) -> Reach:
        """What else is written if rows of this table are.

        Args:
            schema: its schema.
            table: its name.

        Raises:
            SetlError: the source does not answer.
        """
        ...

    def of_reading(self, schema: str, table: str) -> Reach:
        """What is written if a table or view is read; as `of_writing`."""
        ...

    def forget(self) -> None:
        """Definitions of the source have changed."""
        ...


class _Ambiguity(NamedTuple):
    """Why a statement does not pass: half a sentence, what `accept` would name, what may help."""

    reason: str
    name: Name | None
    hint: str = ""


class SkippedStatements:
    """Decides about the statements of one pipeline's source."""

    def __init__(
        self,
        is_mapped: Callable[[str, str], bool],
        accepts: Callable[[str], bool] = lambda _: False,
        effects: Effects | None = None,
    ) -> None:
        """Decide by what is mapped.

        Args:
            is_mapped: whether rows of a table go anywhere.
            accepts: whether the pipeline is to live with something, by its name, see
                `setl.operate.check.with_accepted`.
            effects: asks the source; without it nothing passes but what is accepted.
        """
        self._is_mapped = is_mapped
        self._accept = accepts
        self._effects = effects
        # Tables that the stream has seen created, and nothing that could give them a trigger or
        # such since: they may be gone by the time the source is asked.
        self._made: set[Name] = set()
        # Those that it has seen created as temporary ones, with their connections. A name that the
        # source does not have may else be one, or that of a view that is gone.
        self._temporary: set[tuple[int, Name]] = set()

    def skips(self, entry: Entry, end: Position | None = None) -> str:
        """Whether a statement is skipped; returns the schema that it counts for.

        Those that do nothing but to temporary tables count for none: "".

        Args:
            entry: the statement.
            end: where its transaction ends, if that is known.

        Raises:
            FatalError: it may touch mapped tables.
            SetlError: the source does not answer.
        """
        session = entry.session or StatementSession(entry.schema)
        quoting = quoting_of(session)
        found = parse_row_statement(
            entry.statement,
            session.schema,
            quoting,
            ignores_space=session.has_mode("IGNORE_SPACE"),
        )
        if found is None:
            ambiguity = _Ambiguity("its tables is unknown", None)
            raise _refused(entry, quoting, ambiguity, end or entry.position)
        self._note_temporary(found, session.thread)
        if not (found.written or found.calls or found.read):
            return ""
        ambiguity = self._ambiguity(found, session)
        if ambiguity is not None:
            raise _refused(entry, quoting, ambiguity, end or entry.position)
        if found.creates:
            self._note(found.written)
        named = found.written or found.calls
        return named[0][0] if named else session.schema

    def changed(self, entry: Entry) -> None:
        """Something was created, altered or dropped at the source by DDL."""
        if self._effects is not None:
            self._effects.forget()
        ddl = table_ddl_of(entry)
        names = [(name.schema, name.table) for name in ddl.subjects] if ddl else []
        bound = ddl is not None and any(
            name.role in (Role.REFERENCED, Role.OTHER) for name in ddl.names
        )
        if ddl is None or bound or ddl.action not in (Action.CREATE, Action.DROP):
            self._made.clear()
        elif ddl.action is Action.DROP:
            self._made.difference_update(names)
        elif not ddl.conditional:
            self._note(names)

    def _note(self, made: Sequence[Name]) -> None:
        if len(self._made) >= _MAX_CREATED:
            self._made.clear()
        self._made.update(made)

    def _note_temporary(self, found: RowStatement, thread: int) -> None:
        named = {(thread, name) for name in found.temporary}
        if found.drops:
            self._temporary -= named
            return
        if len(self._temporary) >= _MAX_CREATED:
            self._temporary.clear()
        self._temporary |= named

    def _ambiguity(self, found: RowStatement, session: StatementSession) -> _Ambiguity | None:
        left = [name for name in found.written if not self._accepts(name)]
        if found.written and not left:
            return None
        # Who accepts a table's statements accepts what these call and read.
        first = left[0] if left else None
        doubts = chain(
            (
                _Ambiguity(f"it writes {_dotted(name)}", name)
                for name in left
                if self._concerns(*name) and not self._is_temporary(name, session)
            ),
            (
                _Ambiguity(f"it calls {_dotted(name)}, which may write any table", first or name)
                for name in found.calls
                if first or not self._accepts(name)
            ),
            self._doubts_at_source(found, left, session),
        )
        return next(doubts, None)

    def _doubts_at_source(
        self, found: RowStatement, left: Sequence[Name], session: StatementSession
    ) -> Iterator[_Ambiguity]:
        first = left[0] if left else None
        effects = self._effects
        if effects is None:
            yield _Ambiguity("the source cannot be asked what else it does", first)
            return
        for name in left:
            if found.creates or name in self._made or self._is_temporary(name, session):
                continue
            reach = effects.of_writing(*name)
            if reach.reason:
                yield _Ambiguity(f"{_dotted(name)} {reach.reason}", name, reach.hint)
            for other in reach.tables:
                if self._concerns(*other):
                    keys = f"foreign keys to {_dotted(name)} act on rows of {_dotted(other)}"
                    yield _Ambiguity(keys, name)
        for name in found.read:
            if name in self._made or self._is_temporary(name, session):
                continue
            reach = effects.of_reading(*name)
            if reach.reason:
                yield _Ambiguity(
                    f"{_dotted(name)}, which it reads, {reach.reason}", first, reach.hint
                )

    def _is_temporary(self, name: Name, session: StatementSession) -> bool:
        return session.temporary and (session.thread, name) in self._temporary

    def _accepts(self, name: Name) -> bool:
        return self._accept(f"{STATEMENT}@{_dotted(name)}")

    def _concerns(self, schema: str, table: str) -> bool:
        # Rows of setl's own tables say something of others: marks, for one.
        return schema.lower() == _OWN_SCHEMA or self._is_mapped(schema, table)


def _refused(entry: Entry, quoting: Quoting, ambiguity: _Ambiguity, end: Position) -> FatalError:
    text = without_texts(entry.statement, quoting)[:_SHOWN]
    hints = [ambiguity.hint] if ambiguity.hint else []
    hints.append(
        "SET GLOBAL binlog_format='ROW' on the source, and let no session choose otherwise"
    )
    if ambiguity.name is not None:
        named = f"{STATEMENT}@{_dotted(ambiguity.name)}"
        hints.append(
            "Where the target need not have what such statements do, name"
            f" {named} under `accept` in the channel file, `setl apply` it, and `setl start`"
            " the channel"
        )
    if isinstance(end, BinlogPosition):
        hints.append(
            f"Or {past(end)}; if it changed rows of mapped tables, load these with `setl load"
            " PIPELINE --replace`"
        )
    return FatalError(
        f"the source logged a statement instead of its rows, and {ambiguity.reason}: {text!r}",
        hint=". ".join(hints),
        position=entry.position,
        schema=entry.schema,
    )


def _dotted(name: Name) -> str:
    return ".".join(name)
