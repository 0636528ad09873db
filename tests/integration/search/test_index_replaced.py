"""An index that somebody deletes behind a pipeline is noticed, and reloaded on request."""

import time
from dataclasses import replace

import pytest
from elasticsearch import Elasticsearch

from arbiter.values import PipelineId
from setl.errors import ConfigurationError, FatalError, TargetReplacedError
from setl.load.deadletters.dead_letter import State
from setl.model.checkpoint import Checkpoint
from setl.model.load_request import LoadRequest
from setl.model.position import BinlogPosition, document_version
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.targets import identities
from setl.systems.registry import system_of
from tests.checking import check_channel
from tests.integration.pipelines import execute, on_a, one_way
from tests.waiting import eventually

TABLE = "CREATE TABLE {db}.orders (id BIGINT PRIMARY KEY, v VARCHAR(40))"
db = on_a("shop", TABLE, system_tables=True)


class Cluster:
    def __init__(self, server, index):
        self.client = Elasticsearch(server.url)
        self.index = index

    def ids(self):
        self.client.indices.refresh(index=self.index)
        hits = self.client.search(index=self.index, size=1000)["hits"]["hits"]
        return sorted(int(hit["_id"]) for hit in hits)

    def has(self, *ids):
        assert self.ids() == list(ids)
        return True

    def delete(self):
        self.client.indices.delete(index=self.index)


@pytest.fixture
def cluster(elasticsearch, db):
    made = Cluster(elasticsearch, f"{db}-orders")
    yield made
    made.client.close()


def channel(site_a, elasticsearch, db, **options):
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    mapping = {"from": f"{db}.orders", "to": f"{db}-orders"}
    return one_way(site_a, target, [mapping], **options)


def insert(site_a, db, *ids):
    values = ", ".join(f"({id_}, 'v')" for id_ in ids)
    execute(site_a, f"INSERT INTO {db}.orders VALUES {values}")


def stored(position, file):
    value, _ = position.arbiter.positions.read(PipelineId(file.channel, "p"))
    return Checkpoint.from_json(value["checkpoint"])


def test_an_index_that_is_gone_is_not_made_again_without_its_documents(
    site_a, elasticsearch, db, position, cluster, monkeypatch
):
    monkeypatch.setattr(identities, "LOOK_SECONDS", 0.0)
    file = channel(site_a, elasticsearch, db)
    insert(site_a, db, 1, 2)
    running = position.lead(file)
    running.applied(2)
    cluster.delete()
    insert(site_a, db, 3)
    error = running.ends()
    assert isinstance(error, TargetReplacedError), error
    assert not cluster.client.indices.exists(index=cluster.index)
    again = position.lead(file).ends()  # nor by another leader
    assert isinstance(again, TargetReplacedError), again
    # The hint that the error names.
    ident = PipelineId(file.channel, "p")
    StoredLoadRequests(position.arbiter, ident).add(LoadRequest(sent=time.time()))
    running = position.lead(file)
    running.applied(3)
    eventually(lambda: cluster.has(1, 2, 3), 60)
    insert(site_a, db, 4)
    running.applied(4)
    running.stop()
    insert(site_a, db, 5)
    position.lead(file).applied(5)
    assert cluster.ids() == [1, 2, 3, 4, 5]


def test_a_dead_letter_makes_no_index_again(
    site_a, elasticsearch, db, position, cluster, monkeypatch
):
    monkeypatch.setattr(identities, "LOOK_SECONDS", 0.0)
    file = channel(site_a, elasticsearch, db, faulty_rows="dead_letter")
    fields = {"id": {"type": "long"}, "v": {"type": "integer"}}
    cluster.client.indices.create(index=cluster.index, mappings={"properties": fields})
    execute(site_a, f"INSERT INTO {db}.orders VALUES (1, '1'), (2, 'no number')")
    running = position.lead(file)
    running.applied(2)
    with system_of(file.pipelines[0].target).dead_letters() as letters:
        (letter,) = letters.find(f"{file.channel}/p")
        cluster.delete()
        letters.mark([letter.id], State.RETRY)
        error = running.ends()
        assert isinstance(error, TargetReplacedError), error
        assert not cluster.client.indices.exists(index=cluster.index)
        assert letters.find(f"{file.channel}/p") == [replace(letter, state=State.RETRY)]


def test_an_index_that_was_replaced_between_two_leaders_is_noticed(
    site_a, elasticsearch, db, position, cluster
):
    file = channel(site_a, elasticsearch, db, create=True)
    insert(site_a, db, 1, 2)
    running = position.lead(file)
    running.applied(2)
    running.stop()
    ((name, id_),) = stored(position, file).targets
    assert name == cluster.index
    cluster.delete()
    error = position.lead(file).ends()  # which would create it
    assert isinstance(error, TargetReplacedError), error
    cluster.client.indices.create(index=cluster.index)
    insert(site_a, db, 3)
    error = position.lead(file).ends()
    assert isinstance(error, TargetReplacedError), error
    assert stored(position, file).targets == ((name, id_),)


def test_an_older_checkpoint_takes_the_index_as_it_is(site_a, elasticsearch, db, position, cluster):
    file = channel(site_a, elasticsearch, db)
    insert(site_a, db, 1)
    running = position.lead(file)
    running.applied(1)
    running.stop()
    ident = PipelineId(file.channel, "p")
    value, revision = position.arbiter.positions.read(ident)
    del value["checkpoint"]["targets"]
    position.arbiter.positions.store(ident, value, revision)
    insert(site_a, db, 2)
    running = position.lead(file)
    running.applied(2)
    running.stop()
    assert [name for name, _ in stored(position, file).targets] == [cluster.index]
    assert cluster.ids() == [1, 2]


def test_two_names_of_one_index_are_refused(site_a, elasticsearch, db, position, cluster):
    """Their rows of one key would be one document."""
    client, index = cluster.client, cluster.index
    execute(site_a, f"CREATE TABLE {db}.parts LIKE {db}.orders")
    client.indices.create(index=index, aliases={f"{index}-alias": {}})
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    tables = [
        {"from": f"{db}.orders", "to": index},
        {"from": f"{db}.parts", "to": f"{index}-alias"},
    ]
    file = one_way(site_a, target, tables)
    names = [f.what for f in check_channel(file) if f.code == "one-index-of-two-names"]
    assert names == [f"{index} and {index}-alias are names of one index"]
    execute(
        site_a,
        f"INSERT INTO {db}.orders VALUES (1, 'order')",
        f"INSERT INTO {db}.parts VALUES (1, 'part')",
    )
    error = position.lead(file).ends()
    assert isinstance(error, ConfigurationError), error
    assert "names of one index" in str(error)


def test_an_alias_that_comes_to_stand_for_two_indexes_stops(
    site_a, elasticsearch, db, position, cluster, monkeypatch
):
    """As after a rollover: a changed row would go into one, and stay as it was in the other."""
    monkeypatch.setattr(identities, "LOOK_SECONDS", 0.0)
    client, alias = cluster.client, cluster.index
    for number in (0, 1, 2):
        client.indices.create(index=f"{alias}-{number}")
    client.indices.put_alias(index=f"{alias}-0", name=alias)
    file = channel(site_a, elasticsearch, db)
    insert(site_a, db, 0)
    running = position.lead(file)
    running.applied(1)
    moved = [
        {"remove": {"index": f"{alias}-0", "alias": alias}},
        {"add": {"index": f"{alias}-1", "alias": alias}},
    ]
    client.indices.update_aliases(actions=moved)
    insert(site_a, db, 1)
    running.applied(2)
    (made,) = client.indices.get(index=alias).body.values()
    assert made["settings"]["index"]["gc_deletes"] == "1h"
    assert made["mappings"]["properties"]["v"]["fields"]["keyword"]["ignore_above"] == 8191
    rolled_over = [
        {"add": {"index": f"{alias}-{number}", "alias": alias, "is_write_index": number == 2}}
        for number in (1, 2)
    ]
    client.indices.update_aliases(actions=rolled_over)
    execute(site_a, f"UPDATE {db}.orders SET v = 'w'")
    error = running.ends()
    assert isinstance(error, ConfigurationError), error
    assert f"the alias {alias} stands for 2 indexes: {alias}-1, {alias}-2" in str(error)
    assert cluster.ids() == [1]  # and not one of each index
    client.indices.delete_alias(index=f"{alias}-2", name=alias)
    position.lead(file).applied(1)
    assert cluster.ids() == [1]


def test_documents_that_are_newer_than_all_of_the_source_are_not_taken_for_its_own(
    site_a, elasticsearch, db, position, cluster
):
    """They refuse what the pipeline writes, as after another channel with a higher generation."""
    held = document_version(2, BinlogPosition("binlog.000001", 4))
    versioned = {"version": held, "version_type": "external", "refresh": True}
    cluster.client.index(index=cluster.index, id="1", document={"v": "theirs"}, **versioned)
    file = channel(site_a, elasticsearch, db)
    insert(site_a, db, 1, 2)
    error = position.lead(file).ends()
    assert isinstance(error, FatalError), error
    assert f"refused 1 writes of this load, of generation 1, for version {held}" in str(error)
    assert "`generation: 3`" in error.hint
    anew = [pipeline.model_copy(update={"generation": 3}) for pipeline in file.pipelines]
    position.lead(file.model_copy(update={"pipelines": anew})).applied(2)
    assert cluster.client.get(index=cluster.index, id="1")["_source"] == {"id": 1, "v": "v"}
