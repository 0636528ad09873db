"""Tables of a group: what a reader of the target sees at every moment."""

import random
import threading

from tests.integration.pipelines import execute, mysql, on_both, one_way, rows
from tests.waiting import eventually

ORPHANS = (
    "SELECT i.id, i.parent FROM {db}.items i LEFT JOIN {db}.orders o ON o.id = i.parent"
    " WHERE o.id IS NULL"
)


parents = on_both(
    "groups",
    "CREATE TABLE {db}.orders (id INT PRIMARY KEY, code INT UNIQUE)",
    "CREATE TABLE {db}.items (id INT PRIMARY KEY, parent INT NOT NULL, n INT,"
    " FOREIGN KEY (parent) REFERENCES {db}.orders (id))",
)
"""Orders and their items, with a foreign key, on both servers."""


class Reader:
    """Looks for children without a parent, over and over, in a thread of its own."""

    def __init__(self, server, db):
        self.server, self.db = server, db
        self.looked, self.orphans = 0, []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        with self.server.connect() as connection, connection.cursor() as cursor:
            while not self._ended.is_set() and not self.orphans:
                cursor.execute(ORPHANS.format(db=self.db))
                self.orphans += cursor.fetchall()
                self.looked += 1

    def end(self):
        self._ended.set()
        self._thread.join(30)


def write_orders(server, db, chance, transactions):
    """Parents come and go, children move between them; the source checks its foreign keys."""
    parents, item, order = {}, 0, 0
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for _ in range(transactions):
            order += 1
            cursor.execute(f"INSERT INTO {db}.orders VALUES ({order}, {order})")
            parents[order] = []
            for _ in range(chance.randint(1, 20)):
                item += 1
                cursor.execute(f"INSERT INTO {db}.items VALUES ({item}, {order}, 0)")
                parents[order].append(item)
            if len(parents) > 5 and chance.random() < 0.7:
                gone = chance.choice(sorted(parents.keys() - {order}))
                orphaned = parents.pop(gone)
                target_node = chance.choice(sorted(parents))
                if chance.random() < 0.5:
                    cursor.execute(
                        f"UPDATE {db}.items SET parent = {target_node} WHERE parent = {gone}"
                    )
                    parents[target_node] += orphaned
                else:
                    cursor.execute(f"DELETE FROM {db}.items WHERE parent = {gone}")
                cursor.execute(f"DELETE FROM {db}.orders WHERE id = {gone}")
                if chance.random() < 0.5:
                    # Its unique value goes to another parent at once.
                    cursor.execute(f"UPDATE {db}.orders SET code = {gone} WHERE id = {target_node}")
            if chance.random() < 0.3:
                old = chance.choice(sorted(p for p in parents if not parents[p]) or [0])
                if old:
                    cursor.execute(f"UPDATE {db}.orders SET id = id + 100000 WHERE id = {old}")
                    parents[old + 100000] = parents.pop(old)
            connection.commit()


def test_no_reader_sees_a_child_without_its_parent(servers, parents, position):
    a, b = servers
    tables = [
        {"from": f"{parents}.orders", "group": "g"},
        {"from": f"{parents}.items", "group": "g"},
    ]
    file = one_way(a, mysql(b), tables, batch_rows=200, rows_per_task=50)
    running, reader = position.lead(file), Reader(b, parents)
    try:
        write_orders(a, parents, random.Random(7), 300)
        # All at once too, so that loads are large and have several tasks.
        doubled = f"SELECT id + 1000000, parent, 1 FROM {parents}.items"
        execute(
            a, f"INSERT INTO {parents}.items {doubled}", f"UPDATE {parents}.items SET n = n + 1"
        )
        eventually(lambda: reader.orphans or same(running, servers, parents), 200, interval=0.5)
    finally:
        reader.end()
    assert reader.orphans == []
    assert reader.looked > 20
    eventually(lambda: running.figures.loads > 3, 30)


def same(running, servers, db):
    assert not running.error, running.error
    return all(
        rows(servers[0], f"{db}.{table}") == rows(servers[1], f"{db}.{table}")
        for table in ("orders", "items")
    )
