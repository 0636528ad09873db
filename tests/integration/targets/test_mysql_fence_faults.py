"""Taking a MySQL target over while everything around it fails: holders, raisers and the target."""

import os
import threading
import time
from contextlib import closing
from dataclasses import replace

import pymysql
import pytest
from pymysql.constants import COMMAND

from arbiter.values import PipelineId
from setl.errors import ConfigurationError, FencedError, TransientError
from setl.model.leadership import Leadership
from setl.select.checkpoints.arbiter import ArbiterNotes
from setl.select.checkpoints.owner import Owner
from setl.systems.mysql.load.fence import MysqlFence
from setl.systems.mysql.stored import writers
from setl.systems.mysql.stored.checkpoints import MysqlCheckpointStore
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.integration.targets.test_mysql_fence import ALIVE, Site, in_background
from tests.loading import endpoint_of, execute, rows_of
from tests.waiting import eventually

ATTEMPTS = 3  # of setl.systems.mysql.load.fence


@pytest.fixture
def site(site_b):
    return Site(site_b)


def lock_fence(site):
    """A transaction that holds the fence's row, of a connection that nobody has recorded."""
    connection = site.server.connect(autocommit=False)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT epoch FROM retl.setl_fence WHERE pipeline = %s LOCK IN SHARE MODE", (site.key,)
        )
    return connection


def give_up(connection):
    """Close the client's side and nothing else, as a network does that is cut."""
    # The file descriptor stays open in `keep`, so the server sees no end of the stream. A
    # socket with TLS cannot be copied in any other way.
    keep = os.dup(connection._sock.fileno())
    connection._force_close()
    return open(keep, "rb")  # noqa: PTH123


# -- whoever holds the fence -------------------------------------------------------------------


def test_a_frozen_holder_is_ended_within_the_time_that_was_set(site):
    site.fence().raise_to(1, "n1")
    frozen = site.open_transaction(1, 10)
    began = time.monotonic()
    site.fence(2).raise_to(2, "n2")
    took = time.monotonic() - began
    # One lock wait of 2 s, then the kill; the rest is for a busy machine.
    assert 1.5 < took < 2 + 2 + 6
    assert site.epoch() == (2, "n2")
    assert site.rows() == []
    frozen.drop()


def test_a_holder_that_nobody_recorded_is_waited_for_so_long_and_named(site):
    site.fence().raise_to(1, "n1")
    with closing(lock_fence(site)) as unknown:
        began = time.monotonic()
        with pytest.raises(TransientError, match="stale transactions hold the fence") as caught:
            site.fence(1).raise_to(2, "n2")
        took = time.monotonic() - began
        assert ATTEMPTS * 0.9 < took < ATTEMPTS + 10
        assert "information_schema.innodb_trx" in caught.value.hint
        assert "KILL" in caught.value.hint
        assert caught.value.where["pipeline"] == site.key
        assert caught.value.where["server"] == str(site.endpoint)
        # Nothing was raised, and what the hint says helps.
        assert site.epoch() == (1, "n1")
        held_by = writers.connection_id(unknown)
        open_now = rows_of(
            site.server, "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx"
        )
        assert (held_by,) in open_now
        execute(site.server, f"KILL {held_by}")
        site.fence(5).raise_to(2, "n2")
        assert site.epoch() == (2, "n2")


def test_an_earlier_attempt_of_the_same_leadership_is_ended_too(site):
    # The load had no answer, and the network has lost the end of its connection: the server
    # would keep the transaction open for as long as it pleases.
    site.fence().raise_to(1, "n1")
    lost = site.open_transaction(1, 10)
    site.fence(1).raise_to(1, "n1")
    assert site.rows() == []
    sink = site.sink()
    sink.apply(site.ticket(1), site.changes(10, 11))
    assert site.rows() == [10, 11]
    sink.close()
    lost.drop()


def test_taking_over_again_under_the_same_epoch_waits_for_what_is_open(site):
    site.fence().raise_to(1, "n1")
    slow = site.open_transaction(1, 10)
    with in_background(site.fence(30).raise_to, 1, "n1") as raised:
        site.wait_for_waiting()
        assert raised == []
        slow.open().commit()
    assert raised == [None]
    assert site.rows() == [10]
    slow.drop()


def test_a_checkpoint_store_whose_connection_was_ended_opens_another(site):
    site.fence().raise_to(1, "n1")
    arbiter = MemoryArbiter(MemoryCluster())
    notes = ArbiterNotes(arbiter, PipelineId(*site.key.split("/")))
    store = MysqlCheckpointStore(site.endpoint, Owner(site.key, "n1", "host"), notes)
    with closing(store):
        assert store.load() is None
        connection = store._connection
        assert connection is not None
        writers.register(connection, Owner(site.key, "n1", "host").under(1))
        frozen = site.open_transaction(1, 10)
        site.fence(1).raise_to(1, "n1")
        own = rows_of(site.server, "SELECT conn_id FROM retl.setl_writer WHERE epoch = 1 AND "
                      "pipeline = %s", site.key)  # fmt: skip
        eventually(lambda: all(rows_of(site.server, ALIVE, i) == [] for (i,) in own))
        assert store.load() is None
        frozen.drop()


# -- whoever raises it -------------------------------------------------------------------------


def test_two_that_raise_at_once_over_a_frozen_holder(site):
    site.fence().raise_to(1, "n1")
    frozen = site.open_transaction(1, 10)
    with (
        # Long enough for the one to wait while the other is held up between two statements.
        in_background(site.fence(4).raise_to, 3, "n3") as third,
        in_background(site.fence(4).raise_to, 2, "n2") as second,
    ):
        pass
    assert third == [None]
    assert second[0] is None or isinstance(second[0], FencedError)
    assert site.epoch() == (3, "n3")
    assert site.rows() == []
    sink = site.sink()
    with pytest.raises(FencedError):
        sink.apply(site.ticket(2), site.changes(20))
    sink.apply(site.ticket(3), site.changes(30))
    assert site.rows() == [30]
    sink.close()
    frozen.drop()


def test_an_epoch_that_another_node_has_is_nobody_elses(site):
    # Only after ZooKeeper was set up again may two leaderships have the same number.
    site.fence().raise_to(7, "n1")
    with pytest.raises(FencedError, match="the target is at epoch 7 by node n1") as caught:
        site.fence().raise_to(7, "n2")
    assert "`setl epoch` shows and raises" in caught.value.hint
    with pytest.raises(FencedError, match=r"at epoch 7 \(pipeline") as caught:
        site.fence().raise_to(6, "n2")
    assert "`setl epoch` shows and raises" in caught.value.hint
    assert site.epoch() == (7, "n1")


def test_a_raiser_that_dies_before_its_update_is_committed_leaves_nothing(site):
    site.fence().raise_to(1, "n1")
    with closing(site.server.connect(autocommit=False)) as dying, dying.cursor() as cursor:
        cursor.execute(
            "UPDATE retl.setl_fence SET epoch = 2, nid = 'n2' WHERE pipeline = %s", (site.key,)
        )
        # While it is dying, nobody passes, and the old leader is the leader.
        with pytest.raises(TransientError, match="stale transactions hold the fence"):
            site.fence(1).raise_to(3, "n3")
        assert site.epoch() == (1, "n1")
        dying._force_close()
    site.fence(30).raise_to(3, "n3")
    assert site.epoch() == (3, "n3")


@pytest.mark.parametrize("successor", [2, 4])
def test_a_raiser_that_dies_while_it_waits_may_still_raise_but_lowers_nothing(site, successor):
    site.fence().raise_to(1, "n1")
    holder = site.open_transaction(1, 10)
    dead = site.server.connect()
    with dead.cursor() as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 60")
    statement = (
        "UPDATE retl.setl_fence SET epoch = 3, nid = 'n3' "
        f"WHERE pipeline = '{site.key}' AND epoch < 3"
    )
    dead._execute_command(COMMAND.COM_QUERY, statement)
    site.wait_for_waiting(1)
    keep = give_up(dead)
    with in_background(site.fence(30).raise_to, successor, "n9") as raised:
        site.wait_for_waiting(2)
        holder.open().commit()
    assert site.rows() == [10]
    # The server has carried the dead one's statement out first.
    if successor == 4:
        assert raised == [None]
        assert site.epoch() == (4, "n9")
    else:
        assert isinstance(raised[0], FencedError)
        assert site.epoch() == (3, "n3")
    keep.close()
    holder.drop()


# -- the target itself -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_server(another_server, tmp_path_factory):
    with another_server(tmp_path_factory.mktemp("target"), "target", server_id=191) as server:
        yield server


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_target_that_restarts_while_a_stale_transaction_is_open(own_server, end):
    site = Site(own_server)
    site.fence().raise_to(1, "n1")
    frozen = site.open_transaction(1, 10)
    getattr(own_server, end)()
    own_server.start()
    # Nobody holds the fence any more, so nothing is waited for and nobody is killed.
    began = time.monotonic()
    site.fence(30).raise_to(2, "n2")
    assert time.monotonic() - began < 20
    with pytest.raises(pymysql.MySQLError):
        frozen.open().commit()
    assert site.rows() == []
    assert site.recorded() == []
    frozen.drop()


def test_a_target_that_restarts_while_somebody_waits_for_the_fence(own_server):
    site = Site(own_server)
    site.fence().raise_to(1, "n1")
    frozen = site.open_transaction(1, 10)
    with in_background(site.fence(60).raise_to, 2, "n2") as raised:
        site.wait_for_waiting()
        own_server.kill()
    assert isinstance(raised[0], TransientError)
    own_server.start()
    # It is not known here whether it was raised; asking again tells.
    site.fence().raise_to(2, "n2")
    assert site.epoch() == (2, "n2")
    assert site.rows() == []
    sink = site.sink()
    with pytest.raises(FencedError):
        sink.apply(site.ticket(1), site.changes(1))
    sink.apply(site.ticket(2), site.changes(2))
    assert site.rows() == [2]
    sink.close()
    frozen.drop()


def test_a_target_that_restarts_between_raise_and_first_load(own_server):
    execute(own_server, "DROP DATABASE IF EXISTS retl")
    with pytest.raises(ConfigurationError, match=r"1146|1049"):
        MysqlFence(endpoint_of(own_server), "shop/p", 1.0).raise_to(1, "n1")
    site = Site(own_server)
    site.fence().raise_to(1, "n1")
    stale, sink = site.sink(), site.sink()
    stale.apply(site.ticket(1), site.changes(1))
    own_server.kill()
    with pytest.raises(TransientError):
        site.fence().raise_to(2, "n2")
    with pytest.raises(TransientError):
        stale.apply(site.ticket(1), site.changes(9))
    own_server.start()
    # The old leader comes back first: it is still the leader, as far as the target knows.
    stale.apply(site.ticket(1), site.changes(1))
    site.fence().raise_to(2, "n2")
    own_server.kill()
    own_server.start()
    assert site.epoch() == (2, "n2")
    # The old leader's sink reconnects automatically and is refused all the same.
    with pytest.raises(FencedError, match="epoch 1 is over"):
        stale.apply(site.ticket(1), site.changes(10))
    sink.apply(site.ticket(2), site.changes(2))
    assert site.rows() == [1, 2]
    stale.close()
    sink.close()


def test_a_target_that_hangs_is_given_up_in_time(own_server):
    site = Site(own_server)
    site.fence().raise_to(1, "n1")
    own_server.pause()
    try:
        # It still accepts connections, and says nothing on them.
        endpoint = replace(site.endpoint, read_timeout=2.0)
        began = time.monotonic()
        with pytest.raises(TransientError):
            MysqlFence(endpoint, site.key, 1.0).raise_to(2, "n2")
        # The fence gives an answer 10 s more than it lets the server wait for a lock.
        assert time.monotonic() - began < 1 + 10 + 9
    finally:
        own_server.resume()
    site.fence().raise_to(2, "n2")
    sink = site.sink()
    sink.apply(site.ticket(2), site.changes(1))
    assert site.rows() == [1]
    sink.close()


def test_many_who_take_over_at_once_do_not_deadlock(site):
    """A node that ends hands all its pipelines over in the same moment."""
    many, rounds = 16, 8
    ready, failed = threading.Barrier(many), []

    def take_over(number):
        for epoch in range(1, rounds + 1):
            with closing(site.server.connect(autocommit=False)) as connection:
                ready.wait(60)
                try:
                    leading = Leadership(site.schema, f"p{number}", "n1", epoch)
                    writers.register(connection, leading)
                except pymysql.MySQLError as error:
                    failed.append(error)

    threads = [threading.Thread(target=take_over, args=(n,), daemon=True) for n in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not failed
    recorded = rows_of(
        site.server, "SELECT * FROM retl.setl_writer WHERE pipeline LIKE %s", f"{site.schema}/%"
    )
    assert len(recorded) == many * rounds
