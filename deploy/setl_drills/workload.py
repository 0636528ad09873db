"""The users of one site: seeded transactions, and an exact account of what was committed.

A commit whose answer never came may have happened or not, so its rows count as uncertain: they
may be there, and nobody may complain either way (as Jepsen's histories do, "info").
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl_drills.tables import ACCOUNTS, BALANCE, FIRST_ID
from setl_embedded import DatabaseServer

_BULK_OFFSET = 500_000_000  # large transactions take their ids from here on
_MAX_ITEMS = 300  # rows of `items` that are still changed
PACE = 15.0
"""Small transactions a second and site, if nothing else is said."""
BURST = 5
"""Small transactions that come at once. The first travels alone and the others behind it while it
is loaded, so two batches are under way; evenly spaced, each would be a Spark job by itself, and
most of what a machine does during a drill would be these jobs."""


@dataclass
class Committed:
    """What a site's users wrote.

    Attributes:
        entries: ids in `entries` whose commit was acknowledged.
        bulk: the same of `bulk`.
        uncertain: ids of either whose commit was not answered.
        transactions: acknowledged commits.
        rows: row changes in them.
    """

    entries: set[int] = field(default_factory=set)
    bulk: set[int] = field(default_factory=set)
    uncertain: set[int] = field(default_factory=set)
    transactions: int = 0
    rows: int = 0


@dataclass
class _Work:
    """What one transaction does; counted when it is known how it ended."""

    entries: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    rows: int = 0


class SiteWriter(threading.Thread):
    """Writes small transactions in steady bursts, and large ones beside them when asked."""

    def __init__(
        self, server: DatabaseServer, schema: str, site: str, *, seed: str, pace: float = PACE
    ) -> None:
        """Describe it; nothing is written before `start`.

        Args:
            server: the site.
            schema: of the drill.
            site: ``a`` or ``b``.
            seed: decides every statement; timing is up to the machine.
            pace: small transactions a second, in bursts of `BURST`.
        """
        super().__init__(name=f"writer-{site}", daemon=True)
        self.site = site
        self.committed = Committed()
        self.error: BaseException | None = None
        self._server = server
        self._schema = schema
        self._random = random.Random(f"{seed}/{site}")
        self._pace = pace
        self._next = FIRST_ID[site]
        self._next_bulk = FIRST_ID[site] + _BULK_OFFSET
        self._seq = 0
        self._live: list[int] = []
        self._stopping = threading.Event()
        self._allowed = threading.Event()
        self._allowed.set()
        self._between = threading.Event()
        self._moved = threading.Event()
        self._larges: list[threading.Thread] = []
        self._lock = threading.Lock()

    def open_accounts(self) -> None:
        """Write the accounts of this site; before `start`."""
        first = FIRST_ID[self.site]
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO `{self._schema}`.accounts VALUES (%s, %s, %s)",
                [(first + number, self.site, BALANCE) for number in range(ACCOUNTS)],
            )

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            while not self._stopping.is_set():
                try:
                    with self._server.connect(autocommit=False, read_timeout=30) as connection:
                        self._write(connection)
                except (pymysql.MySQLError, OSError):
                    # The site is away; its users come back.
                    self._stopping.wait(0.1)
        except BaseException as error:  # noqa: BLE001 - kept for whoever waits for this thread
            self.error = error

    def large(self, rows: int) -> threading.Thread:
        """Begin a transaction of so many rows; the thread ends when it is committed."""
        with self._lock:
            first = self._next_bulk
            self._next_bulk += rows
        thread = threading.Thread(
            target=self._write_large, args=(first, rows), name=f"large-{self.site}", daemon=True
        )
        self._larges.append(thread)
        thread.start()
        return thread

    def pause(self) -> None:
        """Begin no small transaction until `resume`; returns when none is open."""
        self._allowed.clear()
        self._between.clear()
        if not self._between.wait(30):
            raise RuntimeError(f"{self.name} does not pause")

    def stop(self) -> None:
        """Stop writing; what is open is finished. Nothing if it has ended."""
        self._stopping.set()
        self.join(30)

    def move_to(self, server: DatabaseServer) -> None:
        """Write to another server from now on; while paused."""
        self._server = server
        self._moved.set()

    def resume(self) -> None:
        """Write again."""
        self._allowed.set()

    def finish(self, timeout: float = 30.0) -> int:
        """Stop, wait for what is open, and write one last entry; returns its id.

        Raises:
            RuntimeError: a writer failed or does not end.
        """
        self._stopping.set()
        self._allowed.set()
        for thread in (self, *self._larges):
            thread.join(timeout)
            if thread.is_alive():
                raise RuntimeError(f"{thread.name} does not end")
        if self.error is not None:
            raise RuntimeError(f"{self.name}: {self.error!r}") from self.error
        with self._server.connect(autocommit=False) as connection:
            work = _Work()
            with connection.cursor() as cursor:
                self._entry(cursor, work)
            self._commit(connection, work)
        return work.entries[-1]

    def _write(self, connection: Connection[Any]) -> None:
        following, written = time.monotonic(), 0
        while not self._stopping.is_set():
            if self._moved.is_set():
                self._moved.clear()
                return
            if not self._allowed.is_set():
                self._between.set()
                self._stopping.wait(0.05)
                continue
            self._between.clear()
            work = _Work()
            with connection.cursor() as cursor:
                self._transaction(cursor, work)
            self._commit(connection, work)
            written += 1
            if written % BURST == 0:
                following = max(following + BURST / self._pace, time.monotonic() - 1)
                self._stopping.wait(max(0.0, following - time.monotonic()))

    def _commit(self, connection: Connection[Any], work: _Work) -> None:
        try:
            connection.commit()
        except (pymysql.MySQLError, OSError):
            self.committed.uncertain.update(work.entries)
            # Whatever it did to them, nobody touches these rows again.
            known = {*work.added, *work.removed}
            self._live = [i for i in self._live if i not in known]
            raise
        self.committed.entries.update(work.entries)
        self.committed.transactions += 1
        self.committed.rows += work.rows
        removed = set(work.removed)
        self._live = [i for i in self._live if i not in removed] + work.added
        del self._live[:-_MAX_ITEMS]

    def _transaction(self, cursor: Any, work: _Work) -> None:
        draw = self._random
        for _ in range(draw.randint(1, 3)):
            self._entry(cursor, work)
        for _ in range(draw.randint(0, 2)):
            self._transfer(cursor, work)
        for _ in range(draw.randint(0, 2)):
            self._new_item(cursor, work)
        for ident in draw.sample(self._live, min(len(self._live), draw.randint(0, 3))):
            self._change_item(cursor, work, ident)
        if len(self._live) > 40 and draw.random() < 0.4:
            self._rearrange(cursor, work)

    def _entry(self, cursor: Any, work: _Work) -> None:
        ident, self._next = self._next, self._next + 1
        self._seq += 1
        note = self._random.choice((None, "plain", "größer", "次 🦊", "\\'\"\n"))
        cursor.execute(
            f"INSERT INTO `{self._schema}`.entries VALUES (%s, %s, %s, %s)",
            (ident, self.site, self._seq, note),
        )
        work.entries.append(ident)
        work.rows += 1

    def _transfer(self, cursor: Any, work: _Work) -> None:
        first = FIRST_ID[self.site]
        numbers = self._random.sample(range(ACCOUNTS), self._random.randint(2, 4))
        amount = self._random.randint(1, 50)
        payer, *payees = (first + number for number in numbers)
        statement = f"UPDATE `{self._schema}`.accounts SET balance = balance + %s WHERE id = %s"
        cursor.execute(statement, (-amount * len(payees), payer))
        for payee in payees:
            cursor.execute(statement, (amount, payee))
        work.rows += 1 + len(payees)

    def _new_item(self, cursor: Any, work: _Work) -> None:
        ident, self._next = self._next, self._next + 1
        cursor.execute(
            f"INSERT INTO `{self._schema}`.items VALUES (%s, %s, %s, %s, NULL)",
            (ident, self.site, f"{self.site}-{ident}", self._random.randint(0, 99)),
        )
        work.added.append(ident)
        work.rows += 1

    def _change_item(self, cursor: Any, work: _Work, ident: int) -> None:
        work.rows += cursor.execute(
            f"UPDATE `{self._schema}`.items SET quantity = quantity + 1, note = %s WHERE id = %s",
            (f"changed {self._random.randint(0, 10**9)}", ident),
        )

    def _rearrange(self, cursor: Any, work: _Work) -> None:
        """Delete a row, give another a new key, and let two others swap their unique codes."""
        table = f"`{self._schema}`.items"
        gone, moved, one, two = self._random.sample(self._live, 4)
        work.rows += cursor.execute(f"DELETE FROM {table} WHERE id = %s", (gone,))
        new, self._next = self._next, self._next + 1
        work.rows += cursor.execute(f"UPDATE {table} SET id = %s WHERE id = %s", (new, moved))
        work.removed += [gone, moved]
        work.added.append(new)
        cursor.execute(f"SELECT id, code FROM {table} WHERE id IN (%s, %s)", (one, two))
        codes = dict(cursor.fetchall())
        if len(codes) == 2:
            steps = ((one, f"moving-{one}"), (two, codes[one]), (one, codes[two]))
            for ident, code in steps:
                work.rows += cursor.execute(
                    f"UPDATE {table} SET code = %s WHERE id = %s", (code, ident)
                )

    def _write_large(self, first: int, rows: int) -> None:
        ids = range(first, first + rows)
        try:
            with self._server.connect(autocommit=False, read_timeout=60) as connection:
                with connection.cursor() as cursor:
                    for begin in range(0, rows, 1000):
                        cursor.executemany(
                            f"INSERT INTO `{self._schema}`.bulk VALUES (%s, %s, %s, %s)",
                            [
                                (i, self.site, i - first, f"filling {i % 97} of {rows}")
                                for i in ids[begin : begin + 1000]
                            ],
                        )
                try:
                    connection.commit()
                except (pymysql.MySQLError, OSError):
                    self.committed.uncertain.update(ids)
                    raise
        except (pymysql.MySQLError, OSError):
            return  # not committed, or uncertain, which is noted
        except BaseException as error:  # noqa: BLE001 - raised by `finish`
            self.error = error
            return
        self.committed.bulk.update(ids)
        self.committed.rows += rows
        self.committed.transactions += 1
