"""Dead letters in a MySQL target: the table of ``sql/deadletter.sql``."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from typing import Any

from pymysql.connections import Connection
from pymysql.err import OperationalError, ProgrammingError

from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.store import Pending, Tally, no_dead_letters_stored, tallied, too_large
from setl.systems.mysql.connection import MysqlEndpoint, connect, error_number, translating

_TABLE = "retl.setl_deadletter"
_FIELDS = tuple(field.name for field in fields(DeadLetter))
_NEWER = ("state", "position", "error", "hint", "payload", "at", "batch", "epoch", "nid")
_KEEP = (
    f"INSERT INTO {_TABLE} ({', '.join(_FIELDS)}) VALUES ({', '.join(['%s'] * len(_FIELDS))}) "
    "ON DUPLICATE KEY UPDATE attempts = attempts + 1, "
    + ", ".join(f"{name} = VALUES({name})" for name in _NEWER)
)
_STORE_AGAIN = (
    f"UPDATE {_TABLE} SET attempts = attempts + 1, "
    + ", ".join(f"{name} = %s" for name in _NEWER)
    + " WHERE id = %s"
)
_NO_TABLE = {1049, 1146}  # no such database, no such table
_IDS_AT_ONCE = 1_000


class MysqlDeadLetters:
    """The `DeadLetterStore` over one connection, which decides about transactions."""

    def __init__(self, connection: Connection[Any], packet: int = 1 << 30) -> None:
        """Use a connection; pymysql's errors pass through, so that its owner gives them a kind.

        Args:
            connection: the connection.
            packet: bytes of the longest statement that its server accepts.
        """
        self._connection = connection
        self._packet = packet

    def keep(self, letters: Sequence[DeadLetter], *, again: Collection[str] = ()) -> None:
        """See `DeadLetterStore.keep`."""
        with self._connection.cursor() as cursor:
            # One statement each: payloads are of any size, and letters are few.
            for letter in letters:
                values = [v.value if isinstance(v, State) else v for v in astuple(letter)]
                if letter.id in again:
                    named = dict(zip(_FIELDS, values, strict=True))
                    values = [named[name] for name in (*_NEWER, "id")]
                    statement = cursor.mogrify(_STORE_AGAIN, values)
                else:
                    statement = cursor.mogrify(_KEEP, values)
                # The server would end the connection, which looks like a lost one.
                if len(statement.encode()) > self._packet:
                    raise too_large(letter, "max_allowed_packet on the target")
                cursor.execute(statement)

    def mark(self, ids: Collection[str], state: State) -> None:
        """See `DeadLetterStore.mark`."""
        with self._connection.cursor() as cursor:
            for some in _portions(ids):
                cursor.execute(
                    f"UPDATE {_TABLE} SET state = %s WHERE id IN %s AND state <> 'superseded'",
                    (state.value, some),
                )

    def forget_keys(self, ids: Collection[str]) -> None:
        """See `DeadLetterStore.forget_keys`."""
        with self._connection.cursor() as cursor:
            for some in _portions(ids):
                cursor.execute(
                    f"UPDATE {_TABLE} SET state = 'open', key_hash = '' WHERE id IN %s"
                    " AND state <> 'superseded'",
                    (some,),
                )

    def remove(self, ids: Collection[str]) -> int:
        """See `DeadLetterStore.remove`."""
        with self._connection.cursor() as cursor:
            return sum(
                cursor.execute(f"DELETE FROM {_TABLE} WHERE id IN %s", (some,))
                for some in _portions(ids)
            )

    def pending(self, pipeline: str, target: str) -> list[Pending]:
        """See `DeadLetterStore.pending`."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT id, key_hash, version FROM {_TABLE} WHERE pipeline = %s AND target = %s "
                "AND state IN ('open', 'retry') AND key_hash <> ''",
                (pipeline, target),
            )
            return [Pending(str(i), str(k), int(v)) for i, k, v in cursor.fetchall()]

    def find(
        self,
        pipeline: str,
        *,
        ids: Collection[str] = (),
        target: str = "",
        states: Collection[State] = (),
        limit: int = 0,
        newest: bool = False,
    ) -> list[DeadLetter]:
        """See `DeadLetterStore.find`."""
        where, arguments = ["pipeline = %s"], list[object]([pipeline])
        if ids:
            where.append("id IN %s")
            arguments.append(tuple(ids))
        if target:
            where.append("(target = %s OR source = %s)")
            arguments += [target, target]
        if states:
            where.append("state IN %s")
            arguments.append(tuple(state.value for state in states))
        order = "version DESC, id DESC" if newest else "version, id"
        statement = (
            f"SELECT {', '.join(_FIELDS)} FROM {_TABLE} WHERE {' AND '.join(where)} "
            f"ORDER BY {order}" + (f" LIMIT {int(limit)}" if limit else "")
        )
        with self._connection.cursor() as cursor:
            cursor.execute(statement, arguments)
            return [_letter(row) for row in cursor.fetchall()]

    def states(self, pipeline: str, ids: Collection[str] = ()) -> dict[str, State]:
        """See `DeadLetterStore.states`."""
        statement = f"SELECT id, state FROM {_TABLE} WHERE pipeline = %s"
        found: dict[str, State] = {}
        with self._connection.cursor() as cursor:
            for some in _portions(ids) or [()]:
                named = (" AND id IN %s", [pipeline, some]) if some else ("", [pipeline])
                cursor.execute(statement + named[0], named[1])
                found.update((str(i), State(s)) for i, s in cursor.fetchall())
        return found

    def tally(self, pipeline: str) -> Tally:
        """See `DeadLetterStore.tally`."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT state, target, COUNT(*) FROM {_TABLE} WHERE pipeline = %s "
                "GROUP BY state, target",
                (pipeline,),
            )
            return tallied((State(s), str(t), int(n)) for s, t, n in cursor.fetchall())

    def trim(self, pipeline: str, most: int) -> None:
        """See `DeadLetterStore.trim`."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT id FROM {_TABLE} WHERE pipeline = %s AND state = 'superseded' "
                f"ORDER BY version DESC LIMIT {1 << 20} OFFSET {int(most)}",
                (pipeline,),
            )
            self.remove([str(row[0]) for row in cursor.fetchall()])


@contextmanager
def opened_table(endpoint: MysqlEndpoint) -> Generator[MysqlDeadLetters]:
    """The store over a connection of its own, each call outside of a transaction."""
    connection = connect(endpoint)
    try:
        with translating(endpoint):
            try:
                yield MysqlDeadLetters(connection)
            except (ProgrammingError, OperationalError) as error:
                if error_number(error) not in _NO_TABLE:
                    raise
                raise no_dead_letters_stored(f"table {_TABLE}").at(server=endpoint) from error
    finally:
        connection.close()


def _letter(row: Sequence[Any]) -> DeadLetter:
    values: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
    values["state"] = State(values["state"])
    return DeadLetter(**values)


def _portions(ids: Collection[str]) -> list[tuple[str, ...]]:
    everything = tuple(ids)
    return [everything[i : i + _IDS_AT_ONCE] for i in range(0, len(everything), _IDS_AT_ONCE)]
