"""Tells whether a schema change does the same to rows at the target as at the source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from setl.codec.sql.table_ddl import column_words
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.model.session import StatementSession
from setl.systems.mysql.catalog import unescaped
from setl.systems.mysql.ddl.conversions import converts_alike, is_moment
from setl.systems.mysql.ddl.effects import Effects
from setl.systems.mysql.ddl.table_state import TableState
from setl.systems.mysql.session_functions import BY_SETTINGS, BY_TIME_ZONE, OF_DAYS

_TIME_TYPES: Final = frozenset({"timestamp", "datetime", "date", "time"})
_NO_CHARACTER: Final = "\N{REPLACEMENT CHARACTER}"
_UTC: Final = ("+00:00", "UTC", "Etc/UTC")
# What makes a time of a moment, or a moment of a time.
_OF_MOMENTS: Final = BY_TIME_ZONE | {"TIMESTAMP"}


_ZONE: Final = "the time zone of the session that did is not in the stream"
_SETTINGS: Final = "settings of the session that did, such as lc_time_names, are not in the stream"
REASON_ROWS_LOST: Final = "it removes rows that have the same key, and which of them stays is open"
"""Of ALTER IGNORE, where there are such rows."""


def reason_not_equivalent_without_rows(
    effects: Effects, session: StatementSession, statement: str
) -> str:
    """Why a statement may mean something else at the target, whatever rows there are; or ""."""
    if _NO_CHARACTER in statement:
        return "some of its bytes are no characters of its session's character set"
    if effects.files:
        return "its rows come from a file of the source's server, or go with one"
    if session.error:
        return f"at the source it failed half-way, with error {session.error}"
    if not session.known and effects.unclear:
        return f"the session that ran it is not in the stream, and decides {effects.unclear}"
    return ""


def reason_not_equivalent_with_rows(
    effects: Effects, session: StatementSession, state: TableState, *, gathered: bool = False
) -> str:
    """Why rows of the table may differ from the source's afterwards, or ""; not of numbers.

    Args:
        effects: of the statement.
        session: the statement's.
        state: of the target's table.
        gathered: whether rows of other tables may be there, which get their values at their own.
    """
    if gathered and effects.clock:
        return "rows of other tables, which are in the same one here, get the time of this change"
    converts = effects.retyped and (
        effects.times or any(state.types.get(c) in _TIME_TYPES for c in effects.retyped)
    )
    if effects.unsure:
        return f"existing rows get values of {', '.join(effects.unsure)}, different at each site"
    left_open = "" if session.known else _open(effects, converts=bool(converts))
    unknown = "the session that ran it is not in the stream, and decides"
    return f"{unknown} {left_open}" if left_open else ""


def _open(effects: Effects, *, converts: bool) -> str:
    """What of the rows only the session decides, "" for nothing."""
    doubts = {
        "which time existing rows get": effects.clock,
        "whether a TIMESTAMP gets the time by itself": "TIMESTAMP" in effects.types
        and not effects.retyped,
        "how times are converted": converts,
        "how its counter counts": effects.numbers or bool(effects.numbered),
    }
    return next((reason for reason, holds in doubts.items() if holds), "")


def reason_not_reversible(effects: Effects, session: StatementSession) -> str:
    """Why rows may differ that the target's clients wrote before the statement came there, or "".

    They have come to the source, or are going to, without the column that it has already.
    """
    by_itself = "TIMESTAMP" in effects.types and session.explicit_timestamps is False
    filled = effects.clock or effects.renews or by_itself
    if not (filled or effects.numbers):
        return ""
    what = "the time" if filled else "the number"
    return (
        f"rows that clients of the target wrote since get {what} of the change here, and"
        f" {what} of their arrival at the source"
    )


def reason_copies_differ(
    effects: Effects, session: StatementSession, types: Mapping[str, str], *, utc: bool = False
) -> str:
    """Why rows may differ that were copied into a shadow, after a statement ran on it; or "".

    Servers log the time zone with a statement that used it. The shadow was empty, so that the
    statement did not. The copying did, and rows are logged without the session's settings.

    Args:
        effects: of the statement.
        session: the statement's, which need not be that of the copying.
        types: the types of the target's columns before the statement, by name in lower case.
        utc: whether somebody says that rows are copied under UTC, as the statement runs here if it
            was logged with no time zone.
    """
    utc = utc and session.time_zone in ("", *_UTC)
    by_itself = "TIMESTAMP" in effects.types and not session.explicit_timestamps
    if effects.clock or effects.numbers or effects.numbered or by_itself:
        return "the online schema change filled rows when it copied them, and nothing tells how"
    computed = [c for c, words in effects.computed.items() if _of_session(words, types)]
    if computed and not utc:
        return _copied("computed", computed, _ZONE)
    called = {c: {word.upper() for word in words} for c, words in effects.computed.items()}
    if by_settings := [c for c, words in called.items() if words & BY_SETTINGS]:
        return _copied("computed", by_settings, _SETTINGS)
    retyped = [(c, types[c], new) for c, new in effects.retyped.items() if c in types]
    if converted := [c for c, old, new in retyped if is_moment(old) != is_moment(new)]:
        if not utc:
            return _copied("converted", converted, _ZONE)
        retyped = [(c, _without_zone(old), _without_zone(new)) for c, old, new in retyped]
    if converted := [c for c, old, new in retyped if not converts_alike(old, new)]:
        why = "servers convert otherwise when they alter a table"
        return _copied("converted", converted, why)
    return ""


def reason_stored_rows_differ(state: TableState, *, utc: bool = False) -> str:
    """Why rows that were copied into a shadow may hold other computed values than before, or "".

    What a STORED generated column computes of a moment, or by a setting, it computes again when a
    row is copied, in that session. The target's rows keep what their own sessions computed.

    Args:
        state: of the target's table.
        utc: whether somebody says that rows are copied under UTC.
    """
    expressions = {**state.virtual, **state.stored}
    said = {column: tuple(tokenize(unescaped(text))) for column, text in expressions.items()}
    by_zone: set[str] = set()
    by_settings: set[str] = set()
    for _ in said:  # each may be computed of others
        for column, tokens in said.items():
            names = {t.name.lower() for t in tokens if t.kind is TokenKind.NAME}
            if names & by_zone or _of_session(column_words(tokens), state.definitions):
                by_zone.add(column)
            if names & by_settings or any(t.word in BY_SETTINGS for t in tokens):
                by_settings.add(column)
    if (again := [column for column in state.stored if column in by_zone]) and not utc:
        return _copied("computed", again, _ZONE)
    again = [column for column in state.stored if column in by_settings]
    return _copied("computed", again, _SETTINGS) if again else ""


def _of_session(words: Collection[str], types: Mapping[str, str]) -> bool:
    """Whether an expression of these names and functions depends on a session's time zone.

    Args:
        words: in lower case.
        types: the types of the table's columns, by name in lower case.
    """
    named = [types[word] for word in words if word in types]
    called = {word.upper() for word in words}
    if not _OF_MOMENTS.isdisjoint(called) or any(map(is_moment, named)):
        return True
    times = any(kind.lower().partition("(")[0] == "time" for kind in named)
    return times and not OF_DAYS.isdisjoint(called)


def _without_zone(kind: str) -> str:
    return kind.lower().replace("timestamp", "datetime")


def _copied(what: str, columns: Sequence[str], why: str) -> str:
    return (
        f"the online schema change {what} {', '.join(columns)} when it copied the rows, and {why}"
    )


def reason_order_differs(
    effects: Effects, state: TableState, *, whole: bool, source_key: tuple[str, ...]
) -> str:
    """Why rows may be numbered in another order than at the source, or "".

    Args:
        effects: of a statement that numbers rows.
        state: of the target's table.
        whole: whether the target has all rows of the source's table.
        source_key: the primary key at the source when the statement read the rows, () if there is
            none or it is not known.
    """
    if not whole:
        return "it numbers rows, and the target has not all of them, or has others, too"
    if effects.ordered:
        return "it numbers rows in an order of its own"
    if not state.key:
        return "it numbers rows of a table without a primary key, so that their order is open"
    if (effects.rekeyed and not source_key) or not state.plain:
        return "it numbers rows in an order that need not be the target's"
    if source_key != state.key:
        return (
            "it numbers rows in the order of the primary key, which is"
            f" ({', '.join(source_key) or 'not known'}) at the source and"
            f" ({', '.join(state.key)}) at the target"
        )
    return ""
