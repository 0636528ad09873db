"""What can be seen of the connections of a leadership, with privileges and without."""

import threading
from contextlib import contextmanager, suppress

import pymysql
import pytest

from setl.errors import TransientError
from setl.select.checkpoints.owner import Owner
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.heartbeats.heartbeat import MysqlHeartbeat
from setl.systems.mysql.locks.waits import look
from setl.systems.mysql.stored import writers
from setl.systems.search_index.target_view import look_at_writes
from setl_drills.connections import connections
from setl_embedded import MySql
from setl_embedded.ports import free_port
from tests.integration.pipelines import execute, fresh_name, install_system_tables, new_database
from tests.waiting import eventually

EPOCH = 12


@pytest.fixture(scope="module")
def server(site_a):
    install_system_tables(site_a)
    return site_a


@pytest.fixture
def table(server):
    made = "CREATE TABLE {db}.t (id INT PRIMARY KEY, v INT)"
    with new_database([server], "shop", made, "INSERT INTO {db}.t VALUES (1, 1), (2, 2)") as db:
        yield f"{db}.t"


@pytest.fixture
def key():
    return f"{fresh_name('channel')}/p"


def endpoint_of(server, **changes):
    given = {"host": server.host, "port": server.port, "user": server.user}
    return MysqlEndpoint(**{**given, "password": server.password, **changes})


@pytest.fixture
def plain(server):
    """An account with the privileges of grants-target.sql and nothing else."""
    name = fresh_name("u")[:20]
    execute(
        server,
        f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON retl.* TO {name}@'%'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON `shop%`.* TO {name}@'%'",
    )
    yield endpoint_of(server, user=name, password="secret")
    execute(server, f"DROP USER {name}@'%'")


@pytest.fixture
def opened():
    connections = []

    def open_(endpoint, key=None, epoch=EPOCH, nid="n1"):
        connection = connect(endpoint, autocommit=False, lock_wait=60)
        connections.append(connection)
        if key:
            writers.register(connection, Owner(key, nid, "host").under(epoch))
        connection.begin()
        return connection

    yield open_
    for connection in connections:
        if connection.open:
            connection.close()


def run(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


def run_until_killed(connection, sql):
    with suppress(pymysql.err.OperationalError):  # MariaDB tells that it was ended
        run(connection, sql)


def is_idle(server, connection):
    """Whether the server lists it as idle, which it does a moment after it has answered."""
    return connections(server)[connection.thread_id()] == "Sleep"


def in_background(connection, sql, call=run):
    thread = threading.Thread(target=call, args=(connection, sql), daemon=True)
    thread.start()
    return thread


def test_a_row_lock_of_a_stranger(server, table, key, opened):
    endpoint = endpoint_of(server)
    ours, holder = opened(endpoint, key), opened(endpoint)
    run(holder, f"UPDATE {table} SET v = 5 WHERE id = 1")
    thread = in_background(ours, f"UPDATE {table} SET v = 6 WHERE id = 1")
    seen = eventually(lambda: waiting(endpoint, key))
    (wait,) = seen.waits
    assert (wait.waiting, wait.holder) == (ours.thread_id(), holder.thread_id())
    assert wait.table == table
    assert wait.who == f"{server.user}@127.0.0.1"
    assert wait.doing == "idle in its transaction"
    assert 0 <= wait.held < 60
    assert seen.statements == ()
    assert seen.recorded == (ours.thread_id(),)
    assert seen.blind == ""
    holder.rollback()
    thread.join(30)
    eventually(lambda: is_idle(server, ours))
    # At once, although InnoDB keeps telling what it knew as long as it is asked every 0.1 s.
    after = look(endpoint, key, EPOCH)
    assert after.waits == ()
    assert after.blind == ""
    assert after.open == (ours.thread_id(),)
    assert after.modified != seen.modified


def test_looks_in_quick_succession_are_all_up_to_date(server, table, key, opened):
    endpoint = endpoint_of(server)
    ours = opened(endpoint, key)
    for turn in range(5):
        run(ours, f"UPDATE {table} SET v = v + 1 WHERE id = 1")
        eventually(lambda: is_idle(server, ours))
        assert look(endpoint, key, EPOCH).open == (ours.thread_id(),), turn
        ours.rollback()
        assert look(endpoint, key, EPOCH).open == (), turn


def test_an_old_list_of_locks_is_not_believed(server, table, key, opened):
    endpoint = endpoint_of(server)
    ours, holder = opened(endpoint, key), opened(endpoint)
    with read_all_the_time(server):
        run(holder, f"UPDATE {table} SET v = 5 WHERE id = 1")
        thread = in_background(ours, f"UPDATE {table} SET v = 6 WHERE id = 1")
        # A reader that does not get its turn for 0.1 s lets the list be renewed now and then.
        seen = eventually(lambda: blind(endpoint, key), timeout=60)
        assert (seen.waits, seen.modified, seen.open) == ((), (), ())
        assert [s.connection for s in seen.statements] == [ours.thread_id()]
        assert "is not renewed" in seen.blind
    assert eventually(lambda: waiting(endpoint, key)).blind == ""
    holder.rollback()
    thread.join(30)


@contextmanager
def read_all_the_time(server):
    """Have somebody else read InnoDB's list of transactions so often that it is never renewed."""
    begun, over = threading.Event(), threading.Event()

    def read():
        with server.connect() as connection, connection.cursor() as cursor:
            while not over.is_set():
                cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx")
                begun.set()

    readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        over.set()
        for reader in readers:
            reader.join(30)


def blind(endpoint, key):
    seen = look(endpoint, key, EPOCH)
    return seen if seen.statements and seen.blind else None


def waiting(endpoint, key):
    seen = look(endpoint, key, EPOCH)
    return seen if seen.waits else None


def test_a_lock_of_another_leadership_is_reported_as_such(server, table, key, opened):
    endpoint = endpoint_of(server)
    ours, holder = opened(endpoint, key), opened(endpoint, "other/p", epoch=11, nid="n2")
    run(holder, f"UPDATE {table} SET v = 5 WHERE id = 1")
    thread = in_background(ours, f"UPDATE {table} SET v = 6 WHERE id = 1")
    (wait,) = eventually(lambda: waiting(endpoint, key)).waits
    assert wait.who.endswith("writer of other/p, node n2, epoch 11")
    holder.rollback()
    thread.join(30)


def test_a_metadata_lock(server, table, key, opened):
    endpoint = endpoint_of(server)
    ours, holder = opened(endpoint, key), opened(endpoint)
    run(holder, f"LOCK TABLES {table} WRITE")
    thread = in_background(ours, f"UPDATE {table} SET v = 6 WHERE id = 1")
    (wait,) = eventually(lambda: waiting(endpoint, key)).waits
    assert (wait.waiting, wait.holder) == (ours.thread_id(), 0)
    assert "metadata lock" in wait.doing
    run(holder, "UNLOCK TABLES")
    thread.join(30)


def test_a_statement_that_runs(server, key, opened):
    endpoint = endpoint_of(server)
    ours = opened(endpoint, key)
    # Ended by this test, which may be held up for longer than any sleep.
    thread = in_background(ours, "DO SLEEP(600)", run_until_killed)
    try:
        seen = eventually(lambda: running(endpoint, key), 60)
    finally:
        execute(server, f"KILL QUERY {ours.thread_id()}")
    assert [s.connection for s in seen.statements] == [ours.thread_id()]
    assert seen.statements[0].state == "User sleep"
    thread.join(30)
    eventually(lambda: is_idle(server, ours))
    assert look(endpoint, key, EPOCH).statements == ()


def running(endpoint, key):
    seen = look(endpoint, key, EPOCH)
    return seen if seen.statements else None


def test_a_commit_of_anybody_that_lasts(server, key, opened, monkeypatch):
    """No commit hangs without a full disk, so that a sleep stands for one."""
    endpoint = endpoint_of(server)
    assert look(endpoint, key, EPOCH).hanging is None
    monkeypatch.setattr(writers, "_COMMITS", frozenset({"user sleep"}))
    monkeypatch.setattr("setl.systems.mysql.locks.waits._HANGS_SECONDS", 0)
    sleeping = opened(endpoint)
    in_background(sleeping, "SELECT SLEEP(60)", run_until_killed)
    hanging = eventually(lambda: look(endpoint, key, EPOCH).hanging)
    assert hanging.connection == sleeping.thread_id()
    assert hanging.state.lower() == "user sleep; mostly its disk is full"
    execute(server, f"KILL {sleeping.thread_id()}")


def test_connections_of_other_leaderships_are_not_ours(server, key, opened):
    endpoint = endpoint_of(server)
    opened(endpoint, key, epoch=EPOCH - 1)
    opened(endpoint, f"{key}x")
    assert look(endpoint, key, EPOCH).recorded == ()


def test_a_recorded_connection_that_is_gone(server, key, opened):
    endpoint = endpoint_of(server)
    ours = opened(endpoint, key)
    ident = ours.thread_id()
    ours.close()
    eventually(lambda: look(endpoint, key, EPOCH).gone == (ident,))


def test_without_the_privilege_it_says_what_it_could_not_see(plain, server, table, key, opened):
    ours, holder = opened(plain, key), opened(endpoint_of(server))
    run(holder, f"UPDATE {table} SET v = 5 WHERE id = 1")
    thread = in_background(ours, f"UPDATE {table} SET v = 6 WHERE id = 1")
    seen = eventually(lambda: running(plain, key))
    assert seen.waits == ()
    assert [s.connection for s in seen.statements] == [ours.thread_id()]
    assert "PROCESS" in seen.blind
    holder.rollback()
    thread.join(30)


def test_the_optional_grants_are_enough(plain, server, table, key, opened):
    execute(server, f"GRANT PROCESS ON *.* TO {plain.user}@'%'")
    if isinstance(server, MySql):
        execute(server, f"GRANT SELECT ON performance_schema.* TO {plain.user}@'%'")
    ours, holder = opened(plain, key), opened(endpoint_of(server))
    run(holder, f"UPDATE {table} SET v = 5 WHERE id = 1")
    thread = in_background(ours, f"UPDATE {table} SET v = 6 WHERE id = 1")
    seen = eventually(lambda: waiting(plain, key))
    assert [(w.waiting, w.holder) for w in seen.waits] == [(ours.thread_id(), holder.thread_id())]
    assert seen.blind == ""
    holder.rollback()
    thread.join(30)


def test_a_statement_that_mysql_cannot_list_hides_no_lock(plain, server, table, key, opened):
    """While one with an emoji runs, MySQL's information_schema lists neither connections nor
    transactions."""
    execute(server, f"GRANT PROCESS ON *.* TO {plain.user}@'%'")
    if isinstance(server, MySql):
        execute(server, f"GRANT SELECT ON performance_schema.* TO {plain.user}@'%'")
    ours, holder = opened(plain, key), opened(endpoint_of(server))
    execute(server, f"ALTER TABLE {table} ADD w VARCHAR(9) CHARACTER SET utf8mb4")
    run(holder, f"UPDATE {table} SET v = 5 WHERE id = 1")
    thread = in_background(ours, f"UPDATE {table} SET w = '\U0001f98a' WHERE id = 1")
    seen = eventually(lambda: waiting(plain, key))
    (wait,) = seen.waits
    assert (wait.waiting, wait.holder) == (ours.thread_id(), holder.thread_id())
    assert (wait.table, wait.doing) == (table, "idle in its transaction")
    assert wait.who == f"{server.user}@127.0.0.1"
    assert ("beyond utf8mb3" in seen.blind) == (isinstance(server, MySql))
    holder.rollback()
    thread.join(30)
    eventually(lambda: is_idle(server, ours))
    assert look(plain, key, EPOCH).blind == ""


def test_a_server_that_is_not_there_is_known_in_seconds(server, key):
    with pytest.raises(TransientError):
        look(endpoint_of(server, port=free_port()), key, EPOCH)


def test_a_cluster_that_writes_nothing(elasticsearch):
    load = look_at_writes(ElasticEndpoint((elasticsearch.url,)))
    assert (load.active, load.queued, load.running, load.blind) == (0, 0, (), "")


def test_a_cluster_that_is_not_there():
    with pytest.raises(TransientError):
        look_at_writes(ElasticEndpoint((f"http://127.0.0.1:{free_port()}",)))


def test_who_gives_up_waiting_for_a_table_stores_no_connection(server):
    """Or a backup that locks all tables for long would leave none to anybody else."""
    heartbeat = MysqlHeartbeat(endpoint_of(server), 4711, interval=0.1, name="locked out")
    with server.connect() as backup, backup.cursor() as cursor:
        cursor.execute("LOCK TABLES retl.xdual WRITE")
        heartbeat.start()
        try:
            eventually(lambda: heartbeat.status().errors >= 3, 30)
            no_more_than_one_stays(server, "state LIKE 'Waiting for table%'")
            cursor.execute("UNLOCK TABLES")
            eventually(lambda: heartbeat.status().written, 30)
        finally:
            heartbeat.stop()


def no_more_than_one_stays(server, condition):
    """Wait until no more than one connection is so.

    One that gave up, or was killed, needs a moment to leave, in which the next one is so already.
    Where none leaves, each attempt adds one.
    """
    many = f"SELECT COUNT(*) FROM information_schema.processlist WHERE {condition}"
    eventually(lambda: execute(server, many)[0][0] <= 1, 20, message=condition)


def test_a_heartbeat_whose_commit_hangs_stores_one_connection(server):
    """As where a replica has to confirm it, or a disk is full: the server waits on by itself."""
    server_id = execute(server, "SELECT @@server_id")[0][0]
    heartbeat = MysqlHeartbeat(endpoint_of(server), 4712, interval=0.1, name="hanging")
    trigger = f"retl.hanging_{server_id}"
    execute(
        server,
        f"CREATE TRIGGER {trigger} BEFORE INSERT ON retl.xdual FOR EACH ROW"
        " SET NEW.x = IF(NEW.id = 4712, NOW(6) + INTERVAL SLEEP(600) SECOND, NEW.x)",
    )
    try:
        heartbeat.start()
        eventually(lambda: heartbeat.status().errors >= 2, 30)
        no_more_than_one_stays(server, "info LIKE 'INSERT INTO retl.xdual (id, x) VALUES (4712%'")
    finally:
        heartbeat.stop()
        execute(server, f"DROP TRIGGER {trigger}")
