"""What a stale leader still sends to Elasticsearch changes nothing, deletes included (I2, I12)."""

import random
import threading
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from setl.errors import TransientError
from setl.model.change import TargetChanges
from setl.model.position import BinlogPosition, document_version
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index.load.sink import IndexSink, IndexSinkSettings
from setl.systems.search_index.mapping import GC_DELETES_SECONDS
from tests.integration.search.test_elasticsearch_sink import ID, INDEX, NAME, Search, changes
from tests.loading import ticket_for
from tests.search_server import SearchServer

OLD = ticket_for("to-search", epoch=1, nid="n1")
NEW = ticket_for("to-search", epoch=2, nid="n2")


@pytest.fixture
def leaders(elasticsearch):
    """The same index as an old and a new leader see it."""
    old, new = Search(elasticsearch.url), Search(elasticsearch.url)
    old.index = new.index
    yield old, new
    old.close()
    new.close()


def test_a_late_bulk_of_an_old_epoch_changes_nothing(leaders):
    old, new = leaders
    new.sink.apply(NEW, [changes(new.index, (ID, NAME), [(i, "new") for i in range(50)],
                                 version=20)])  # fmt: skip
    before = new.documents()
    late = changes(
        old.index, (ID, NAME), [(i, "old") for i in range(0, 50, 2)],
        [(i,) for i in range(1, 50, 2)], version=19,
    )  # fmt: skip
    loaded = old.sink.apply(OLD, [late])
    assert loaded.stale == 50
    assert new.documents() == before
    assert {d["name"] for d in before.values()} == {"new"}


def test_a_late_bulk_that_was_applied_before_changes_nothing_either(leaders):
    # What both leaders have read from the source has the same version and the same content.
    old, new = leaders
    both = changes(old.index, (ID, NAME), [(1, "a"), (2, "b")], version=5)
    old.sink.apply(OLD, [both])
    new.sink.apply(NEW, [both])
    new.sink.apply(NEW, [changes(new.index, (ID, NAME), [(2, "c")], version=6)])
    assert old.sink.apply(OLD, [both]).stale == 1
    assert {k: d["name"] for k, d in new.documents().items()} == {"1": "a", "2": "c"}


def test_a_source_that_starts_over_wins_by_its_generation(leaders):
    old, new = leaders
    far, start = BinlogPosition("binlog.000900", 4_000_000), BinlogPosition("binlog.000001", 4)
    before, after = document_version(1, far), document_version(2, start)
    old.sink.apply(OLD, [changes(old.index, (ID, NAME), [(1, "before")], version=before)])
    new.sink.apply(NEW, [changes(new.index, (ID, NAME), [(1, "after")], version=after)])
    late = changes(old.index, (ID, NAME), [], [(1,)], version=before)
    assert old.sink.apply(OLD, [late]).stale == 1
    assert new.documents() == {"1": {"id": 1, "name": "after"}}


# -- a cluster that remembers what was deleted --------------------------------------------------
#
# The embedded server forgets the version of a deleted document at once. Elasticsearch keeps it
# for `index.gc_deletes` (https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-
# delete), which setl sets to an hour for the indexes that it creates. This one keeps it for ever.


class RememberingCluster(SearchServer):
    """Applies bulk requests by ``external_gte``: what is older than what is known is refused."""

    def __init__(self):
        super().__init__(self.said)
        self.known = {}  # id -> version and document, None once deleted
        self.lock = threading.Lock()

    def said(self, method, _, lines):
        return 200, INDEX if method == "GET" else {"items": self.apply(lines)}

    @property
    def documents(self):
        return {key: doc["name"] for key, (_, doc) in self.known.items() if doc is not None}

    def apply(self, lines):
        items, lines = [], iter(lines)
        with self.lock:
            for line in lines:
                ((operation, header),) = line.items()
                document = next(lines) if operation == "index" else None
                assert header["version_type"] == "external_gte"
                held, _ = self.known.get(header["_id"], (-1, None))
                if header["version"] < held:
                    error = {"type": "version_conflict_engine_exception", "reason": "older"}
                    items.append({operation: {"status": 409, "error": error}})
                else:
                    self.known[header["_id"]] = header["version"], document
                    items.append({operation: {"status": 200}})
        return items


@contextmanager
def remembering():
    with RememberingCluster() as cluster:
        sink = IndexSink(IndexSinkSettings(ElasticEndpoint((cluster.url,))))
        with closing(sink):
            yield cluster, sink


def test_a_late_write_does_not_bring_a_deleted_document_back():
    with remembering() as (cluster, sink):
        put = changes("i", (ID, NAME), [(1, "old")], version=10)
        sink.apply(OLD, [put])
        sink.apply(NEW, [changes("i", (ID, NAME), [], [(1,)], version=11)])
        assert sink.apply(OLD, [put]).stale == 1
        assert cluster.documents == {}


def test_a_late_delete_does_not_remove_a_document_that_was_written_again():
    with remembering() as (cluster, sink):
        sink.apply(NEW, [changes("i", (ID, NAME), [(1, "again")], version=12)])
        assert sink.apply(OLD, [changes("i", (ID, NAME), [], [(1,)], version=11)]).stale == 1
        assert cluster.documents == {"1": "again"}


@pytest.mark.parametrize("seed", range(5))
def test_late_stretches_of_a_stream_in_any_order_change_nothing(seed):
    chance = random.Random(seed)
    stream = [(v, chance.randrange(6), chance.random() < 0.3) for v in range(1, 200)]
    expected = {}
    for version, key, deleted in stream:
        expected.pop(str(key), None)
        if not deleted:
            expected[str(key)] = f"v{version}"

    def insert_partition(begin, end):
        """What a leader sends for a part of the stream: the last state of each key in it."""
        last = {key: (version, deleted) for version, key, deleted in stream[begin:end]}
        puts = [(k, v) for k, (v, deleted) in last.items() if not deleted]
        gone = [(k, v) for k, (v, deleted) in last.items() if deleted]
        return TargetChanges(
            ("", "i"), (ID, NAME), (0,), [(k, f"v{v}") for k, v in puts], [(k,) for k, _ in gone],
            [v for _, v in puts], [v for _, v in gone],
        )  # fmt: skip

    with remembering() as (cluster, sink):
        for begin in range(0, 200, 20):
            sink.apply(NEW, [insert_partition(begin, begin + 20)])
            # The old leader had cut its batches elsewhere, and has come no further.
            late = chance.randrange(begin + 20)
            sink.apply(OLD, [insert_partition(chance.randrange(late + 1), late)])
        assert cluster.documents == expected
        for _ in range(20):
            late = chance.randrange(200)
            sink.apply(OLD, [insert_partition(chance.randrange(late + 1), late)])
            assert cluster.documents == expected


# -- a load that is too old ----------------------------------------------------------------------


class Moment:
    """A clock that tests set."""

    def __init__(self, now):
        self.time = now

    def now(self):
        return self.time

    def monotonic(self):
        return self.time


def test_what_a_process_had_in_hand_when_it_froze_is_not_sent_after_it_thaws():
    with remembering() as (cluster, _):
        clock = Moment(10_000.0)
        settings = IndexSinkSettings(ElasticEndpoint((cluster.url,)), attempts=1)
        sink = IndexSink(settings, clock=clock)
        ticket = replace(OLD, begun=10_000.0)
        part = changes("i", (ID, NAME), [(1, "a")], version=1)
        clock.time += settings.max_age
        sink.apply(ticket, [part])
        assert cluster.documents == {"1": "a"}
        sink.apply(NEW, [changes("i", (ID, NAME), [], [(1,)], version=2)])
        cluster.known.clear()  # the index has forgotten the delete
        clock.time += 1
        with pytest.raises(TransientError, match="begun 1,801 s ago and is given up"):
            sink.apply(ticket, [part])
        assert cluster.documents == {}
        # The other half is for the request itself.
        assert settings.max_age <= GC_DELETES_SECONDS / 2
        sink.close()
