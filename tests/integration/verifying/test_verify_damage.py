"""A target that somebody damaged by hand: verify names exactly that, and a repair fixes it."""

import random
import threading
import time

import pytest

from arbiter.values import ChannelState, PipelineId
from setl.bulk.comparison import What
from setl.bulk.repair import repair_of
from setl.bulk.verify_target import VerifySettings
from setl.clock import SystemClock
from setl.model.load_request import RequestState
from setl.operate.verify import verify_pipeline
from setl.operate.waiting import Health, StoredPositionWaiter, WaitContext
from setl.run.verification.comparers import standing_comparers
from setl.transform.spark_on_demand import SparkOnDemand
from tests.integration.pipelines import execute
from tests.integration.table_loads.test_requested_loads import Asking, from_now_on
from tests.waiting import eventually

GOODS = """CREATE TABLE {db}.goods (
    id INT PRIMARY KEY, code VARCHAR(20) CHARACTER SET latin1 UNIQUE, name VARCHAR(40) NULL,
    note TEXT NULL, price DECIMAL(12,4) NULL, at DATETIME(6) NULL, raw BLOB NULL, flags BIT(5) NULL,
    kind ENUM('a','b') NULL, score DOUBLE NULL, day DATE NULL, n INT NULL,
    parts SET('','x') NULL) CHARACTER SET utf8mb4"""
WORDS = """CREATE TABLE {db}.words (
    word VARCHAR(20) COLLATE utf8mb4_bin, lang CHAR(2) COLLATE utf8mb4_bin, n INT,
    PRIMARY KEY (word, lang)) CHARACTER SET utf8mb4"""
ROWS = 1200

SMALL = VerifySettings(rows_per_part=200, rechecks=4, pause=0.2)

SWAPPED = (
    "UPDATE {goods} SET code = CASE id WHEN 50 THEN 'x' ELSE 'y' END WHERE id IN (50, 51);"
    "UPDATE {goods} SET code = CASE id WHEN 50 THEN 'é51' ELSE 'é50' END WHERE id IN (50, 51)"
)
# What is done to the target, the keys that differ by it, and the columns.
DAMAGE = [
    ("DELETE FROM {goods} WHERE id = 10", {10: What.MISSING}, ()),
    ("INSERT INTO {goods} (id, code) VALUES (-7, 'low')", {-7: What.EXTRA}, ()),
    ("INSERT INTO {goods} (id, code) VALUES (99999, 'high')", {99999: What.EXTRA}, ()),
    ("UPDATE {goods} SET name = 'Other' WHERE id = 20", {20: What.DIFFERENT}, ("name",)),
    ("UPDATE {goods} SET name = '' WHERE id = 25", {25: What.DIFFERENT}, ("name",)),
    ("UPDATE {goods} SET note = NULL WHERE id = 26", {26: What.DIFFERENT}, ("note",)),
    ("UPDATE {goods} SET name = UPPER(name) WHERE id = 30", {30: What.DIFFERENT}, ("name",)),
    ("UPDATE {goods} SET name = CONCAT(name, ' ') WHERE id = 31", {31: What.DIFFERENT}, ("name",)),
    ("UPDATE {goods} SET price = price + 0.0001 WHERE id = 32", {32: What.DIFFERENT}, ("price",)),
    ("UPDATE {goods} SET at = at + INTERVAL 1 MICROSECOND WHERE id = 33", {33: What.DIFFERENT},
     ("at",)),
    ("UPDATE {goods} SET raw = x'00ff28' WHERE id = 34", {34: What.DIFFERENT}, ("raw",)),
    ("UPDATE {goods} SET flags = flags ^ 1 WHERE id = 36", {36: What.DIFFERENT}, ("flags",)),
    ("UPDATE {goods} SET kind = 'b' WHERE id = 37", {37: What.DIFFERENT}, ("kind",)),
    ("UPDATE {goods} SET score = 0.30000000000000004 WHERE id = 38", {38: What.DIFFERENT},
     ("score",)),
    ("UPDATE {goods} SET day = day + INTERVAL 1 DAY WHERE id = 39", {39: What.DIFFERENT}, ("day",)),
    ("UPDATE {goods} SET note = '🙃 größe' WHERE id = 40", {40: What.DIFFERENT}, ("note",)),
    ("UPDATE {goods} SET n = NULL WHERE id = 41", {41: What.DIFFERENT}, ("n",)),
    ("UPDATE {goods} SET parts = 0 WHERE id = 42", {42: What.DIFFERENT}, ("parts",)),
    (SWAPPED, {50: What.DIFFERENT, 51: What.DIFFERENT}, ("code",)),
    ("UPDATE {goods} SET id = 88888 WHERE id = 60", {60: What.MISSING, 88888: What.EXTRA}, ()),
    ("DELETE FROM {goods} WHERE id BETWEEN 401 AND 520", dict.fromkeys(range(401, 521),
     What.MISSING), ()),
]  # fmt: skip
WRONG_WORDS = (
    "UPDATE {words} SET n = n + 1 WHERE word = 'w7' AND lang = 'en'",
    "DELETE FROM {words} WHERE word = 'w9' AND lang = 'de'",
    "INSERT INTO {words} VALUES ('W9', 'de', 9), ('zzz', 'xx', 1)",
)
WORDS_FOUND = {
    '["w7", "en"]': What.DIFFERENT,
    '["w9", "de"]': What.MISSING,
    '["W9", "de"]': What.EXTRA,
    '["zzz", "xx"]': What.EXTRA,
}


def good(i):
    return (
        f"({i}, 'é{i}', {'NULL' if i % 25 == 0 else repr(f'name {i}')},"
        f" {chr(39) * 2 if i % 26 == 0 else repr(f'🙂 größe {i}')}, {i}.0500,"
        f" '2026-01-02 03:04:05.{i:06d}', x'00ff27', {i % 32}, 'a', 0.3, '2026-02-03', 0, 1)"
    )


class Damaged:
    """A pipeline that runs, whose tables were equal when it began."""

    def __init__(self, servers, db, position, spark):
        self.servers, self.db, self.spark = servers, db, SparkOnDemand.of(spark)
        goods = ", ".join(map(good, range(1, ROWS + 1)))
        words = ", ".join(f"('w{i}', '{lang}', {i})" for i in range(200) for lang in ("de", "en"))
        for server in servers:
            execute(
                server, f"DROP TABLE {db}.orders", GOODS.format(db=db), WORDS.format(db=db),
                f"INSERT INTO {db}.goods VALUES {goods}", f"INSERT INTO {db}.words VALUES {words}",
            )  # fmt: skip
        self.asking = Asking(position, from_now_on(servers, db))
        self.pipeline = self.asking.file.pipelines[0]
        ident = PipelineId(self.asking.file.channel, "p")
        self.wanted = ChannelState.START
        context = WaitContext(
            position.arbiter, lambda _: Health(self.wanted), SystemClock(), time.sleep
        )
        self.waiter = StoredPositionWaiter(
            {ident: self.pipeline}, context, nid="verify", timeout=600.0, show=lambda _: None
        )

    def damage(self, *statements):
        """Change the target, as no pipeline would."""
        names = {"goods": f"{self.db}.goods", "words": f"{self.db}.words"}
        for statement in statements:
            execute(self.servers[1], *statement.format(**names).split(";"))

    def damage_all(self):
        self.damage(*(statement for statement, _, _ in DAMAGE), *WRONG_WORDS)

    def verify(self, **options):
        verdicts = verify_pipeline(
            self.spark,
            self.pipeline,
            sample=1000,
            settings=SMALL,
            waiter=self.waiter,
            **options,
        )
        return {v.target.partition(".")[2]: v for v in verdicts}

    def repair(self, verdicts):
        asked = [
            self.asking.requests.add(request).id
            for verdict in verdicts.values()
            for request in repair_of(verdict, "me", 0.0).requests
        ]
        self.asking.running.run.look_at_loads()
        for ident in asked:
            assert self.asking.ended(ident, 120).state is RequestState.DONE

    def same(self):
        """Whether both servers have the same, without setl."""
        columns = (
            "HEX(code), HEX(name), HEX(note), price, at, HEX(raw), flags + 0, kind, score, day, n,"
            " parts + 0"
        )
        goods, words = (
            [execute(s, f"SELECT {what} ORDER BY 1, 2") for s in self.servers]
            for what in (
                f"id, {columns} FROM {self.db}.goods",
                f"HEX(word), HEX(lang), n FROM {self.db}.words",
            )
        )
        assert goods[0] == goods[1]
        assert words[0] == words[1]
        return True


def found(verdict):
    return {difference.key: difference.what for difference in verdict.sample_keys}


def expected():
    return {str(key): what for _, keys, _ in DAMAGE for key, what in keys.items()}


@pytest.fixture
def damaged(servers, db, position, spark):
    return Damaged(servers, db, position, spark)


def test_exactly_what_is_damaged_is_named_and_repaired(damaged):
    assert all(v.equal for v in damaged.verify().values())
    damaged.damage_all()
    verdicts = damaged.verify()
    assert found(verdicts["goods"]) == expected()
    assert found(verdicts["words"]) == WORDS_FOUND
    columns = {d.key: tuple(c.name for c in d.columns) for d in verdicts["goods"].sample_keys}
    for _, keys, names in DAMAGE:
        assert {columns[str(key)] for key in keys} == {names}
    # The same by ranges, as standing verification does.
    by_ranges: dict[str, dict] = {}
    for comparer in standing_comparers(damaged.spark, damaged.pipeline, damaged.waiter, SMALL):
        keys = by_ranges.setdefault(comparer.name.partition(".")[2], {})
        after, rows = None, 0
        while True:
            outcome = comparer.compare(after, 500)
            after, rows = outcome.last, rows + outcome.rows
            keys |= {tuple(key): what for key, what in outcome.verdict.differing.keys}
            if after is None:
                break
        assert rows == verdicts[comparer.name.partition(".")[2]].source_rows
    assert by_ranges["goods"] == {(int(k),): what for k, what in expected().items()}
    assert len(by_ranges["words"]) == len(WORDS_FOUND)
    damaged.repair(verdicts)
    assert damaged.same()
    assert all(v.equal for v in damaged.verify().values())


class Writer:
    """Changes rows from `FIRST` on at the source all the time, each of them now and then."""

    FIRST = 601

    def __init__(self, damaged):
        self.damaged, self.stopping, self.statements = damaged, threading.Event(), 0
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        chance = random.Random(5)
        table = f"{self.damaged.db}.goods"
        with self.damaged.servers[0].connect() as connection, connection.cursor() as cursor:
            while not self.stopping.is_set():
                i = chance.randrange(self.FIRST, ROWS + 1)
                cursor.execute(
                    chance.choice(
                        [
                            f"UPDATE {table} SET n = n + 1, note = UUID() WHERE id = {i}",
                            f"DELETE FROM {table} WHERE id = {i}",
                            f"INSERT IGNORE INTO {table} VALUES {good(i)}",
                            f"UPDATE {table} SET id = id + 100000 WHERE id = {i}",
                            f"DELETE FROM {table} WHERE id = {i + 100000}",
                        ]
                    )
                )
                self.statements += 1
                # A row may not go and come back while it is looked at.
                self.stopping.wait(0.05)

    def __enter__(self):
        self.thread.start()
        eventually(lambda: self.statements > 50, 30)
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(60)


def test_rows_in_flight_are_no_differences(damaged):
    with Writer(damaged) as writer:
        began = writer.statements
        before = damaged.verify()["goods"]
        assert (found(before), before.note) == ({}, "")
        damaged.damage_all()
        verdicts = damaged.verify()
        assert found(verdicts["goods"]) == expected()
        assert verdicts["goods"].note == ""
        damaged.repair(verdicts)
        after = damaged.verify()["goods"]
        assert found(after) == {}
        assert writer.thread.is_alive()
        assert writer.statements > began + 10, "hardly anything was written meanwhile"
    eventually(damaged.same, 60, message="both sides are the same")


def test_a_pipeline_that_does_not_run_is_not_waited_for(damaged):
    damaged.asking.running.stop()
    damaged.wanted = ChannelState.STOP
    execute(damaged.servers[0], f"UPDATE {damaged.db}.goods SET n = 5 WHERE id < 4")
    began = time.monotonic()
    verdict = damaged.verify(tables=[f"{damaged.db}.goods"])["goods"]
    assert time.monotonic() - began < 200  # it would wait for ten minutes
    assert set(found(verdict)) == {"1", "2", "3"}
    assert "its channel is set to STOP" in verdict.note
    assert "bytes behind" in verdict.note
