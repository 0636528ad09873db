"""What a MySQL target promises that keeps the checkpoint."""

import json
import time
from contextlib import closing
from dataclasses import replace

import pymysql
import pytest

from arbiter.values import PipelineId
from setl.errors import (
    ConfigurationError,
    FatalError,
    FencedError,
    TargetWentBackError,
    TransientError,
)
from setl.select.checkpoints.arbiter import ArbiterNotes
from setl.select.checkpoints.note import CheckpointNote
from setl.systems.mysql.stored import checkpoints
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.contract.checkpoint_backends import ONE, THREE, TWO, MysqlBackend, install, mysql_store
from tests.waiting import eventually


@pytest.fixture
def mysql(site_b):
    made = MysqlBackend(site_b)
    yield made
    made.close()


def kill_connection(store, server):
    """End a store's connection; the server does so a moment after it was told to."""
    number = store._connection.thread_id()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"KILL {number}")

        def gone():
            cursor.execute(f"SELECT 1 FROM information_schema.processlist WHERE id = {number}")
            return not cursor.fetchall()

        eventually(gone, 20)


def test_mysql_a_dropped_connection_is_opened_again(mysql):
    store = mysql.store()
    store.store(ONE, 1)
    kill_connection(store, mysql.server)
    store.store(TWO, 1)
    kill_connection(store, mysql.server)
    assert store.load() == TWO


def test_mysql_the_fence_must_have_been_raised(mysql):
    never = mysql.store("shop/never")
    with pytest.raises(TargetWentBackError, match="was not raised"):
        never.store(ONE, 1)
    with pytest.raises(TargetWentBackError, match="was not raised"):
        mysql.store().store(ONE, 2)
    assert mysql.store().load() is None


def test_mysql_a_target_that_was_set_back_is_not_passed_over(mysql):
    """A backup of this very leadership has its epoch, and a checkpoint further back."""
    store = mysql.store()
    store.store(ONE, 1)
    admin = mysql.server.connect(autocommit=True)
    with closing(admin), admin.cursor() as cursor:
        where = "WHERE pipeline = %s"
        cursor.execute(f"SELECT checkpoint FROM retl.setl_checkpoint {where}", (mysql.key,))
        ((backup,),) = cursor.fetchall()
        store.store(TWO, 1)
        cursor.execute(
            f"UPDATE retl.setl_checkpoint SET checkpoint = %s {where}", (backup, mysql.key)
        )
        with pytest.raises(TargetWentBackError, match="has lost the checkpoint"):
            store.store(THREE, 1)
        assert store.load() == ONE
        cursor.execute(f"DELETE FROM retl.setl_checkpoint {where}", (mysql.key,))
        with pytest.raises(TargetWentBackError, match="it holds none"):
            store.store(THREE, 1)
    with pytest.raises(FatalError, match="has none: it was set back") as lost:
        mysql.store().load()
    assert "stored in the target" in lost.value.message
    assert "since epoch 1" in lost.value.message
    assert "setl position reset" in lost.value.hint


def test_mysql_a_target_that_never_had_a_checkpoint_is_no_loss(mysql):
    assert mysql.store().load() is None
    # A note about another store says nothing of this one.
    ident = PipelineId(*mysql.key.split("/"))
    note = CheckpointNote(1, "file", "/var/lib/x", "n1", "host")
    ArbiterNotes(mysql.arbiter, ident).keep(ONE, note)
    assert mysql.store().load() is None


def test_mysql_a_note_is_written_once_for_a_leadership_and_a_generation(mysql):
    ident = PipelineId(*mysql.key.split("/"))
    store, written = mysql.store(), []
    store.load()
    keep = mysql.arbiter.positions.store
    mysql.arbiter.positions.store = lambda *a: written.append(a) or keep(*a)
    for checkpoint in (ONE, TWO, THREE):
        store.store(checkpoint, 1)
    assert len(written) == 1
    mysql.lead(2)
    store.store(replace(THREE, generation=2), 2)
    assert len(written) == 2
    note = ArbiterNotes(mysql.arbiter, ident).read()
    assert note is not None
    assert (note.store, note.epoch, note.generation) == ("target", 2, 2)


def test_mysql_a_new_leader_waits_for_a_store_under_way_and_then_it_is_over(mysql):
    """The fence row is locked in share mode while a checkpoint is written."""
    blocker = mysql.server.connect(autocommit=False)
    try:
        with blocker.cursor() as cursor:
            cursor.execute("UPDATE retl.setl_fence SET epoch = 2 WHERE pipeline = %s", (mysql.key,))
        store = mysql_store(mysql.server, mysql.key, mysql.arbiter, timeout=1.0)
        began = time.monotonic()
        with pytest.raises(TransientError, match="1205"):
            store.store(ONE, 1)
        assert time.monotonic() - began < 20  # a server waits for 50 s by itself
        blocker.commit()
        with pytest.raises(FencedError):
            store.store(ONE, 1)
        store.close()
    finally:
        blocker.close()


def test_mysql_the_next_checkpoint_of_a_leadership_asks_nothing_first(mysql, monkeypatch):
    store = mysql.store()
    store.store(ONE, 1)

    def asked(*_):
        raise AssertionError("what is stored was read")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_fenced", asked)
        store.store(TWO, 1)
        store.store(THREE, 1)
    assert mysql.store().load() == THREE
    with mysql.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT epoch FROM retl.setl_checkpoint WHERE pipeline = %s", (mysql.key,))
        assert cursor.fetchall() == ((1,),)


def test_mysql_the_next_checkpoint_waits_for_a_new_leader_and_is_refused(mysql):
    """It locks the fence's row, too: none is stored while, or after, somebody raises the epoch."""
    store = mysql_store(mysql.server, mysql.key, mysql.arbiter, timeout=1.0)
    store.store(ONE, 1)
    leader = mysql.server.connect(autocommit=False)
    try:
        with leader.cursor() as cursor:
            cursor.execute("UPDATE retl.setl_fence SET epoch = 2 WHERE pipeline = %s", (mysql.key,))
        with pytest.raises(TransientError, match="1205"):
            store.store(TWO, 1)
        leader.commit()
        with pytest.raises(FencedError):
            store.store(TWO, 1)
        assert mysql.store().load() == ONE
    finally:
        leader.close()
        store.close()


def test_mysql_a_new_leader_waits_until_the_next_checkpoint_is_committed(mysql):
    """What the one step locks of the fence, it locks until its commit."""
    store = mysql.store()
    store.store(ONE, 1)
    statement, commit = checkpoints._NEXT.split(";")
    assert commit.strip() == "COMMIT"
    key, text = mysql.key, json.dumps(ONE.to_json())
    writer, leader = mysql.server.connect(autocommit=False), mysql.server.connect()
    try:
        with writer.cursor() as cursor, leader.cursor() as raising:
            assert cursor.execute(statement, ("{}", key, 1, text, key, 1)) == 1
            raising.execute("SET innodb_lock_wait_timeout = 1")
            with pytest.raises(pymysql.err.OperationalError, match="1205"):
                raising.execute("UPDATE retl.setl_fence SET epoch = 2 WHERE pipeline = %s", (key,))
            writer.rollback()
            raising.execute("UPDATE retl.setl_fence SET epoch = 2 WHERE pipeline = %s", (key,))
    finally:
        writer.close()
        leader.close()


def test_mysql_what_is_no_checkpoint_is_said_to_be_none(mysql):
    with mysql.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retl.setl_checkpoint (pipeline, epoch, checkpoint) VALUES (%s, 1, %s)",
            (mysql.key, "[1]"),
        )
    with pytest.raises(FatalError, match="not a stored checkpoint"):
        mysql.store().load()


def test_mysql_a_note_that_cannot_be_read_is_replaced(mysql):
    mysql.store().store(TWO, 1)
    ident = PipelineId(*mysql.key.split("/"))
    path, znodes = f"/setl/channels/{mysql.key}/position", mysql.arbiter._znodes
    znodes.write(path, b"rubbish", znodes.read(path).version)
    with pytest.raises(FatalError, match="reset it"):
        mysql.store().store(THREE, 1)
    mysql.store().replace(ONE, 1)
    assert mysql.store().load() == ONE
    note = ArbiterNotes(mysql.arbiter, ident).read()
    assert note is not None
    assert note.store == "target"


def test_mysql_a_missing_table_is_a_matter_of_configuration(another_server, tmp_path):
    with another_server(tmp_path, "bare", 1) as server:
        arbiter = MemoryArbiter(MemoryCluster())
        arbiter.channels.put("shop", {})
        store = mysql_store(server, "shop/x", arbiter, timeout=8.0)
        with pytest.raises(ConfigurationError, match="retl"):
            store.load()
        install(server)
        assert store.load() is None
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(TransientError):
                store.load()
            assert time.monotonic() - began < 30
        finally:
            server.resume()
        assert store.load() is None
        server.kill()
        with pytest.raises(TransientError) as raised:
            store.load()
        assert server.password not in str(raised.value)
        store.close()
