"""The checkpoint file, through crashes, on other machines, and in wrong hands."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from arbiter.values import PipelineId
from setl.errors import ConfigurationError, FatalError, FencedError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.select.checkpoints import file as checkpoint_file
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.select.checkpoints.file import FileCheckpointStore
from setl.select.checkpoints.folder import checkpoint_folder
from setl.select.checkpoints.owner import Owner
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

ID = PipelineId("shop", "p")


def at(offset, **more):
    return Checkpoint(BinlogPosition("b.000003", offset), **more)


@pytest.fixture
def arbiter():
    made = MemoryArbiter(MemoryCluster())
    made.channels.put("shop", {})
    return made


@pytest.fixture
def store(arbiter, tmp_path):
    def make(host="here", pipeline=ID, path=None):
        (tmp_path / host).mkdir(exist_ok=True)
        owner = Owner(str(pipeline), f"node-{host}", host)
        path = path or tmp_path / host / "p.json"
        return FileCheckpointStore(path, ArbiterNotes(arbiter, pipeline), owner, tmp_path)

    return make


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("point", ["replace", "fsync", "write"])
def test_a_crash_leaves_the_old_checkpoint_whole(store, monkeypatch, point):
    store().store(at(100), 1)
    with monkeypatch.context() as broken:

        def crash(*_, **__):
            raise Crash

        if point == "replace":
            broken.setattr(Path, "replace", crash)
        elif point == "fsync":
            broken.setattr(os, "fsync", crash)
        else:  # half of it is written
            dumps = json.dumps
            broken.setattr(json, "dumps", lambda value: dumps(value)[:30])
            broken.setattr(os, "fsync", crash)
        with pytest.raises(Crash):
            store().store(at(200), 1)
    assert store().load() == at(100)
    store().store(at(200), 1)  # what the crash has left behind is in nobody's way
    assert store().load() == at(200)


def test_it_is_on_disk_before_it_takes_the_position_and_the_position_after(store, monkeypatch):
    done = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor):
        done.append("folder" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "file")
        fsync(descriptor)

    def noted_replace(self, target):
        done.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    store().store(at(100), 1)
    assert done == ["file", "replace", "folder"]


def test_a_node_without_the_file_does_not_begin_again(store):
    store("here").store(at(100), 7)
    with pytest.raises(FatalError) as raised:
        store("there").load()
    text = str(raised.value)
    assert "here/p.json on node node-here (here), since epoch 7" in text
    assert "there/p.json on there" in text
    assert "Copy" in text
    assert "setl position reset shop/p" in text
    with pytest.raises(FatalError, match="since epoch 7"):
        store("there").store(at(200), 8)


def test_a_copied_file_is_as_good(store, tmp_path):
    store("here").store(at(100), 7)
    there = store("there")
    (tmp_path / "there" / "p.json").write_bytes((tmp_path / "here" / "p.json").read_bytes())
    assert there.load() == at(100)
    there.store(at(200), 8)
    # Now the one that was left behind is old.
    with pytest.raises(FatalError, match=r"older, of epoch 7"):
        store("here").load()


def test_a_file_from_before_the_last_leadership_on_the_same_machine_is_taken(store, tmp_path):
    path = tmp_path / "here" / "p.json"
    store().store(at(100), 1)
    backup = path.read_bytes()
    store().store(at(200), 2)
    path.write_bytes(backup)
    assert store().load() == at(100)


def test_without_a_note_the_file_counts(store, arbiter):
    store().store(at(100), 3)
    anew = MemoryArbiter(MemoryCluster())
    anew.channels.put("shop", {})
    here = store()
    here._notes = ArbiterNotes(anew, ID)
    assert here.load() == at(100)


def test_one_note_for_a_leadership_and_one_for_a_generation(store, arbiter):
    here = store()
    for offset in (100, 200, 300):
        here.store(at(offset), 1)
    _, first = arbiter.positions.read(ID)
    here.store(at(400, generation=2), 1)
    value, second = arbiter.positions.read(ID)
    assert (second, value["elsewhere"]["generation"]) == (first + 1, 2)


def test_a_leader_elsewhere_fences_the_first_store(store, tmp_path):
    store("here").store(at(100), 7)
    there = store("there")
    (tmp_path / "there" / "p.json").write_bytes((tmp_path / "here" / "p.json").read_bytes())
    there.store(at(200), 9)
    (tmp_path / "here" / "p.json").unlink()
    late = store("here")
    late._known = True
    with pytest.raises(FencedError, match="epoch 8 is over, epoch 9 is active"):
        late.store(at(300), 8)


def test_what_a_former_leader_stored_late_is_stored(store):
    old, new = store(), store()
    old.store(at(100), 1)
    assert new.load() == at(100)
    old.store(at(300), 1)
    new.store(at(200), 2)
    assert store().load() == at(300)
    with pytest.raises(FencedError):
        old.store(at(400), 1)


def test_the_file_of_another_pipeline(store):
    store().store(at(100), 1)
    other = PipelineId("shop", "q")
    path = store()._path
    with pytest.raises(ConfigurationError, match="keeps the checkpoint of shop/p"):
        store(pipeline=other, path=path).load()
    with pytest.raises(ConfigurationError, match="keeps the checkpoint of shop/p"):
        store(pipeline=other, path=path).store(at(1), 1)
    assert store().load() == at(100)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"checkpoint": {}, "epoch": 1, "pipeline": "x"}'])
def test_a_damaged_file_is_an_error(store, tmp_path, text):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "p.json").write_text(text)
    with pytest.raises(FatalError):
        store().load()
    store().replace(at(5), 4)
    assert store().load() == at(5)


def test_a_folder_that_is_not_there(store, tmp_path):
    here = store(path=tmp_path / "nowhere" / "p.json")
    assert here.load() is None
    with pytest.raises(ConfigurationError, match=r"No such file.*nowhere.*folder must exist"):
        here.store(at(1), 1)


def test_a_process_that_hangs_in_the_middle_holds_nobody_up(store, monkeypatch):
    monkeypatch.setattr(checkpoint_file, "_LOCK_SECONDS", 0.2)
    store().store(at(100), 1)
    with store()._path.with_name("p.json.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TransientError, match="holds the lock"):
            store().store(at(200), 1)
    store().store(at(200), 1)


def test_zookeeper_takes_over_from_a_note(store, arbiter):
    store().store(at(100), 4)
    beside = ArbiterCheckpointStore(arbiter, ID)
    assert beside.load() is None
    with pytest.raises(FencedError, match="epoch 3 is over, epoch 4 is active"):
        beside.store(at(200), 3)
    beside.store(at(200), 5)
    assert ArbiterCheckpointStore(arbiter, ID).load() == at(200)


def test_a_file_outside_the_folder_is_neither_read_nor_written(store, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "way-out").symlink_to(outside)
    paths = ("/proc/self/environ", outside / "p.json", tmp_path / "way-out" / "p.json",
             tmp_path / ".." / outside.name / "p.json")  # fmt: skip
    for path in paths:
        for act in (FileCheckpointStore.load, lambda stored: stored.replace(at(1), 1)):
            with pytest.raises(ConfigurationError, match="must be below") as refused:
                act(store(path=path))
            assert "SETL_CHECKPOINT_FOLDER" in refused.value.hint
    assert not list(outside.iterdir())


def test_a_link_is_not_followed(store, tmp_path):
    store().store(at(1), 1)
    stored = (tmp_path / "here" / "p.json").read_text()
    other = tmp_path / "of-somebody-else"
    for name in ("p.json", "p.json.new", "p.json.lock"):
        other.write_text("as it was")
        position = tmp_path / "here" / name
        position.unlink(missing_ok=True)
        position.symlink_to(other)
        with pytest.raises(ConfigurationError):
            store().store(at(2), 1)
        assert other.read_text() == "as it was"
        position.unlink()
        (tmp_path / "here" / "p.json").write_text(stored)
    store().store(at(2), 1)


def test_nobody_else_may_read_it(store, tmp_path):
    for name in ("p.json.new", "p.json.lock"):
        (tmp_path / "here").mkdir(exist_ok=True)
        (tmp_path / "here" / name).touch(mode=0o666)
    before = os.umask(0)
    try:
        store().store(at(1), 1)
    finally:
        os.umask(before)
    modes = {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "here").iterdir()}
    assert modes == {"p.json": 0o600, "p.json.lock": 0o600}


@pytest.mark.parametrize("content", [b"MARKER", b"MARKER\xff", b'{"MARKER": 1}', b'["MARKER"]'])
def test_an_error_says_nothing_of_what_a_file_holds(store, tmp_path, content):
    store()
    (tmp_path / "here" / "p.json").write_bytes(content)
    with pytest.raises(FatalError, match="not a stored checkpoint: ") as refused:
        store().load()
    assert "MARKER" not in str(refused.value)


def test_the_folder_is_the_setting_or_what_systemd_gave():
    assert checkpoint_folder({}) == Path("/var/lib/setl")
    assert checkpoint_folder({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}) == Path("/var/lib/a")
    both = {"STATE_DIRECTORY": "/var/lib/a", "SETL_CHECKPOINT_FOLDER": "/srv"}
    assert checkpoint_folder(both) == Path("/srv")
