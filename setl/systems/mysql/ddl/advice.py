"""What is said of a schema change that stops the pipeline, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.sql.redaction import redacted
from setl.errors import FatalError

LOAD_AFTER: Final = (
    "Make the target's tables{by_hand} as the source's are now. Mark the change as done as said"
    " next, `setl start` the channel, and then load them with `setl load --replace`"
)
"""For changes after which rows may be others than the target's; `{by_hand}` stands for how."""

_EXISTS: Final = 1050
# A name that is no function of the server's is looked for in the session's schema, which is none.
_NO_FUNCTION: Final = frozenset({1046, 1305})
# Rows that a table has are not such as it would take: no value for NOT NULL, a value twice, too
# long, out of range, of no row of the parent, not as a CHECK wants it.
_OF_ROWS: Final = frozenset(
    {1048, 1062, 1138, 1216, 1264, 1265, 1292, 1366, 1406, 1411, 1452, 1526, 3819, 4025}
)


def not_replicated(why: str, statement: str, hint: str = "") -> FatalError:
    """A schema change that is a person's: the reason, the statement, and what to do."""
    text = f"this schema change cannot be replicated: {why}: {redacted(statement)[:300]}"
    return FatalError(text, hint=hint)


def reason_of(number: int) -> str:
    """What the number of a server's error does not say, in parentheses; "" for nothing."""
    if number not in _NO_FUNCTION:
        return ""
    return " (the target has no function of a name in it, such as MySQL 9.6 and later have no MD5)"


def advice_on(number: int, by_hand: str, *, copied: bool, shadows: Sequence[str]) -> str:
    """The next action of whoever reads of a refused statement.

    Args:
        number: of the server's error.
        by_hand: how a person changes the target.
        copied: see `setl.systems.mysql.ddl.plan.Step`.
        shadows: of the tables that the statement makes, such as may take their places.
    """
    if number == _EXISTS and shadows:
        return (
            "A RENAME TABLE before it was taken for the first half of an online schema change,"
            f" since there is its shadow {', '.join(shadows)}, and the shadow has not taken the"
            f" table's place. Rename the table at the target{by_hand}, as it was renamed at the"
            " source, and `setl start` the channel; or drop it there if the source has dropped it"
        )
    if number in _OF_ROWS and copied:
        return (
            "Online schema changes leave out rows that the new definition does not take, or change"
            " them, and nothing in the stream says which. Delete such rows from the target's table,"
            f" or change them, and make the change there{by_hand}. Mark it as done as said next,"
            " `setl start` the channel, and then load the table with `setl load --replace`"
        )
    if number in _OF_ROWS:
        return (
            "Rows of the target are not such as the change wants them, though those of the source"
            " were. Compare the table with `setl verify`, fix the rows there, and `setl start` the"
            f" channel; or make the change on the target{by_hand}"
        )
    if number in _NO_FUNCTION:
        return (
            f"Make the change on the target{by_hand}, with a plain column in place of the generated"
            " one: it gets the source's values. If the table has rows, load it with `setl load"
            " --replace` when the pipeline runs again"
        )
    return (
        f"Make it possible, and `setl start` the channel; or make the change on the target{by_hand}"
    )
