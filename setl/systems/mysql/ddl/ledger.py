"""The record of schema changes in ``retl.setl_ddl`` of a target (``sql/ddl.sql``)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.codec.sql.created_table import without_next_number
from setl.errors import ConfigurationError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.session import StatementSession
from setl.systems.mysql.connection import error_number, translate
from setl.systems.mysql.created_text import read_created_text
from setl.systems.mysql.ddl.moved_rows import rows_of_exchange
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.table_state import MISSING_TABLE, Name

MAX_DONE: Final = 500
"""Changes of one pipeline that are remembered after they are done."""

BEGUN, DONE, FAILED, STORED = "begun", "done", "failed", "kept"

_WRITE: Final = (
    "INSERT INTO retl.setl_ddl (pipeline, id, step, generation, version, state, shadow, statement,"
    " session, looks, error, epoch) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON DUPLICATE KEY UPDATE generation = VALUES(generation), version = VALUES(version),"
    " state = VALUES(state), shadow = VALUES(shadow), statement = VALUES(statement),"
    " session = VALUES(session), looks = VALUES(looks), error = VALUES(error),"
    " epoch = VALUES(epoch)"
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the record says of one step.

    Attributes:
        state: `BEGUN`, `DONE`, `FAILED` or `STORED`.
        generation: under which the step was last tried.
        digest: digest of the tables before it was tried.
    """

    state: str
    generation: int
    digest: str

    def is_done(self, generation: int) -> bool:
        """Whether it was done by hand, or at this position of the stream before.

        Args:
            generation: of now; after a done step the pipeline may have gone back to before it.
        """
        return self.state == DONE and self.generation >= generation


class Ledger:
    """The rows of one pipeline. Writes inside the transactions of whoever uses it.

    pymysql's errors pass through.
    """

    def __init__(
        self, connection: Connection[Any], ticket: LoadTicket, change: SchemaChange
    ) -> None:
        """Read and write over `connection` what is known of `change`."""
        self._connection = connection
        self._ticket = ticket
        self._change = change

    def steps(self) -> dict[int, Recorded]:
        """What is known of the change's steps."""
        rows = self._rows(
            "SELECT step, state, generation, looks FROM retl.setl_ddl"
            " WHERE pipeline = %s AND id = %s",
            self._change.id,
        )
        return {
            int(step): Recorded(state, int(of), digest or "") for step, state, of, digest in rows
        }

    def write(
        self,
        step: int,
        state: str,
        statement: str,
        *,
        digest: str = "",
        error: str | None = None,
        shadow: str = "",
    ) -> None:
        """Write down how far a step has come."""
        ticket, change = self._ticket, self._change
        with self._connection.cursor() as cursor:
            cursor.execute(
                _WRITE,
                (
                    *(ticket.pipeline_key, change.id, step, change.generation, change.version),
                    *(state, shadow, statement, json.dumps(change.session), digest, error),
                    ticket.epoch,
                ),
            )

    def retained(self, shadow: str) -> list[tuple[str, StatementSession]]:
        """The statements on a shadow table so far, in their order, with their sessions."""
        rows = self._rows(
            "SELECT statement, session FROM retl.setl_ddl WHERE pipeline = %s AND shadow = %s"
            " AND state = 'kept' ORDER BY version, id, step",
            shadow,
        )
        return [(text, StatementSession(*json.loads(session))) for text, session in rows]

    def done_since_stored(self, shadow: str) -> list[str]:
        """The statements that were done at the target since a shadow was made, until the change.

        There may be later ones, from before the pipeline went back.
        """
        rows = self._rows(
            "SELECT statement FROM retl.setl_ddl WHERE pipeline = %s AND state = 'done'"
            " AND id <> %s AND version < %s AND version > (SELECT MIN(version) FROM retl.setl_ddl"
            " WHERE pipeline = %s AND shadow = %s AND state = 'kept') ORDER BY version, step",
            *(self._change.id, self._change.version, self._ticket.pipeline_key, shadow),
        )
        return [str(statement) for (statement,) in rows]

    def shadows(self) -> list[str]:
        """The shadow tables of which statements are kept."""
        rows = self._rows(
            "SELECT DISTINCT shadow FROM retl.setl_ddl WHERE pipeline = %s AND state = 'kept'"
        )
        return [str(shadow) for (shadow,) in rows]

    def forget(self, shadow: str) -> None:
        """Forget what was done to a shadow table before this change."""
        self._run(
            "DELETE FROM retl.setl_ddl WHERE pipeline = %s AND shadow = %s AND state = 'kept'"
            " AND id <> %s",
            shadow,
            self._change.id,
        )

    def trim(self) -> None:
        """Forget the oldest of more than `MAX_DONE` changes that are done."""
        oldest = self._rows(
            "SELECT version FROM retl.setl_ddl WHERE pipeline = %s AND state = 'done'"
            " ORDER BY version DESC LIMIT 1 OFFSET %s",
            MAX_DONE,
        )
        if oldest:
            self._run(
                "DELETE FROM retl.setl_ddl WHERE pipeline = %s AND state = 'done'"
                " AND version <= %s",
                oldest[0][0],
            )

    def _rows(self, sql: str, *args: object) -> tuple[tuple[Any, ...], ...]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, (self._ticket.pipeline_key, *args))
            return tuple(cursor.fetchall())

    def _run(self, sql: str, *args: object) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, (self._ticket.pipeline_key, *args))


def digest_of(connection: Connection[Any], step: Step) -> str:
    """A digest of how a step's tables are made, and of rows where nothing else changes.

    pymysql's errors pass through.
    """
    texts = [_look(connection, name) for name in step.tables]
    if step.ddl is not None:
        texts.append(rows_of_exchange(connection, step.ddl))
    return hashlib.sha256("\n".join(filter(None, texts)).encode()).hexdigest()


def _look(connection: Connection[Any], name: Name) -> str:
    try:
        return without_next_number(read_created_text(connection, *name))
    except pymysql.MySQLError as error:
        failure = translate(error)
        if error_number(error) in MISSING_TABLE or isinstance(failure, ConfigurationError):
            return f"{'.'.join(name)} is missing"
        raise
