"""Takes a MySQL target over from older leaderships (I2)."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.errors import ConfigurationError, FencedError, TransientError
from setl.systems.mysql.connection import MysqlEndpoint, connect, translate
from setl.systems.mysql.locks import ddl_lock
from setl.systems.mysql.server_kind import UPGRADE_TARGET, ServerKind
from setl.systems.mysql.stored import writers

_LOCK_WAIT = 1205
_ATTEMPTS = 3


class MysqlFence:
    """The `Fence` of a MySQL target: the row of a pipeline in ``retl.setl_fence``.

    Every load transaction locks the row in share mode, so raising the epoch in it waits for
    the transactions that are open; one that begins afterwards reads the new epoch.
    """

    def __init__(self, endpoint: MysqlEndpoint, pipeline_key: str, fence_timeout: float) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the server.
            pipeline_key: ``channel/pipeline``.
            fence_timeout: seconds that stale transactions get to end by themselves; rounded up
                to whole ones, as the server counts.
        """
        self._lock_wait = max(1, math.ceil(fence_timeout))
        patience = max(endpoint.read_timeout, self._lock_wait + 10.0)
        self._endpoint = replace(endpoint, read_timeout=patience)
        self._pipeline = pipeline_key

    def raise_to(self, epoch: int, nid: str) -> None:
        """See `setl.load.sink.Fence.raise_to`."""
        wait = self._lock_wait
        connection = connect(self._endpoint, lock_wait=wait, table_wait=wait)
        try:
            _refuse_old(connection)
            self._raise_to(connection, epoch, nid)
        except (pymysql.MySQLError, OSError) as error:
            raise translate(error).at(pipeline=self._pipeline, server=self._endpoint) from error
        finally:
            _close(connection)

    def end_writers(self, epoch: int) -> None:
        """See `setl.load.sink.Fence.end_writers`."""
        connection = connect(self._endpoint)
        try:
            # A writer that has read the fence under this epoch was recorded before.
            for writer in self._stale_writers(connection, epoch + 1):
                writers.end_writer(connection, self._pipeline, writer)
        except (pymysql.MySQLError, OSError) as error:
            raise translate(error).at(pipeline=self._pipeline, server=self._endpoint) from error
        finally:
            _close(connection)

    def _raise_to(self, connection: Connection[Any], epoch: int, nid: str) -> None:
        for _ in range(_ATTEMPTS):
            try:
                held = self._update(connection, epoch, nid)
            except pymysql.err.OperationalError as error:
                if error.args[0] != _LOCK_WAIT:
                    raise
                self._end_stale_writers(connection, epoch)
                continue
            if held != (epoch, nid):
                raise self._fenced(epoch, *held)
            self._end_schema_change(connection)
            self._forget_gone_writers(connection, epoch)
            return
        commits = [
            w for w in self._stale_writers(connection, epoch + 1) if writers.commits(connection, w)
        ]
        if commits:
            raise TransientError(
                f"a commit of an earlier load does not end (connection {commits[0]})",
                hint="Its server's log says what it waits for; mostly its disk is full",
                pipeline=self._pipeline,
                server=self._endpoint,
            )
        raise TransientError(
            f"stale transactions hold the fence after {_ATTEMPTS} times {self._lock_wait} s, or "
            "somebody has locked the target's tables; recorded writers were ended",
            hint="As an administrator of the target: SELECT trx_mysql_thread_id, trx_state, "
            "trx_started FROM information_schema.innodb_trx ORDER BY trx_started says whose "
            "transactions are open; KILL that connection, or wait if it is ROLLING BACK. SHOW "
            "PROCESSLIST says if tables are locked, as for a backup",
            pipeline=self._pipeline,
            server=self._endpoint,
        )

    def _fenced(self, epoch: int, held: int, holder: str) -> FencedError:
        # Two leaderships have the same number only if the numbers have started again.
        by = f" by node {holder}" if held == epoch else ""
        return FencedError(
            f"epoch {epoch} cannot take over: the target is at epoch {held}{by}",
            hint="Another node leads this pipeline; or, if ZooKeeper was set up again, its epochs "
            "have started again, and `setl epoch` shows and raises them",
            pipeline=self._pipeline,
            server=self._endpoint,
        )

    def _update(self, connection: Connection[Any], epoch: int, nid: str) -> tuple[int, str]:
        """Raise the epoch if it is lower; returns what it is afterwards, and who raised it.

        Waits for the transactions that have the row locked even if there is nothing to raise:
        an earlier attempt of this leadership may have left one behind.
        """
        with connection.cursor() as cursor:
            for _ in range(_ATTEMPTS):
                cursor.execute(
                    "UPDATE retl.setl_fence SET epoch = %s, nid = %s "
                    "WHERE pipeline = %s AND epoch < %s",
                    (epoch, nid, self._pipeline, epoch),
                )
                cursor.execute(
                    "SELECT epoch, nid FROM retl.setl_fence WHERE pipeline = %s",
                    (self._pipeline,),
                )
                row = cursor.fetchone()
                if row is None:
                    # The first leadership ever. Two leaders may be here at once; then one
                    # inserts, and both compare again.
                    cursor.execute(
                        "INSERT IGNORE INTO retl.setl_fence (pipeline, epoch, nid) "
                        "VALUES (%s, 0, '')",
                        (self._pipeline,),
                    )
                # A row with a lower epoch came between the two statements.
                elif int(row[0]) >= epoch:
                    return int(row[0]), str(row[1])
        raise TransientError("somebody deletes the fence's row", pipeline=self._pipeline)

    def _end_stale_writers(self, connection: Connection[Any], epoch: int) -> None:
        # Those of this epoch too. Nothing of this leadership loads while it takes over, but a
        # load that failed without an answer may have left a connection behind, half of which
        # the network has lost: the server would keep its locks for hours.
        for writer in self._stale_writers(connection, epoch + 1):
            writers.end_writer(connection, self._pipeline, writer)

    def _end_schema_change(self, connection: Connection[Any]) -> None:
        """Return once no statement of an older leadership changes tables, or can begin to."""
        for _ in range(_ATTEMPTS):
            if ddl_lock.take(connection, self._pipeline, self._lock_wait):
                ddl_lock.give_back(connection, self._pipeline)
                return
            ddl_lock.end_holder(connection, self._pipeline)
        raise TransientError(
            "a schema change of the former leader does not end",
            hint="SHOW PROCESSLIST on the target shows it; a large table takes time to roll back, "
            "and a server whose disk is full waits for room",
            pipeline=self._pipeline,
            server=self._endpoint,
        )

    def _forget_gone_writers(self, connection: Connection[Any], epoch: int) -> None:
        # The record of one that lives stays: it can still lock the row for the moment that it
        # takes to read the new epoch, and freeze in that moment.
        for writer in self._stale_writers(connection, epoch):
            if not writers.is_alive(connection, self._pipeline, writer):
                writers.forget_writer(connection, self._pipeline, writer)

    def _stale_writers(self, connection: Connection[Any], epoch: int) -> list[int]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT conn_id FROM retl.setl_writer WHERE pipeline = %s AND epoch < %s",
                (self._pipeline, epoch),
            )
            return [int(row[0]) for row in cursor.fetchall()]


def _refuse_old(connection: Connection[Any]) -> None:
    """See that the server knows what loads say to it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ("",)
    kind = ServerKind.of(str(version))
    if kind.no_target:
        raise ConfigurationError(kind.no_target, hint=UPGRADE_TARGET)


def _close(connection: Connection[Any]) -> None:
    # If it is gone already, so much the better.
    with suppress(pymysql.MySQLError, OSError):
        connection.close()
