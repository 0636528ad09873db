"""Indexes that somebody damaged by hand, compared range by range as standing verification does."""

import random
import threading
import time
from typing import Any

import pytest

from arbiter.values import ChannelState, PipelineId
from setl.bulk.comparison import What
from setl.bulk.verify_target import VerifySettings
from setl.clock import SystemClock
from setl.operate.waiting import Health, StoredPositionWaiter, WaitContext
from setl.run.verification.comparers import standing_comparers
from setl.transform.spark_on_demand import SparkOnDemand
from tests.integration.pipelines import execute, new_database, one_way
from tests.integration.search.test_pipeline_search import Index, elasticsearch_target
from tests.waiting import eventually

TABLES = {
    "goods": "id INT PRIMARY KEY, name VARCHAR(20), n INT",
    "words": "lang CHAR(2) COLLATE utf8mb4_bin, no INT, word VARCHAR(20), PRIMARY KEY (lang, no)",
    "moments": "at DATETIME(6) PRIMARY KEY, n INT",
    "orders": "id INT PRIMARY KEY, buyer VARCHAR(20)",
    "items": "id INT PRIMARY KEY, order_id INT, name VARCHAR(20), KEY (order_id)",
    "folded": "code VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT",
}
ROWS = 600
SMALL = VerifySettings(sample=100, rows_per_part=1000, rechecks=4, pause=0.2)


def moment(i):
    return f"2026-01-02 03:{i // 60:02d}:{i % 60:02d}.{i:06d}"


def filled(db):
    """Statements that fill the tables."""
    rows = {
        "goods": [f"({i}, 'näme {i}', 0)" for i in range(1, ROWS + 1)],
        "words": [f"('{lang}', {i}, 'w,{i}')" for lang in ("de", "en") for i in range(ROWS // 2)],
        "moments": [f"('{moment(i)}', {i})" for i in range(ROWS)],
        "orders": [f"({i}, 'ann {i}')" for i in range(1, ROWS // 2 + 1)],
        "items": [f"({i}, {i // 2 + 1}, 'i{i}')" for i in range(ROWS)],
        "folded": [f"('{'Aa'[i % 2]}_{i}', {i})" for i in range(ROWS // 6)],
    }
    return [f"INSERT INTO {db}.{name} VALUES {', '.join(some)}" for name, some in rows.items()]


class Indexed:
    """A pipeline that runs, whose indexes have what its tables have."""

    def __init__(self, site, elasticsearch, db, position, spark):
        self.site, self.db, self.spark = site, db, SparkOnDemand.of(spark)
        execute(site, *(f"CREATE TABLE {db}.{name} ({of})" for name, of in TABLES.items()))
        nested = [{"from": f"{db}.items", "field": "items", "on": {"order_id": "id"}}]
        mappings: list[dict[str, Any]] = [
            {"from": f"{db}.{name}", "to": f"{db}-{name}"} for name in TABLES if name != "items"
        ]
        mappings[3]["nested"] = nested
        mappings[0]["columns"] = {"loud": "upper(name)"}
        file = one_way(site, elasticsearch_target(elasticsearch), mappings)
        source = file.pipelines[0].source.model_copy(update={"heartbeat": 0.2})
        pipeline = file.pipelines[0].model_copy(update={"source": source})
        file = file.model_copy(update={"pipelines": [pipeline]})
        self.pipeline, self.running = pipeline, position.lead(file)
        self.indexes = {name: Index(elasticsearch, f"{db}-{name}") for name in TABLES}
        execute(site, *filled(db))
        self.running.applied(4 * ROWS + ROWS // 2 + ROWS // 6)
        ident = PipelineId(file.channel, "p")
        context = WaitContext(
            position.arbiter, lambda _: Health(ChannelState.START), SystemClock(), time.sleep
        )
        self.waiter = StoredPositionWaiter(
            {ident: pipeline}, context, nid="verify", timeout=60.0, show=lambda _: None
        )

    def compared(self, table):
        """What differs in an index by key, in how many ranges it was compared, and why so."""
        comparers = standing_comparers(self.spark, self.pipeline, self.waiter, SMALL)
        (comparer,) = [c for c in comparers if c.name == f"{self.db}-{table}"]
        found: dict[str, What] = {}
        after, ranges, rows = None, 0, 0
        while True:
            outcome = comparer.compare(after, 200)
            after, ranges, rows = outcome.last, ranges + 1, rows + outcome.rows
            assert outcome.verdict.note == ""
            found |= {each.key: each.what for each in outcome.verdict.sample_keys}
            if after is None:
                return found, ranges, rows, comparer.whole

    def put(self, table, ident, document):
        self.indexes[table].call("PUT", f"/_doc/{ident}", document)

    def change(self, table, ident, document):
        self.indexes[table].call("POST", f"/_update/{ident}", {"doc": document})

    def delete(self, table, ident):
        self.indexes[table].call("DELETE", f"/_doc/{ident}")


@pytest.fixture
def indexed(site_a, elasticsearch, position, spark):
    with new_database([site_a], "indexed", options="CHARACTER SET utf8mb4") as db:
        yield Indexed(site_a, elasticsearch, db, position, spark)


class Writer:
    """Changes goods from `FIRST` on all the time."""

    FIRST = 301

    def __init__(self, indexed):
        self.indexed, self.stopping, self.statements = indexed, threading.Event(), 0
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        chance, table = random.Random(5), f"{self.indexed.db}.goods"
        with self.indexed.site.connect() as connection, connection.cursor() as cursor:
            while not self.stopping.wait(0.06):
                i = chance.randrange(self.FIRST, ROWS + 1)
                cursor.execute(
                    chance.choice(
                        [
                            f"UPDATE {table} SET n = n + 1 WHERE id = {i}",
                            f"DELETE FROM {table} WHERE id = {i}",
                            f"INSERT IGNORE INTO {table} VALUES ({i}, 'näme {i}', 0)",
                        ]
                    )
                )
                self.statements += 1

    def __enter__(self):
        self.thread.start()
        eventually(lambda: self.statements > 20, 30)
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(60)


def test_what_is_damaged_is_found_in_ranges_while_a_writer_writes(indexed):
    with Writer(indexed) as writer:
        found, ranges, rows, whole = indexed.compared("goods")
        assert (found, whole) == ({}, "")
        assert ranges > 1
        assert rows > ROWS // 2
        indexed.delete("goods", 10)
        indexed.change("goods", 20, {"name": "wrong"})
        indexed.change("goods", 30, {"loud": "wrong"})
        indexed.change("goods", 40, {"id": 450})  # as if it were in another range
        indexed.put("goods", 50, {})  # without the field of the key
        indexed.put("goods", -7, {"id": -7, "name": "low"})
        indexed.put("goods", 99999, {"id": 99999, "name": "high"})
        indexed.put("goods", 77777, {"name": "of no range"})
        found, _, _, _ = indexed.compared("goods")
        assert found == {
            "10": What.MISSING, "20": What.DIFFERENT, "30": What.DIFFERENT, "40": What.DIFFERENT,
            "50": What.DIFFERENT, "-7": What.EXTRA, "99999": What.EXTRA, "77777": What.EXTRA,
        }  # fmt: skip
        assert writer.thread.is_alive()


def test_keys_of_several_columns_times_and_documents_of_several_tables(indexed):
    for table, least in (("words", 4), ("moments", 4), ("orders", 2)):
        found, ranges, rows, whole = indexed.compared(table)
        assert (found, whole) == ({}, "")
        assert ranges >= least
        assert rows == (ROWS // 2 if table == "orders" else ROWS)
    indexed.delete("words", "de,7")
    indexed.change("words", "en,8", {"word": "w"})
    indexed.put("words", "fr,1", {"lang": "fr", "no": 1})
    assert indexed.compared("words")[0] == {
        "de,7": What.MISSING, "en,8": What.DIFFERENT, "fr,1": What.EXTRA,
    }  # fmt: skip
    at = moment(100)
    indexed.delete("moments", at.replace(" ", "%20"))
    late = "2027-01-01 00:00:00.000001"
    indexed.put("moments", late.replace(" ", "%20"), {"at": late.replace(" ", "T")})
    assert indexed.compared("moments")[0] == {at: What.MISSING, late: What.EXTRA}
    indexed.change("orders", 5, {"items": []})
    indexed.delete("orders", 6)
    assert indexed.compared("orders")[0] == {"5": What.DIFFERENT, "6": What.MISSING}


def test_an_index_that_sorts_in_another_way_is_compared_as_a_whole_and_that_is_reported(indexed):
    indexed.delete("folded", "a_7")
    found, ranges, rows, whole = indexed.compared("folded")
    assert (found, ranges, rows) == ({"a_7": What.MISSING}, 1, ROWS // 6)
    assert whole == "the two sides do not sort their keys alike"
