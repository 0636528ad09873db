"""What a Kafka consumer group promises that keeps the checkpoint."""

import time

import pytest
from confluent_kafka import KafkaError

from arbiter.values import PipelineId
from setl.errors import ConfigurationError, FatalError, FencedError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaPosition
from setl.systems.kafka.checkpoints import KafkaCheckpointStore
from setl.systems.kafka.commit import read_commit
from setl.systems.kafka.errors import commit_error
from setl.systems.kafka.reader import open_reader
from setl_embedded import Kafka
from tests.contract.checkpoint_backends import KafkaBackend


@pytest.fixture
def commits(kafka):
    made = KafkaBackend(kafka)
    yield made
    made.close()


def test_kafka_a_commit_says_the_time_first_and_the_next_offset(commits):
    commits.store().store(commits.at(300, applied=350), 7)
    found = commits.committed()
    assert found.offset == 300
    assert found.metadata.startswith(f"{1_700_000_300}|{{")


@pytest.mark.parametrize("metadata", ["1700000042", "1700000042|anything", ""])
def test_kafka_another_client_s_commit_is_gone_on_from(commits, metadata):
    """Alibaba's client commits the record itself, so it is read once more."""
    commits.foreign_commit(42, metadata)
    seconds = 1_700_000_042 if metadata else 0
    assert commits.store().load() == Checkpoint(
        KafkaPosition(commits.topic, 0, 42, seconds), timestamp=float(seconds), requested=1
    )
    commits.store().store(commits.at(43), 1)
    assert commits.store().load() == commits.at(43)


def test_kafka_another_client_s_commit_is_read_whatever_its_length(commits):
    """The client library reads on behind what another client commits, up to a zero."""
    reader = open_reader(commits.config(), 10.0, few=True)
    try:
        for length in range(80):  # one length in four had something behind it
            commits.foreign_commit(42, metadata := f"1700000042{'x' * length}")
            committed = reader.committed(0)
            assert committed is not None
            offset, found = committed
            assert (offset, found[: len(metadata)]) == (42, metadata)
            assert read_commit(commits.topic, 0, offset, found).timestamp == 1_700_000_042
    finally:
        reader.close()


def test_kafka_another_client_s_commit_stores_the_generation(commits):
    commits.store().store(commits.at(100, generation=5, requested=2), 1)
    commits.foreign_commit(200, "")
    found = commits.store(generation=2).load()
    assert (found.resume.offset, found.generation) == (200, 5)
    assert found.outdated(3)
    assert not found.outdated(2)


def test_kafka_another_client_that_went_further_is_an_error_unless_it_took_turns(commits):
    store = commits.store()
    store.store(commits.at(100), 1)
    commits.foreign_commit(200, "")
    with pytest.raises(FatalError, match="lies before the stored one"):
        store.store(commits.at(150), 1)

    class Member:
        def commit(self, offsets):
            raise AssertionError("it must not commit")

    shared = commits.store(member=Member())
    shared.load()
    with pytest.raises(TransientError, match=r"has moved on to .*@200"):
        shared.store(commits.at(150), 1)
    assert commits.committed().offset == 200


def test_kafka_a_commit_that_has_expired_is_no_first_start(commits):
    commits.store().store(commits.at(100), 3)
    config = commits.config(PipelineId("shop", "nothing-committed"))
    emptied = KafkaCheckpointStore(config, commits.notes(), commits.owner())
    commits.stores.append(emptied)
    with pytest.raises(FatalError, match=r"since epoch 3.*has expired") as raised:
        emptied.load()
    assert "setl position reset" in str(raised.value)
    emptied.replace(commits.at(400, generation=2), 4)
    assert emptied.load() == commits.at(400, generation=2)


def test_kafka_two_pipelines_in_one_group_are_refused(commits):
    commits.store().store(commits.at(100), 1)
    other = PipelineId("shop", "other")
    store = KafkaCheckpointStore(commits.config(), commits.notes(other), commits.owner(other))
    commits.stores.append(store)
    with pytest.raises(ConfigurationError, match=f"keeps the checkpoint of {commits.key}"):
        store.load()
    with pytest.raises(ConfigurationError, match="keeps the checkpoint of"):
        store.store(commits.at(900), 9)
    assert commits.store().load() == commits.at(100)


def test_kafka_what_a_former_leader_stored_late_is_stored_or_replaced(commits):
    old, new = commits.store(), commits.store()
    old.store(commits.at(100), 1)
    assert new.load() == commits.at(100)
    old.store(commits.at(300), 1)
    new.store(commits.at(200), 2)
    assert commits.store().load() == commits.at(300)
    # It slips in between comparing and committing; the next store fixes that.
    old.replace(commits.at(50), 1)
    new.store(commits.at(350), 2)
    assert commits.store().load() == commits.at(350)
    with pytest.raises(FencedError):
        old.store(commits.at(400), 1)


def test_kafka_what_slips_in_over_a_position_that_was_set_again_is_not_gone_on_from(commits):
    """It may lie further on, and the operator wants what is in between once more."""
    frozen = commits.store()
    frozen.store(commits.at(300), 1)
    compared = frozen._committed()
    commits.store().replace(commits.at(100, generation=2), 2)
    frozen._committed = lambda: compared  # it had compared before it was frozen, and commits now
    frozen.store(commits.at(400), 1)
    assert commits.committed().offset == 400
    with pytest.raises(FatalError, match="of generation 1, not of 2") as raised:
        commits.store().load()
    assert "setl position reset" in str(raised.value)
    commits.store().replace(commits.at(100, generation=3), 3)
    assert commits.store().load() == commits.at(100, generation=3)


def test_kafka_a_leader_does_not_go_back_with_the_commits(commits, caplog):
    """Kafka was restored from a backup: at these offsets there may be other records by now."""
    leader = commits.store()
    leader.store(commits.at(100), 1)
    leader.store(commits.at(300), 1)
    commits.store()._store(commits.at(100), 1)
    assert leader.load() == commits.at(300)
    assert "has lost the commit of" in caplog.text
    moved = commits.at(300).moved_to(commits.at(40).resume)
    leader.store(moved, 1)
    assert leader.load() == commits.store().load() == moved
    # What another client has committed is where it stood.
    commits.foreign_commit(20, "")
    assert leader.load().resume.offset == 20


def test_kafka_members_of_the_group_keep_others_from_committing(commits):
    store = commits.store()
    member = commits.consumer(session_timeout_ms=6000)
    try:
        member.subscribe([commits.topic])
        deadline = time.monotonic() + 60
        while not member.assignment():
            assert time.monotonic() < deadline
            member.poll(200)
        with pytest.raises(TransientError, match="present members only") as raised:
            store.store(commits.at(100), 1)
        assert "mode: subscribe" in raised.value.hint
    finally:
        member.close()
    store.store(commits.at(100), 1)
    assert store.load() == commits.at(100)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.OFFSET_METADATA_TOO_LARGE, FatalError),
        (KafkaError.ILLEGAL_GENERATION, TransientError),
        (KafkaError.UNKNOWN_MEMBER_ID, TransientError),
        (KafkaError.REQUEST_TIMED_OUT, TransientError),
    ],
)
def test_kafka_refusals_have_their_kinds(error, kind):
    assert type(commit_error(KafkaError(error), "g")) is kind


def test_kafka_out_of_reach_is_transient(tmp_path):
    with Kafka(tmp_path) as server:
        commits = KafkaBackend(server)
        store = KafkaCheckpointStore(
            commits.config(), commits.notes(), commits.owner(), timeout=5.0
        )
        commits.stores.append(store)
        store.store(commits.at(100), 1)
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(TransientError):
                store.store(commits.at(200), 1)
            with pytest.raises(TransientError):
                store.load()
            assert time.monotonic() - began < 40
        finally:
            server.resume()
        store.store(commits.at(200), 1)
        assert store.load() == commits.at(200)
        commits.close()
