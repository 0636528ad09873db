"""Channel files that several people store in one ZooKeeper at once, by the command."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from arbiter.zookeeper import ZooKeeperArbiter
from setl.cli.main import run
from setl.operate.applying import revision_of
from tests.unit.cli.cluster_in_memory import definition

pytestmark = pytest.mark.servers


@pytest.fixture
def root():
    return f"/applying-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def apply(zookeeper, root, tmp_path):
    """Applies a file that differs from others in its window; gives the exit status."""
    where = ("--zookeeper", zookeeper.hosts, "--root", root)

    def apply(window, base):
        file = tmp_path / f"{window}.yaml"
        file.write_text(json.dumps(definition(window=window)))
        return run(["apply", str(file), "--base", base, *where])

    return apply


@pytest.fixture
def saved(zookeeper, root):
    """What is stored, read in a session of its own."""
    arbiter = ZooKeeperArbiter(zookeeper.hosts, root=root)
    arbiter.start()
    yield lambda: arbiter.channels.one("shop")
    arbiter.close()


def test_of_many_who_changed_the_same_file_one_stores_his(apply, saved, capsys):
    assert apply(1, "none") == 0
    base = revision_of(saved())
    with ThreadPoolExecutor(4) as people:
        statuses = list(people.map(lambda window: apply(window, base), (2, 3, 4, 5)))
    assert sorted(statuses) == [0, 1, 1, 1]
    stored = saved()
    assert stored.revision == 1
    assert stored.definition == definition(window=2 + statuses.index(0))
    refused = f"revision {revision_of(stored)}, and the new one was made from revision {base}"
    assert capsys.readouterr().err.count(refused) == 3
    assert apply(6, base) == 1
    assert apply(6, revision_of(stored)) == 0


def test_of_many_who_make_the_same_channel_one_does(apply, saved, capsys):
    with ThreadPoolExecutor(4) as people:
        statuses = list(people.map(lambda window: apply(window, "none"), (2, 3, 4, 5)))
    assert sorted(statuses) == [0, 1, 1, 1]
    assert saved().definition == definition(window=2 + statuses.index(0))
    assert saved().revision == 0
    assert capsys.readouterr().err.count("there is a channel shop already, of revision") == 3
