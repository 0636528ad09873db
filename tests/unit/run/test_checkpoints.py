"""Which store a pipeline has, which others are looked into, and in which order."""

import json
import logging
from pathlib import Path

import pytest

from arbiter.values import PipelineId
from setl.channel.fields.endpoints import BinlogStart
from setl.channel.reading import parse_channel
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.position import BinlogPosition
from setl.operate.positions.reposition import move
from setl.operate.positions.stored import read_stored, without_used_starts
from setl.run.checkpoints import stores as checkpoints
from setl.run.checkpoints.compared_fence import ComparedFence
from setl.run.checkpoints.stores import (
    fence_for_run,
    other_stores,
    store_for_run,
    store_interval,
    store_of,
    stored_in,
)
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.systems.registry import system_of
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

ID = PipelineId("shop", "p")
MYSQL = {"type": "mysql", "host": "127.0.0.1", "port": 1, "user": "u"}
DTS = {"type": "kafka", "brokers": ["127.0.0.1:1"], "topic": "t"}
SEARCH = {"type": "elasticsearch", "hosts": ["http://127.0.0.1:1"]}
BEGIN = BinlogStart(file="b.000001").model_dump()
HERE, THERE = BinlogPosition("b.000003", 400), BinlogPosition("b.000003", 900)


def pipeline(source=MYSQL, target=SEARCH, **options):
    definition = {"name": "p", "source": source, "target": target, **options}
    definition["tables"] = [{"from": "s.t", "to": "i"}]
    return parse_channel({"channel": "shop", "pipelines": [definition]}).pipelines[0]


@pytest.fixture
def arbiter():
    made = MemoryArbiter(MemoryCluster())
    made.channels.put("shop", {"pipelines": [{"name": "p"}]})
    return made


@pytest.fixture
def filed(tmp_path, monkeypatch):
    monkeypatch.setenv("SETL_CHECKPOINT_FOLDER", str(tmp_path))
    return {"checkpoint": "file", "checkpoint_file": str(tmp_path / "p.json")}


def run_store(config, arbiter, epoch=5):
    source = system_of(config.source).stream(config, "shop", "n")
    return store_for_run(config, Leadership("shop", "p", "n", epoch), arbiter, source)


@pytest.mark.parametrize(
    ("source", "target", "options", "name", "interval", "others"),
    [
        (MYSQL, MYSQL, {}, "target", 0, ["zookeeper", "file", "kafka"]),
        (MYSQL, SEARCH, {}, "zookeeper", 0, ["file", "kafka"]),
        (MYSQL, MYSQL, {"checkpoint": "zookeeper"}, "zookeeper", 0, ["target", "file", "kafka"]),
        ({**DTS, "sid": "g"}, MYSQL, {"checkpoint": "kafka"}, "kafka", 5,
         ["target", "zookeeper", "file"]),
        (MYSQL, SEARCH, {"checkpoint": "file", "checkpoint_file": "/p", "checkpoint_interval": 1},
         "file", 1, ["zookeeper", "kafka"]),
    ],
)  # fmt: skip
def test_the_stores_of_a_pipeline(arbiter, source, target, options, name, interval, others):
    config = pipeline(source, target, **options)
    assert (stored_in(config), store_interval(config)) == (name, interval)
    assert [o.name for o in other_stores(config, "shop", arbiter, "n")] == others


def test_a_changed_store_takes_over(arbiter, filed, caplog):
    caplog.set_level(logging.INFO)
    ArbiterCheckpointStore(arbiter, ID).store(Checkpoint(HERE, rows=7), 3)
    config = pipeline(**filed)
    assert run_store(config, arbiter).load() == Checkpoint(HERE, rows=7)
    assert "found in the store `zookeeper`" in caplog.text
    # ZooKeeper has a note in its place now, and the way back is as short.
    assert "elsewhere" in arbiter.positions.read(ID)[0]
    back = run_store(pipeline(), arbiter, epoch=6)
    assert back.load() == Checkpoint(HERE, rows=7)
    assert store_of(pipeline(), "shop", arbiter, "n").load() == Checkpoint(HERE, rows=7)


@pytest.mark.parametrize(
    ("target", "options", "compares"),
    [
        (MYSQL, {}, False),
        (MYSQL, {"checkpoint": "zookeeper"}, True),
        (SEARCH, {}, False),
    ],
)
def test_a_fence_is_compared_with_a_checkpoint_that_does_not_go_back_with_it(
    arbiter, target, options, compares
):
    config = pipeline(target=target, **options)
    fence = fence_for_run(config, Leadership("shop", "p", "n", 5), arbiter)
    assert isinstance(fence, ComparedFence) == compares


def test_who_stored_last_is_known_wherever_it_is_stored(arbiter, filed):
    notes = ArbiterNotes(arbiter, ID)
    assert notes.stored_by() == 0
    ArbiterCheckpointStore(arbiter, ID).store(Checkpoint(HERE), 3)
    assert notes.stored_by() == 3
    run_store(pipeline(**filed), arbiter, epoch=5).load()
    assert notes.stored_by() == 5


def test_a_store_that_is_used_again_does_not_go_back(arbiter, filed):
    run_store(pipeline(**filed), arbiter).store(Checkpoint(HERE), 5)
    run_store(pipeline(), arbiter, epoch=6).load()
    run_store(pipeline(), arbiter, epoch=7).store(Checkpoint(THERE), 7)
    config = pipeline(**filed)  # the file still says HERE
    seen = read_stored(config, "shop", arbiter)
    assert (seen.found_in, seen.checkpoint) == ("zookeeper", Checkpoint(THERE))
    assert run_store(config, arbiter, epoch=8).load() == Checkpoint(THERE)
    assert read_stored(config, "shop", arbiter).found_in == "file"


def test_a_file_that_cannot_be_read_is_no_first_start(arbiter, filed):
    run_store(pipeline(**filed), arbiter).store(Checkpoint(HERE), 5)
    file = Path(filed["checkpoint_file"])
    file.unlink()
    file.mkdir()
    with pytest.raises(FatalError, match=r"since epoch 5, and cannot be read: .* directory"):
        run_store(pipeline(), arbiter, epoch=6).load()
    assert "Is a directory" in read_stored(pipeline(), "shop", arbiter).damage


def test_a_file_left_on_another_machine_is_not_passed_over(arbiter, filed, monkeypatch):
    monkeypatch.setattr(checkpoints.socket, "gethostname", lambda: "first")
    run_store(pipeline(**filed), arbiter).store(Checkpoint(HERE), 5)
    monkeypatch.setattr(checkpoints.socket, "gethostname", lambda: "second")
    other = pipeline(**{**filed, "checkpoint_file": filed["checkpoint_file"] + ".other"})
    with pytest.raises(FatalError, match=r"on node n \(first\), since epoch 5"):
        run_store(other, arbiter, epoch=6).load()
    Path(filed["checkpoint_file"]).unlink()  # and with another store configured
    with pytest.raises(FatalError, match=r"on node n \(first\), since epoch 5"):
        run_store(pipeline(), arbiter, epoch=6).load()
    assert "elsewhere" in arbiter.positions.read(ID)[0]


def test_a_container_is_warned_of(arbiter, filed, monkeypatch, caplog):
    monkeypatch.setattr(checkpoints, "container_sign", lambda: "/.dockerenv")
    run_store(pipeline(**filed), arbiter)
    assert "this is a container (/.dockerenv)" in caplog.text
    caplog.clear()
    run_store(pipeline(), arbiter)
    assert caplog.text == ""


def test_position_show_names_the_store_and_what_it_found(arbiter, filed):
    config = pipeline(**filed)
    seen = read_stored(config, "shop", arbiter)
    assert (seen.stored_in, seen.found_in, seen.checkpoint) == ("file", "", None)
    ArbiterCheckpointStore(arbiter, ID).store(Checkpoint(HERE, generation=4), 3)
    seen = read_stored(config, "shop", arbiter)
    assert (seen.stored_in, seen.found_in, seen.checkpoint) == (
        "file", "zookeeper", Checkpoint(HERE, generation=4),
    )  # fmt: skip
    run_store(config, arbiter).load()
    seen = read_stored(config, "shop", arbiter)
    assert (seen.found_in, seen.by, seen.generation) == ("file", 5, 4)


def test_a_reset_writes_the_file(arbiter, filed):
    config = pipeline(**filed)
    run_store(config, arbiter).store(Checkpoint(HERE, rows=3), 1)
    done = move(config, ID, THERE, arbiter=arbiter, nid="reset")
    assert (done.before, done.after.generation) == (Checkpoint(HERE, rows=3), 2)
    assert run_store(config, arbiter, done.epoch + 1).load() == done.after


def test_a_reset_helps_where_the_file_is_lost_and_goes_above_its_generation(
    arbiter, filed, monkeypatch
):
    run_store(pipeline(**filed), arbiter).store(Checkpoint(HERE, generation=6), 1)
    monkeypatch.setattr(checkpoints.socket, "gethostname", lambda: "second")
    config = pipeline(**{**filed, "checkpoint_file": filed["checkpoint_file"] + ".other"})
    seen = read_stored(config, "shop", arbiter)
    assert "on node n" in seen.damage
    assert seen.checkpoint is None
    done = move(config, ID, THERE, arbiter=arbiter, nid="reset")
    assert done.after == Checkpoint(THERE, generation=7, requested=1)
    assert run_store(config, arbiter, done.epoch + 1).load() == done.after
    assert json.loads(Path(f"{filed['checkpoint_file']}.other").read_text())["epoch"] == done.epoch


@pytest.mark.parametrize("garbage", [b"\xff rubbish", b'{"version": 1, "elsewhere": 7}'])
def test_a_reset_helps_where_the_note_cannot_be_read(arbiter, filed, garbage):
    config = pipeline(**filed)
    run_store(config, arbiter).store(Checkpoint(HERE, rows=3), 1)
    path, znodes = "/setl/channels/shop/p/position", arbiter._znodes
    znodes.write(path, garbage, znodes.read(path).version)
    with pytest.raises(FatalError):
        run_store(config, arbiter, 2).load()
    done = move(config, ID, THERE, arbiter=arbiter, nid="reset")
    assert run_store(config, arbiter, done.epoch + 1).load() == done.after


def test_a_start_that_a_checkpoint_has_replaced_is_not_asked_for(arbiter):
    config = pipeline({**MYSQL, "start": {"file": "b.000001"}})
    file = parse_channel({"channel": "shop", "pipelines": [config.model_dump(by_alias=True)]})
    assert without_used_starts(file, arbiter).pipelines[0].source.model_dump()["start"] == BEGIN
    ArbiterCheckpointStore(arbiter, ID).store(Checkpoint(HERE), 5)
    assert without_used_starts(file, arbiter).pipelines[0].source.model_dump()["start"] == "latest"


def test_a_start_stays_where_the_checkpoint_cannot_be_seen(arbiter):
    config = pipeline({**MYSQL, "start": {"file": "b.000001"}}, MYSQL)
    file = parse_channel({"channel": "shop", "pipelines": [config.model_dump(by_alias=True)]})
    assert without_used_starts(file, arbiter).pipelines[0].source.model_dump()["start"] == BEGIN
