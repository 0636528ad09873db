"""A site's users: they write at a steady rate, and every row change is counted."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from setl_drills.demo.shop import SCHEMA
from setl_embedded import DatabaseServer

_SNIPPETS = (
    "sent with love 💌",
    "größer als erwartet",
    "次の便で",
    "",
    "naïve — “quoted” \\ ' ok",
    "🦊🚀",
)
_STATUSES = ("new", "paid", "sent", "二手")


@dataclass
class Written:
    """Row changes committed at a site, by kind."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    key_changes: int = 0
    transactions: int = 0
    probes: int = 0

    @property
    def rows(self) -> int:
        """All row changes."""
        return self.inserts + self.updates + self.deletes + self.key_changes + self.probes


@dataclass
class _Pending:
    """What one transaction does, counted only once it is committed."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    key_changes: int = 0
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)


class SiteWriter(threading.Thread):
    """Writes to one site until told to stop; each site keeps to ids of its own.

    Rows that both sites write need a conflict policy; this job is about everything else.
    """

    def __init__(
        self, server: DatabaseServer, site: str, *, rows_per_second: int, seed: int
    ) -> None:
        super().__init__(name=f"writer-{site}", daemon=True)
        self.site = site
        self.written = Written()
        self.error: BaseException | None = None
        self._server = server
        self._rate = rows_per_second
        self._random = random.Random(seed)
        self._next_id = 1 if site == "a" else 1_000_000_000
        self._live: list[int] = []
        self._large: threading.Event = threading.Event()
        self.large_started: threading.Event = threading.Event()
        self.large_done: threading.Event = threading.Event()
        self._stopping = threading.Event()
        self._large_rows = 0

    def write_large(self, rows: int) -> None:
        """Have one transaction of so many rows written next."""
        self._large_rows = rows
        self._large.set()

    def stop(self) -> None:
        """Commit what is open and end."""
        self._stopping.set()

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            with self._server.connect(autocommit=False) as connection:
                self._work(connection)
        except BaseException as error:  # noqa: BLE001 - kept for the main thread, which raises it
            self.error = error

    def _work(self, connection: Any) -> None:
        started = time.monotonic()
        while not self._stopping.is_set():
            if self._large.is_set():
                self._large.clear()
                self.large_started.set()
                self._write_large(connection, self._large_rows)
                self.large_done.set()
                started = time.monotonic() - self.written.rows / self._rate
            self._write_small(connection)
            ahead = self.written.rows / self._rate - (time.monotonic() - started)
            if ahead > 0:
                self._stopping.wait(ahead)

    def _write_small(self, connection: Any) -> None:
        """A transaction as a shop has them: some orders, their items, and changes of old ones."""
        done, draw = _Pending(), self._random
        with connection.cursor() as cursor:
            for _ in range(draw.randint(1, 4)):
                self._order(cursor, done)
            for ident in draw.sample(self._live, min(len(self._live), draw.randint(0, 6))):
                self._change(cursor, done, ident)
            candidates = [i for i in self._live if i not in done.removed]
            if len(candidates) > 400 and draw.random() < 0.3:
                self._remove(cursor, done, draw.choice(candidates))
            if len(candidates) > 50 and draw.random() < 0.2:
                self._move(cursor, done, candidates)
            cursor.execute(
                f"INSERT INTO {SCHEMA}.probe_{self.site} VALUES (%s, NOW(6))",
                (self.written.transactions + 1,),
            )
        connection.commit()
        self._count(done, probes=1)

    def _order(self, cursor: Any, done: _Pending) -> None:
        ident, draw = self._next_id, self._random
        self._next_id += 1
        cursor.execute(
            f"INSERT INTO {SCHEMA}.customers VALUES (%s, %s, %s, %s, %s, %s)",
            (
                ident, self.site, f"c{ident}@{self.site}.example", f"name {ident} 🙂",
                draw.choice((None, f"{draw.randint(-99999, 999999) / 100:.2f}")),
                draw.choice((None, draw.randbytes(draw.randint(0, 32)))),
            ),
        )  # fmt: skip
        cursor.execute(
            f"INSERT INTO {SCHEMA}.orders VALUES"
            " (%s, %s, %s, %s, %s, %s, %s, %s, NOW(6), NOW(6), %s)",
            (
                ident, self.site, ident, draw.choice(_STATUSES),
                f"{draw.randint(0, 10**9) / 10000:.4f}", draw.randint(0, 4_000_000_000),
                draw.choice((None, *_SNIPPETS)), draw.choice((None, '{"n": 1, "t": "x 🦊"}')),
                draw.choice((None, draw.random() * 1000)),
            ),
        )  # fmt: skip
        lines = draw.randint(1, 3)
        cursor.executemany(
            f"INSERT INTO {SCHEMA}.order_items VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (ident, line, self.site, f"SKU-{draw.randint(1, 999):04}", f"{line}.50", None)
                for line in range(lines)
            ],
        )
        done.inserts += 2 + lines
        done.added.append(ident)

    def _change(self, cursor: Any, done: _Pending, ident: int) -> None:
        draw = self._random
        done.updates += cursor.execute(
            f"UPDATE {SCHEMA}.orders SET status = %s, note = %s, changed = NOW(6) WHERE id = %s",
            (draw.choice(_STATUSES), draw.choice((None, *_SNIPPETS)), ident),
        )

    def _remove(self, cursor: Any, done: _Pending, ident: int) -> None:
        for table, column in (("order_items", "order_id"), ("orders", "id"), ("customers", "id")):
            done.deletes += cursor.execute(
                f"DELETE FROM {SCHEMA}.{table} WHERE {column} = %s", (ident,)
            )
        done.removed.append(ident)

    def _move(self, cursor: Any, done: _Pending, candidates: list[int]) -> None:
        """Key changes: a customer gets another id, and two others swap their unique emails."""
        old = self._random.choice(candidates)
        new = self._next_id
        self._next_id += 1
        moved = cursor.execute(f"UPDATE {SCHEMA}.customers SET id = %s WHERE id = %s", (new, old))
        done.key_changes += moved
        first, second = self._random.sample(candidates, 2)
        cursor.execute(
            f"SELECT id, email FROM {SCHEMA}.customers WHERE id IN (%s, %s)", (first, second)
        )
        found = cursor.fetchall()
        if len(found) == 2:
            (one, email_one), (two, email_two) = found
            for ident, email in ((one, f"moving-{one}"), (two, email_one), (one, email_two)):
                done.key_changes += cursor.execute(
                    f"UPDATE {SCHEMA}.customers SET email = %s WHERE id = %s", (email, ident)
                )

    def _write_large(self, connection: Any, rows: int) -> None:
        done = _Pending()
        with connection.cursor() as cursor:
            while done.inserts < rows:
                count = min(1000, rows - done.inserts)
                first = self._next_id
                self._next_id += count
                cursor.executemany(
                    f"INSERT INTO {SCHEMA}.order_items VALUES (%s, %s, %s, %s, %s, %s)",
                    [
                        (i, 0, self.site, f"BULK-{i % 97}", "9.99", 1)
                        for i in range(first, first + count)
                    ],
                )
                done.inserts += count
        connection.commit()
        self._count(done, probes=0)

    def _count(self, done: _Pending, *, probes: int) -> None:
        written = self.written
        written.inserts += done.inserts
        written.updates += done.updates
        written.deletes += done.deletes
        written.key_changes += done.key_changes
        written.probes += probes
        written.transactions += probes
        removed = set(done.removed)
        self._live = [i for i in self._live if i not in removed] + done.added
        del self._live[:-600]  # old orders stay in the tables, but nobody touches them
