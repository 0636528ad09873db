"""Runs a transaction of a load, and again where that helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import pymysql

from setl.errors import DataError, SetlError
from setl.load.sink import LoadTicket
from setl.systems.mysql.conflicts.contested_rows import RowAppearedError
from setl.systems.mysql.connection import CUT_OFF, MysqlEndpoint, error_number, translate
from setl.systems.mysql.load.bulk_connection import RowsLostError
from setl.systems.mysql.load.new_rows import NotSentError
from setl.systems.mysql.load.targets import ColumnsChangedError, Targets
from setl.systems.mysql.load.writer import Writer
from setl.systems.mysql.values.fit import ChangedValueError

_Done = TypeVar("_Done")

_DEADLOCK: Final = 1213
_UNKNOWN_NAME: Final = frozenset({1054, 1146})  # no such column, no such table
_LOST: Final = CUT_OFF | {0}  # pymysql says 0 for one it has closed
# After these the connection is as good as before: the server said no, or has rolled back.
_ANSWERED: Final = _UNKNOWN_NAME | {_DEADLOCK, 1205}


class OutdatedError(DataError):
    """A table may be another one than it was; it is looked at again, and all restarted."""


_OUTDATED: Final = (OutdatedError, ColumnsChangedError, ChangedValueError)


class Attempts:
    """Runs transactions of one connection, and tries again what passes or can be fixed here.

    Belongs to one thread.

    Attributes:
        as_literals: whether all rows of this attempt are to be written as literals, since the
            server did not take some in another way.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        writer: Writer,
        targets: Targets,
        limit: int,
        sleep: Callable[[float], None],
    ) -> None:
        """Nothing is tried yet.

        Args:
            endpoint: the server, for errors.
            writer: has the connection.
            targets: what is known of tables; forgotten where an error says that it is outdated.
            limit: see `MysqlSinkSettings.deadlock_attempts`.
            sleep: waits between attempts.
        """
        self._endpoint = endpoint
        self._writer = writer
        self._targets = targets
        self._limit = limit
        self._sleep = sleep
        self.as_literals = False

    def run(self, ticket: LoadTicket, transaction: Callable[[], _Done]) -> _Done:
        """Run a transaction, and again if what went wrong passes or can be fixed here.

        Nothing of an attempt that fails stays, so each restarts.

        Raises:
            SetlError: what `transaction` raises, or what the server says, with the pipeline.
        """
        deadlocks = 0
        refreshed = reconnected = self._targets.fresh = self.as_literals = False
        while True:
            try:
                return transaction()
            except (pymysql.MySQLError, OSError, SetlError) as error:
                number = self._give_up(error)
                passes = number == _DEADLOCK or isinstance(error, RowAppearedError)
                if isinstance(error, (NotSentError, RowsLostError)) and not self.as_literals:
                    self.as_literals = True  # all of it: each table may be one that refuses
                elif passes and deadlocks + 1 < self._limit:
                    # The transaction that won holds the locks until it ends; let it.
                    deadlocks += 1
                    self._sleep(0.02 * 2**deadlocks)
                elif (number in _UNKNOWN_NAME or isinstance(error, _OUTDATED)) and not refreshed:
                    refreshed = True
                    self._targets.forget()
                elif number in _LOST and not reconnected:
                    # Most often it was lost while it was idle. Even if the commit went through
                    # and only its answer is missing, the same transaction changes nothing.
                    reconnected = True
                elif isinstance(error, SetlError):
                    # It may be about a table that is being fixed.
                    self._targets.forget()
                    self._positioned(error, ticket)
                    raise
                else:
                    raise self._positioned(translate(error), ticket) from error
            except BaseException:
                # The task is being ended in the middle of something.
                self._writer.drop()
                raise

    def _give_up(self, error: Exception) -> int | None:
        """Make sure that nothing of the transaction stays; returns the server's error number."""
        cause = error.__cause__ if isinstance(error, SetlError) else error
        number = error_number(cause)
        if isinstance(error, SetlError) or number in _ANSWERED:
            self._writer.rollback()
        else:
            # How far the server came is not known.
            self._writer.drop()
        return number

    def _positioned(self, error: SetlError, ticket: LoadTicket) -> SetlError:
        return error.at(pipeline=ticket.pipeline_key, server=self._endpoint)
