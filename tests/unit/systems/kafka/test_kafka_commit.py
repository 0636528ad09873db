"""A checkpoint as the metadata of a commit, and what others commit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.commit import (
    METADATA_BYTES,
    Commit,
    foreign_checkpoint,
    metadata_of,
    read_commit,
)

numbers = st.integers(0, (1 << 50) - 1)
origins = st.none() | st.builds(KafkaOrigin, st.text(max_size=40), st.text(max_size=40))
positions = st.builds(
    KafkaPosition, st.just("t"), st.just(3), numbers, numbers, st.integers(0, 2**32 - 1), origins
)
checkpoints = st.builds(
    Checkpoint,
    positions,
    st.none() | positions,
    st.floats(0, 4e9),
    st.integers(1, 2047),
    numbers,
    st.integers(0, 2047),
)


@given(checkpoints, numbers)
def test_what_is_written_is_read(checkpoint, epoch):
    text = metadata_of(checkpoint, "shop/p", epoch)
    commit = read_commit("t", 3, checkpoint.resume.offset, text)
    assert (commit.checkpoint, commit.pipeline, commit.epoch) == (checkpoint, "shop/p", epoch)
    assert text.partition("|")[0] == str(checkpoint.resume.timestamp or int(checkpoint.timestamp))


@pytest.mark.parametrize("strange", ["7", "\ufffd", "}", "|{}", "\x01 "])
def test_what_follows_is_not_read(strange):
    """Metadata indefinitely of its own comes with bytes of somebody else's behind it."""
    assert read_commit("t", 0, 42, "1700000005" + strange).timestamp == 1_700_000_005
    checkpoint = Checkpoint(KafkaPosition("t", 3, 7, 1_700_000_005))
    text = metadata_of(checkpoint, "shop/p", 5)
    found = read_commit("t", 3, 7, text + strange)
    assert (found.checkpoint, found.pipeline, found.epoch) == (checkpoint, "shop/p", 5)


def test_it_fits_with_the_longest_names_that_there_are():
    position = KafkaPosition(
        "t" * 249, 999, 1 << 62, 1 << 40, 2**32 - 1, KafkaOrigin("c" * 22, "i" * 36)
    )
    text = metadata_of(
        Checkpoint(position, position, 1e9, 2047, 1 << 62, 2047), "c" * 64 + "/" + "p" * 64, 1 << 62
    )
    assert len(text.encode()) < METADATA_BYTES / 4


def test_what_does_not_fit_is_said_before_it_is_sent():
    position = KafkaPosition("t", 0, 1, origin=KafkaOrigin("c" * 5000))
    with pytest.raises(FatalError, match="of 4096 bytes"):
        metadata_of(Checkpoint(position), "shop/p", 1)


def test_what_is_known_of_targets_is_left_out_if_there_is_no_room():
    few, many = ((f"i{n}", f"u i{n}") for n in range(9)), ((f"i{n}", f"u i{n}") for n in range(900))
    position = KafkaPosition("t", 0, 1)
    for targets, stored in ((tuple(few), True), (tuple(many), False)):
        checkpoint = Checkpoint(position, targets=targets)
        found = read_commit("t", 0, 1, metadata_of(checkpoint, "shop/p", 1)).checkpoint
        assert found == (checkpoint if stored else Checkpoint(position))


@pytest.mark.parametrize(
    ("metadata", "timestamp"),
    [
        ("1700000005", 1_700_000_005),  # what Alibaba's client writes
        ("1700000005|", 1_700_000_005),
        ("1700000005|any thing", 1_700_000_005),
        ('1700000005|{"a": 1}', 1_700_000_005),
        ("1700000005|[1]", 1_700_000_005),
        ("", 0),  # what most clients write
        ("nonsense", 0),
        ("²|x", 0),
        ("170000000|", 0),  # no time that anybody commits
    ],
)
def test_commits_of_others(metadata, timestamp):
    commit = read_commit("t", 0, 42, metadata)
    assert commit == Commit(42, timestamp)
    assert foreign_checkpoint(commit, "t", 0, 3, 2) == Checkpoint(
        KafkaPosition("t", 0, 42, timestamp), timestamp=float(timestamp), generation=3, requested=2
    )


@pytest.mark.parametrize("rest", [{"setl": 1}, {"setl": 9, "resume": 1}])
def test_what_another_version_wrote_is_no_foreign_commit(rest):
    with pytest.raises(FatalError, match="not a stored checkpoint"):
        read_commit("t", 0, 42, f"1|{json.dumps(rest)}")
