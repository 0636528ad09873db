import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbiter import payloads
from arbiter.errors import Invalid
from arbiter.values import (
    EVERYTHING,
    Channel,
    ChannelState,
    HistoryItem,
    LeaderLock,
    LeaderLockStatus,
    NodeInfo,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)

RUBBISH = [b"", b"{", b"null", b"[1]", b'"text"', b"\xff\xfe", b"[" * 100_000, b"{}"]

texts = st.text(max_size=20)
# Encoding refuses surrogates, which no configuration file can hold.
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def test_every_payload_has_a_version():
    written = [
        payloads.node_payload(NodeInfo("n1")),
        payloads.channel_payload("shop", ChannelState.START, {}),
        payloads.leader_lock_payload("n1", LeaderLockStatus.TAKING, 5, 0, 1),
        payloads.epoch_payload(7),
        payloads.signal_payload(Signal(SignalKind.ROLLBACK)),
        payloads.position_payload("shop/there", {}),
        payloads.history_payload(HistoryItem(1, "n1", "", 0.0)),
    ]
    assert [json.loads(data)["version"] for data in written] == [1] * 7


@given(
    texts,
    texts,
    st.integers(0, 2**31),
    texts,
    st.floats(0, 2**37),
    st.booleans(),
    st.lists(texts, max_size=3).map(tuple),
)
def test_nodes_come_back(nid, host, pid, http, started, ready, serves):
    node = NodeInfo(nid, host, pid, http, started, ready, serves)
    assert payloads.read_node(nid, payloads.node_payload(node)) == node


@given(st.sampled_from(ChannelState), st.dictionaries(texts, json_values, max_size=4))
def test_channels_come_back(state, definition):
    data = payloads.channel_payload("shop", state, definition)
    assert payloads.read_channel("shop", data, 7) == Channel("shop", state, definition, 7)


@given(
    texts.filter(bool),
    st.sampled_from(LeaderLockStatus),
    st.integers(0, 2**62),
    st.integers(1, 2**40),
)
def test_leader_locks_come_back(nid, status, base, number):
    data = payloads.leader_lock_payload(nid, status, 99, base, number)
    read = payloads.read_leader_lock(data, created=4, owner=5)
    assert read == LeaderLock(nid, status, base + 4, 5)
    assert read.number == number


def test_a_leader_lock_of_a_release_without_a_base():
    data = b'{"version": 1, "nid": "n1", "status": "TAKING", "session": "0x1"}'
    assert payloads.read_leader_lock(data, created=4, owner=5).epoch == 4


@given(
    st.builds(
        Signal,
        kind=st.sampled_from(SignalKind),
        to=texts,
        at=st.floats(0, 2**37),
        leader=texts,
        epoch=st.integers(0, 2**63 - 1),
        by=texts,
        sent=st.floats(0, 2**37),
        state=st.sampled_from(SignalState),
        answer=texts,
    )
)
def test_signals_come_back(signal):
    data = payloads.signal_payload(signal)
    assert payloads.read_signal("s-1", data, 3) == replace(signal, id="s-1", revision=3)


@given(st.integers(0, 2**62))
def test_bases_come_back(base):
    assert payloads.read_epoch(payloads.epoch_payload(base)) == base


@pytest.mark.parametrize("data", [*RUBBISH, b'{"base": -1}', b'{"base": true}', b'{"base": 1.5}'])
def test_a_base_that_cannot_be_read_is_not_taken_for_0(data):
    with pytest.raises(Invalid, match="epoch"):
        payloads.read_epoch(data)


def test_the_owner_of_a_leader_lock_is_never_read_from_its_payload():
    data = payloads.leader_lock_payload("n1", LeaderLockStatus.OVERTAKE, 0x1F, 8, 3)
    assert json.loads(data) == {
        "version": 1,
        "nid": "n1",
        "status": "OVERTAKE",
        "session": "0x1f",
        "base": 8,
        "leadership": 3,
    }
    assert payloads.read_leader_lock(data, created=1, owner=2).session == 2


@given(
    st.builds(
        HistoryItem,
        epoch=st.integers(0, 2**63 - 1),
        nid=texts,
        reason=texts,
        at=st.floats(0, 2**37),
        outage=st.none() | st.floats(0, 2**20),
        redelivered=st.none() | st.integers(0, 2**37),
    )
)
def test_history_comes_back(item):
    assert payloads.read_history(payloads.history_payload(item)) == item


@given(st.dictionaries(texts, json_values, max_size=4))
def test_positions_come_back(position):
    data = payloads.position_payload("shop/there", position)
    assert payloads.read_position("shop/there", data) == position


@pytest.mark.parametrize("data", RUBBISH)
def test_rubbish(data):
    assert payloads.read_node("n1", data) == NodeInfo("n1")
    assert payloads.read_channel("shop", data, 3) == Channel("shop", ChannelState.STOP, {}, 3)
    assert payloads.read_channel("shop", data, 3).damage
    assert not payloads.read_leader_lock(data, created=4, owner=5).readable
    assert payloads.read_leader_lock(data, created=4, owner=5) == LeaderLock(
        "?", LeaderLockStatus.TAKING, 4, 5
    )
    assert payloads.read_history(data) is None
    assert payloads.read_signal("s-1", data, 0) is None
    with pytest.raises(Invalid, match="shop/there"):
        payloads.read_position("shop/there", data)


@pytest.mark.parametrize(
    "payload",
    [
        {"state": "START", "definition": []},
        {"state": "RUN", "definition": {}},
        {"state": ["START"], "definition": {}},
        {"definition": {}},
    ],
)
def test_a_channel_of_which_half_can_be_read_is_stopped(payload):
    data = json.dumps(payload).encode()
    assert payloads.read_channel("shop", data, 0).state is ChannelState.STOP


def test_fields_of_the_wrong_kind_are_left_out():
    node = b'{"host": 5, "pid": "x", "http": null, "started": 1e999}'
    assert payloads.read_node("n1", node) == NodeInfo("n1")
    assert payloads.read_node("n1", b'{"serves": "relay"}').serves == EVERYTHING
    assert payloads.read_node("n1", b'{"serves": ["relay", 5]}').serves == ("relay",)
    assert payloads.read_history(b'{"epoch": true, "at": 1}') is None
    assert payloads.read_history(b'{"epoch": 1, "at": 1, "outage": "x"}') == HistoryItem(
        1, "", "", 1
    )


_LONG = "x" * 20_000

GARBAGE = [
    *RUBBISH,
    b"\x00\x01\xff\x80" * 50,
    "{\"nid\": \"n1\"}".encode("utf-16"),
    json.dumps({"nid": "é"}, ensure_ascii=False).encode("latin-1"),
    b"9" * 10_000,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b'{"nid": "\\ud800", "definition": {}, "state": "START"}',
    b'{"state": "START", "definition": {"x": NaN}}',
    *(
        b'{"kind": "switchover", "state": "pending", "epoch": 7, "at": 5, "%s": %s}'
        % (field, value)
        for field in (
            b"nid", b"base", b"pid", b"at", b"sent", b"epoch", b"outage", b"redelivered",
            b"started", b"kind", b"state", b"status", b"definition", b"position", b"serves",
            b"ready", b"to", b"reason", b"http",
        )
        for value in (
            b"null", b"true", b"[]", b"{}", b'["x", {}]', b'""', b"-1", b"1.5", b"1e999", b"-1e308",
            b"NaN", b"Infinity", b"1" + b"0" * 400, b"1" + b"0" * 5000, b"9223372036854775808",
            b'"%s"' % _LONG.encode(), b"[" * 150 + b"]" * 150,
        )
    ),
]  # fmt: skip


def test_no_garbage_comes_through():
    for data in GARBAGE:
        wrong = []
        node = payloads.read_node("n1", data, wrong)
        leader_lock = payloads.read_leader_lock(data, created=4, owner=5, wrong=wrong)
        signal = payloads.read_signal("s-1", data, 0, wrong)
        item = payloads.read_history(data, wrong)
        channel = payloads.read_channel("shop", data, 0)
        assert all(len(sentence) < 500 for sentence in [*wrong, channel.damage]), data[:100]
        for reader in (payloads.read_epoch, lambda d: payloads.read_position("shop/there", d)):
            with suppress(Invalid):
                reader(data)
        assert 4 <= leader_lock.epoch < 2**63
        numbers = [node.pid, node.started]
        if signal is not None:
            numbers += [signal.at, signal.sent, signal.epoch]
        if item is not None:
            numbers += [item.at, item.epoch, item.outage or 0, item.redelivered or 0]
        assert all(0 <= number < 2**63 for number in numbers), data[:100]
        # Whatever was read can be written again, shown and compared.
        payloads.node_payload(node)
        payloads.channel_payload("shop", channel.state, channel.definition)
        payloads.leader_lock_payload(leader_lock.nid, leader_lock.status, 1, 0, 1)


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_no_reader_fails(data):
    payloads.read_node("n1", data)
    payloads.read_channel("shop", data, 0)
    payloads.read_leader_lock(data, created=1, owner=2)
    payloads.read_signal("s-1", data, 0)
    payloads.read_history(data)


def test_what_is_wrong_is_said():
    wrong = []
    huge = b'{"pid": 1%s}' % (b"0" * 400)
    assert payloads.read_node("n1", huge, wrong).pid == 0
    assert len(wrong) == 1
    assert wrong[0].startswith("has no pid that can be read: it is to be a whole number from 0 to")
    assert wrong[0].endswith(", not a number of 1329 bits")
    assert payloads.read_channel("shop", b"", 0).damage == "is empty"
    assert payloads.read_channel("shop", b"{", 0).damage.startswith("is not JSON: ")


def test_a_request_whose_time_cannot_be_read_is_not_due_at_once():
    data = b'{"kind": "failover", "state": "pending", "at": 1e999}'
    assert payloads.read_signal("s-1", data, 0) is None


def test_a_later_release_is_read_as_far_as_it_is_known():
    data = b'{"version": 9, "state": "PAUSE", "definition": {"a": 1}, "new": 2}'
    assert payloads.read_channel("shop", data, 0).state is ChannelState.PAUSE


def test_sizes():
    room = payloads.MAX_BYTES - len(payloads.encode("x", {"text": ""}))
    assert len(payloads.encode("x", {"text": "a" * room})) == payloads.MAX_BYTES
    with pytest.raises(Invalid, match=r"channel x takes 1,000,001 bytes"):
        payloads.encode("channel x", {"text": "a" * (room + 1)})
    with pytest.raises(Invalid):
        payloads.encode("x", {"text": "ä" * (room // 2 + 1)})


def test_what_json_cannot_hold():
    loop = {}
    loop["loop"] = loop
    for value in ({1}, b"x", float("inf"), loop, "\ud800"):
        with pytest.raises(Invalid, match="channel x cannot be written"):
            payloads.encode("channel x", {"value": value})


def test_what_a_node_lacks_comes_back_and_is_no_longer_than_it_may_be():
    lacks = {PipelineId("shop", f"p{n}"): "x" * 5000 for n in range(700)}
    node = NodeInfo("n1", not_ready={PipelineId("shop", "there"): "a variable is not set"})
    assert payloads.read_node("n1", payloads.node_payload(node)) == node
    many = payloads.node_payload(NodeInfo("n1", not_ready=lacks))
    assert len(many) < payloads.MAX_BYTES / 2
    assert payloads.read_node("n1", b'{"unable": {"no-slash": "x", "a/b": 5}}').not_ready == {}
