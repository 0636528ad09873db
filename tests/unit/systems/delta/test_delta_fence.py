"""No leader writes once a newer one has its epoch in the logs (I2); leaders race here for real."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Route
from setl.errors import ConfigurationError, FencedError, TargetReplacedError, TransientError
from setl.load.creation import Description, NewTable
from setl.model.change import TargetChanges
from setl.model.leadership import Leadership
from setl.model.schema import Column, Kind, RowSchema
from setl.run.checkpoints.compared_fence import ComparedFence
from setl.run.checkpoints.stores import fence_for_run
from setl.systems.delta import sink as sink_module
from setl.systems.delta.creation import DeltaCreation
from setl.systems.delta.fence import DeltaFence, names_in
from setl.systems.delta.location import Location
from setl.systems.delta.sink import DeltaSinkSettings
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.delta_tables import create_table, rows_of
from tests.loading import ticket_for

COLUMNS = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT))
TABLE = ("shop", "item")


class Site:
    """A folder with a table, and leaders of one pipeline."""

    def __init__(self, folder):
        self.location = Location(str(folder))
        self.folder = self.location.of_table(TABLE)
        create_table(self.folder, COLUMNS)
        self.fence = DeltaFence(self.location, "shop/lake")

    def lead(self, epoch):
        self.fence.raise_to(epoch, f"n{epoch}")
        return Leader(self, epoch)

    def version(self):
        return DeltaTable(self.folder.uri).version()

    def rows(self):
        return rows_of(self.folder, COLUMNS)


class Leader:
    def __init__(self, site, epoch):
        self.ticket = ticket_for("lake", epoch=epoch, nid=f"n{epoch}")
        self.sink = DeltaSinkSettings(site.location).make_sink()

    def write(self, *rows, deletes=(), table=TABLE):
        changes = TargetChanges(
            table, COLUMNS, (0,), list(rows), list(deletes), [1] * len(rows), [1] * len(deletes)
        )
        return self.sink.apply(self.ticket, [changes])


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def at_commit(monkeypatch):
    """Calls a function when a sink is about to commit, once."""

    def arrange(act):
        pending = [act]

        def reached(point):
            if point == "task.before_commit" and pending:
                pending.pop()()

        monkeypatch.setattr(sink_module.failpoints, "reached", reached)

    return arrange


def test_a_former_leader_is_refused(site):
    old = site.lead(1)
    old.write((1, "old"))
    new = site.lead(2)
    version = site.version()
    with pytest.raises(FencedError, match="epoch 2"):
        old.write((2, "late"))
    with pytest.raises(FencedError):
        old.write(deletes=[(1,)])
    assert site.version() == version
    new.write((3, "new"))
    assert site.rows() == {(1, "old"), (3, "new")}
    with pytest.raises(FencedError):
        site.fence.raise_to(1, "n1")


def test_a_former_leader_is_refused_in_tables_that_the_new_one_has_not_written_to(site):
    old = site.lead(1)
    old.write((1, "old"))
    site.lead(2)
    with pytest.raises(FencedError):
        old.write((1, "late"))
    assert site.rows() == {(1, "old")}


@pytest.mark.parametrize("known", [True, False], ids=["known", "first"])
def test_a_leader_that_freezes_before_its_commit_is_refused_when_it_thaws(site, at_commit, known):
    old = site.lead(1)
    if known:
        old.write((1, "old"))
    at_commit(lambda: site.lead(2))
    with pytest.raises(FencedError):
        old.write((1, "late"), (2, "late"))
    assert site.rows() == ({(1, "old")} if known else set())


def test_a_leader_that_freezes_while_the_new_one_writes_is_refused(site, at_commit):
    old = site.lead(1)
    old.write((1, "a"), (2, "a"))
    at_commit(lambda: site.lead(2).write((1, "new"), deletes=[(2,)]))
    with pytest.raises(FencedError):
        old.write((1, "late"), (2, "late"), (3, "late"))
    assert site.rows() == {(1, "new")}


def test_a_leader_that_freezes_before_a_table_is_noted_is_refused(site, monkeypatch):
    old = site.lead(1)
    admit = sink_module.admit

    def frozen(*args):
        site.lead(2)
        admit(*args)

    monkeypatch.setattr(sink_module, "admit", frozen)
    with pytest.raises(FencedError):
        old.write((1, "late"))
    assert site.rows() == set()
    assert not names_in(site.location.of_pipeline("shop/lake"))


def test_a_table_that_was_made_again_takes_no_rows_of_a_former_leader(site):
    old = site.lead(1)
    old.write((1, "old"))
    shutil.rmtree(site.folder.uri)
    site.lead(2)
    create_table(site.folder, COLUMNS)
    with pytest.raises(FencedError):
        old.write((1, "late"))
    assert site.rows() == set()


def test_who_makes_a_table_is_not_its_writer_yet(site):
    """The table is made, and its maker freezes before anybody knows of it."""
    old = site.lead(1)
    route = Route(0, ("shop", "made"), create=True)
    table = NewTable(("shop", "made"), route)
    described = Description(RowSchema("shop", "made", COLUMNS, (0,)))
    creation = DeltaCreation(site.location)
    assert len(creation.create(old.ticket, [table], lambda _: described)) == 1
    assert creation.create(old.ticket, [table], lambda _: described) == []
    new = site.lead(2)
    with pytest.raises(FencedError):
        old.write((1, "late"), table=("shop", "made"))
    new.write((2, "new"), table=("shop", "made"))
    folder = site.location.of_table(("shop", "made"))
    assert rows_of(folder, COLUMNS) == {(2, "new")}
    shutil.rmtree(folder.uri)
    with pytest.raises(TargetReplacedError, match="gone from the target"):
        creation.create(new.ticket, [table], lambda _: described)
    assert creation.create(new.ticket, [replace(table, loaded=True)], lambda _: described)


def test_leaders_that_race_leave_what_the_last_one_wrote(site):
    """Each writes as fast as it can until it is refused; the next one begins meanwhile."""
    refused, began = {}, {}

    def run(epoch):
        leader = began[epoch]
        for number in range(10_000):
            try:
                leader.write((1, f"{epoch}.{number}"), (100 + epoch, "x"))
            except FencedError:
                refused[epoch] = number
                return
            except TransientError:
                continue

    threads = []
    for epoch in range(1, 5):
        began[epoch] = site.lead(epoch)
        # Nobody before this one has written anything that it did not see.
        thread = threading.Thread(target=run, args=(epoch,))
        thread.start()
        threads.append(thread)
        if epoch > 1:
            threads[epoch - 2].join(30)
            assert epoch - 1 in refused
    last = site.lead(9)
    threads[-1].join(30)
    last.write((1, "9"))
    assert set(refused) == {1, 2, 3, 4}
    epochs = [e["setl"]["epoch"] for e in entries(site.folder) if "setl" in e]
    assert epochs == sorted(epochs)
    assert (1, "9") in site.rows()


def entries(folder):
    """What each commit says of itself, in order."""
    table = DeltaTable(folder.uri)
    found = [entry.get("setl") for entry in reversed(table.history())]
    return [{"setl": json.loads(x) if isinstance(x, str) else x} for x in found if x]


def test_another_writer_is_waited_for(site, at_commit):
    leader = site.lead(1)
    leader.write((1, "a"), (2, "a"))
    at_commit(lambda: DeltaTable(site.folder.uri).delete("id = 2"))
    leader.write((1, "b"))
    assert site.rows() == {(1, "b")}


def test_another_writer_that_never_ends_is_an_error_that_passes(site, monkeypatch):
    leader = site.lead(1)
    monkeypatch.setattr(leader.sink, "_sleep", lambda _: None)

    def always(point):
        if point == "task.before_commit":
            table = DeltaTable(site.folder.uri)
            table.create_write_transaction(
                [], "append", table.schema(), commit_properties=CommitProperties()
            )

    monkeypatch.setattr(sink_module.failpoints, "reached", always)
    with pytest.raises(TransientError, match="others commit"):
        leader.write((1, "a"))
    assert site.rows() == set()


def test_the_epoch_outlives_the_log_it_was_written_to(site):
    """Entries of a log are gone some day, and what counts of them is in its checkpoint."""
    old = site.lead(1)
    old.write((1, "a"))
    site.lead(2)
    table = DeltaTable(site.folder.uri)
    table.create_checkpoint()
    for file in Path(site.folder.uri, "_delta_log").glob("*.json"):
        file.unlink()
    with pytest.raises(FencedError):
        old.write((1, "late"))


def test_what_it_stores_is_told(site):
    assert site.fence.stored().fence is None
    site.lead(7)
    stored = site.fence.stored()
    assert (stored.fence, stored.fenced_by) == (7, "n7")
    site.fence.raise_to(7, "n7")  # again


def test_pipelines_do_not_fence_each_other(site):
    first = site.lead(5)
    first.write((1, "a"))
    DeltaFence(site.location, "shop/other").raise_to(3, "n3")
    second = Leader(site, 3)
    second.ticket = replace(
        second.ticket, leadership=second.ticket.leadership._replace(pipeline="other")
    )
    second.write((2, "b"))
    first.write((3, "c"))
    assert site.rows() == {(1, "a"), (2, "b"), (3, "c")}


def test_a_table_that_is_not_there_is_an_error(site):
    leader = site.lead(1)
    with pytest.raises(ConfigurationError, match="no Delta table"):
        leader.write((1, "a"), table=("shop", "none"))
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        leader.write((1, "a"), table=("..", "none"))


KILLED = """
import sys
from tests.unit.systems.delta.test_delta_fence import Leader
from setl.systems.delta.location import Location
class Site: location = Location(sys.argv[1])
Leader(Site, 1).write((1, "a"), (2, "a"), deletes=[(3,)])
"""


@pytest.mark.parametrize(
    ("point", "there"), [("task.before_commit", False), ("task.after_commit", True)]
)
def test_a_process_that_is_killed_around_a_commit_leaves_all_of_it_or_nothing(
    site, tmp_path, point, there
):
    before = site.lead(1)
    before.write((2, "old"), (3, "old"))
    points = tmp_path / "points"
    points.mkdir()
    (points / point).write_text("kill")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, site.location.root],
        env={**os.environ, "SETL_FAILPOINTS": str(points)}, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    loaded, old = {(1, "a"), (2, "a")}, {(2, "old"), (3, "old")}
    assert site.rows() == (loaded if there else old)
    site.lead(2).write((1, "a"), (2, "a"), deletes=[(3,)])  # which comes again, whatever it left
    assert site.rows() == loaded


@pytest.mark.parametrize("value", ["1", "True", "on", "YES", "y"])
def test_storage_without_the_condition_on_commits_is_refused(monkeypatch, value):
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", value)
    with pytest.raises(ConfigurationError, match="two leaders could write one version"):
        Location("s3://lake/tables").of_table(TABLE).open()


def test_a_missing_package_is_named(site, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("setl.systems.delta.location.import_module", missing)
    with pytest.raises(ConfigurationError) as refused:
        site.lead(1)
    assert "pip install 'setl[delta]'" in refused.value.hint


def test_it_is_compared_with_the_checkpoint_that_does_not_go_back_with_it():
    """The fence lies beside the rows, the checkpoint in ZooKeeper."""
    arbiter = MemoryArbiter(MemoryCluster())
    arbiter.channels.put("shop", {"pipelines": [{"name": "p"}]})
    pipeline = {
        "name": "p",
        "source": {"type": "mysql", "host": "db", "user": "u"},
        "target": {"type": "delta", "path": "/lake"},
        "tables": [{"from": "s.t"}],
    }
    (config,) = parse_channel({"channel": "shop", "pipelines": [pipeline]}).pipelines
    fence = fence_for_run(config, Leadership("shop", "p", "n", 5), arbiter)
    assert isinstance(fence, ComparedFence)
