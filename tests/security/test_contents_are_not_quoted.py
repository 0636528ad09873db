"""What setl reads and cannot use is described, never quoted: not to operators and the log either.

A file, a stored position or a commit may hold anything: `checkpoint_file` may be mistyped, and a
group's commit be another client's.
"""

import json

import pytest

from arbiter.values import PipelineId
from setl.errors import SetlError
from setl.model.checkpoint import Checkpoint
from setl.model.position import position_from_json
from setl.operate.cutover.steps import CutOver
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore, ArbiterNotes
from setl.select.checkpoints.file import FileCheckpointStore
from setl.select.checkpoints.note import read_note
from setl.select.checkpoints.owner import Owner
from setl.systems.kafka.commit import read_commit
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.security.marked_errors import MARKER

SHOP = PipelineId("shop", "p")
CONTENTS = (
    MARKER, f"DB_PASSWORD={MARKER}\0PATH=/bin", json.dumps({"checkpoint": MARKER, MARKER: 1}),
    json.dumps([MARKER]),
)  # fmt: skip
VALUES = ({"x": MARKER}, {"checkpoint": {"position": MARKER}, "epoch": MARKER}, {MARKER: {}})


@pytest.fixture
def arbiter():
    made = MemoryArbiter(MemoryCluster())
    made.channels.put("shop", {})
    return made


@pytest.mark.parametrize("content", CONTENTS)
def test_of_a_file(arbiter, tmp_path, content):
    file = tmp_path / "p.json"
    file.write_text(content)
    owner = Owner(str(SHOP), "n", "h")
    store = FileCheckpointStore(file, ArbiterNotes(arbiter, SHOP), owner, tmp_path)
    with pytest.raises(SetlError, match="not a stored checkpoint: ") as refused:
        store.load()
    assert MARKER not in str(refused.value)


@pytest.mark.parametrize("content", CONTENTS)
def test_of_a_commit(content):
    with pytest.raises(SetlError, match="not a stored") as refused:
        read_commit("t", 0, 1, f"1700000000|{json.dumps({'setl': content})}")
    assert MARKER not in str(refused.value)


@pytest.mark.parametrize("value", VALUES)
def test_of_what_zookeeper_stores(arbiter, value):
    arbiter.positions.store(SHOP, value, None)
    reads = (
        ArbiterCheckpointStore(arbiter, SHOP).load,
        lambda: Checkpoint.from_json(value),
        lambda: position_from_json(value),
        lambda: CutOver.from_json(value),
        lambda: read_note({**value, "elsewhere": {"store": "file", "place": MARKER}}),
    )
    for read in reads:
        with pytest.raises(SetlError, match="not a ") as refused:
            read()
        assert MARKER not in str(refused.value)
