"""Nothing goes round: large transactions, leaders that die, several channels, Otter, meddlers."""

import pytest

from setl.channel.relations.mark_ids import channel_mark_id
from setl.errors import ConfigurationError
from setl.run.measured.figures import RunState
from setl.systems.mysql.stored.marks import MARK_STATEMENT, mark_id
from tests.integration.numbers import NUMBER, NUMBERS
from tests.integration.pipelines import (
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    on_both,
    one_way,
    rows,
    two_way,
)
from tests.waiting import eventually

TABLE = "(id INT PRIMARY KEY, v VARCHAR(20))"
numbers = on_both("loops", f"CREATE TABLE {{db}}.t {TABLE}")
"""A database with one narrow table, on both servers."""
MANY = 200_000  # tens of batches, in which leaders can die; test_bounds has more rows
_AT = MANY / 20


def write_many(server, db, *before):
    """Many rows in one transaction, after other statements of it."""
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for statement in before:
            cursor.execute(*statement)
        some = NUMBERS.format(f"{NUMBER}, 'x'") + " WHERE d5.d < 2"  # the hundred thousands
        cursor.execute(f"INSERT INTO {db}.t {some}")
        connection.commit()


def own_mark(file, pipeline, batch=1):
    """The statement with which a loader of the pipeline begins a transaction."""
    row = (mark_id(f"{file.channel}/{pipeline}", 0), channel_mark_id(file), f"1.{batch}.0.9.abc")
    return MARK_STATEMENT, row


def test_many_marked_rows_do_not_echo_though_leaders_die_in_the_middle(servers, numbers, position):
    a, b = servers
    file = two_way(a, b, [{"from": f"{numbers}.t"}], batch_rows=2_000, window=1)
    write_many(b, numbers, own_mark(file, "ab"))
    execute(b, f"INSERT INTO {numbers}.t VALUES (-1, 'of a user')")
    for nid in ("n1", "n2", "n3"):
        leader = position.lead(file, "ba", nid=nid, dies_when=lambda f: f.rows_loopback > _AT)
        figures = leader.dies()
        assert _AT < figures.rows_loopback < MANY / 2
        assert figures.rows_total == 0
    last = position.lead(file, "ba", nid="n4")
    last.applied(1)
    assert last.figures.rows_total == 1
    assert (last.figures.echoes_dropped, last.figures.echoes_replicated) == (1, 0)
    assert rows(a, f"{numbers}.t") == ((-1, "of a user"),)


@pytest.fixture(scope="module")
def third(another_server, tmp_path_factory):
    with another_server(tmp_path_factory.mktemp("third") / "c", "site-c", server_id=103) as server:
        install_system_tables(server)
        yield server


def test_two_channels_on_three_servers_in_a_row(servers, third, numbers, position):
    a, b = servers
    sites = {"a": a, "b": b, "c": third}
    execute(third, f"CREATE DATABASE {numbers}", f"CREATE TABLE {numbers}.t {TABLE}")
    tables = [{"from": f"{numbers}.t"}]
    one, two = two_way(a, b, tables), two_way(b, third, tables)
    runs = [position.lead(file, name) for file in (one, two) for name in ("ab", "ba")]
    for i in range(20):
        for relay_position_of, (name, server) in enumerate(sites.items()):
            number = 100 * relay_position_of + i
            execute(server, f"INSERT INTO {numbers}.t VALUES ({number}, 'from {name}')")
    execute(a, f"UPDATE {numbers}.t SET v = 'again' WHERE id < 10")
    execute(third, f"DELETE FROM {numbers}.t WHERE id = 219")
    # Whatever still goes round grows with each of these, since they come after it.
    for number in range(1000, 1020):
        execute((a, third)[number % 2], f"INSERT INTO {numbers}.t VALUES ({number}, 'last')")
        for server in sites.values():
            eventually(lambda: rows(server, f"{numbers}.t WHERE id = {number}"), 60)  # noqa: B023
    # Of A's 40 changes, B's 20 and C's 31 each goes on to both other sites, and no further;
    # it is fewer where several changes of a row are loaded together.
    totals = [running.figures.rows_total for running in runs]
    assert all(t <= most for t, most in zip(totals, (40, 51, 60, 31), strict=True)), totals
    eventually(lambda: all(running.figures.echoes_dropped > 0 for running in runs), 30)
    assert not any(running.figures.echoes_replicated for running in runs)
    assert len({rows(server, f"{numbers}.t") for server in sites.values()}) == 1


OTTER, OTTER_INFO = 5, "shop-sites"
# Statements of alibaba/otter, AbstractOperationInterceptor and its subclasses.
BEGIN = (
    "INSERT INTO retl.retl_mark (id, channel_id) VALUES ({id}, {channel})"
    " ON DUPLICATE KEY UPDATE channel_id = VALUES(channel_id)"
)
BEGIN_WITH_INFO = (
    "INSERT INTO retl.retl_mark (id, channel_id, channel_info) VALUES ({id}, {channel} ,'{info}')"
    " ON DUPLICATE KEY UPDATE channel_id = VALUES(channel_id) ,"
    " channel_info = VALUES(channel_info)"
)
END = "UPDATE retl.retl_mark SET channel_id = 0 WHERE id = {id} and channel_id = {channel}"
END_WITH_INFO = (
    "UPDATE retl.retl_mark SET channel_id = 0 , channel_info = null WHERE id = {id} and"
    " channel_id = {channel} and channel_info = '{info}'"
)


def otter(server, *statements, number=1, channel=OTTER, info=""):
    """A transaction as an Otter node loads it."""
    values = {"id": number, "channel": channel, "info": info}
    begin, end = (BEGIN_WITH_INFO, END_WITH_INFO) if info else (BEGIN, END)
    transaction = ("BEGIN", begin.format(**values), *statements, end.format(**values), "COMMIT")
    execute(server, *transaction)


@pytest.fixture(params=["binlog", "dts"])
def beside_otter(request, servers, numbers, position):
    """setl has taken A→B over from Otter, which still does B→A: what setl reads of A."""
    a, b = servers
    tables, identity = [{"from": f"{numbers}.t"}], {"mark_id": OTTER, "otter_info": OTTER_INFO}
    if request.param == "binlog":
        file = one_way(a, mysql(b), tables)
    else:
        kafka = request.getfixturevalue("kafka")
        topic = {"type": "kafka", "brokers": [kafka.brokers], "topic": fresh_name("otter")}
        position.lead(one_way(a, topic, [{"from": f"{numbers}.*"}])).runs()
        file = one_way(a, mysql(b), tables)
        source = {**topic, "start": "earliest"}
        file = type(file).model_validate({
            "channel": file.channel,
            "pipelines": [{"name": "p", "source": source, "target": mysql(b), "tables": tables}],
        })  # fmt: skip
    # Otter prepares its table when it starts.
    execute(a, *(f"REPLACE INTO retl.retl_mark (ID, CHANNEL_ID) VALUES ({n}, 0)" for n in range(9)))
    yield file.model_copy(update=identity)
    execute(a, "DELETE FROM retl.retl_mark WHERE ID < 9")


def test_otter_loads_one_side(beside_otter, servers, numbers, position):
    a, b = servers
    table = f"{numbers}.t"

    def insert(first, text):
        return f"INSERT INTO {table} VALUES ({first}, '{text}'), ({first + 1}, '{text}')"

    running = position.lead(beside_otter)
    otter(a, insert(10, "otter"))
    execute(a, insert(20, "user"))
    # The same row of the mark table again: its end mark makes the next begin mark visible.
    otter(a, insert(30, "otter"), f"UPDATE {table} SET v = 'otter' WHERE id = 20")
    otter(a, insert(40, "otter"), number=2, info=OTTER_INFO)
    otter(a, insert(50, "otter"), number=3, channel=77, info=OTTER_INFO)
    otter(a, insert(60, "synced"), number=4, channel=77, info="orders_SYNC")
    otter(a, insert(70, "other channel"), number=5, channel=77)
    otter(a, insert(80, "other channel"), number=6, channel=77, info="elsewhere")
    execute(a, f"DELETE FROM {table} WHERE id = 70")
    running.applied(7)
    assert [row[0] for row in rows(b, table)] == [20, 21, 71, 80, 81]
    assert (20, "user") in rows(b, table)
    figures = running.figures
    assert (figures.rows_total, figures.echoes_dropped, figures.echoes_replicated) == (7, 5, 0)


def test_setl_marks_in_the_form_that_otter_reads(servers, numbers, position):
    """An Otter that reads B drops what has its channel's number in the after image."""
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{numbers}.t"}]).model_copy(update={"mark_id": OTTER})
    execute(a, f"INSERT INTO {numbers}.t VALUES (1, 'x')")
    position.lead(file).applied(1)
    number = mark_id(f"{file.channel}/p", 0)
    [(channel, info)] = execute(
        b, f"SELECT CHANNEL_ID, CHANNEL_INFO FROM retl.retl_mark WHERE ID = {number}"
    )
    assert channel == OTTER
    assert info
    assert not info.lower().endswith("_sync")


class Meddler:
    """A trigger that changes marks of one pipeline, on a server that others use too."""

    def __init__(self, server, file, pipeline, change):
        self.server = server
        first = mark_id(f"{file.channel}/{pipeline}", 0)
        self.names = [f"retl.{fresh_name('meddle')}" for _ in range(2)]
        for name, event in zip(self.names, ("INSERT", "UPDATE"), strict=True):
            execute(
                server,
                f"CREATE TRIGGER {name} BEFORE {event} ON retl.retl_mark FOR EACH ROW"
                f" SET {change.format(mine=f'NEW.ID BETWEEN {first} AND {first + 1023}')}",
            )

    def go(self):
        execute(self.server, *(f"DROP TRIGGER {name}" for name in self.names))


def test_an_echo_that_is_not_dropped_is_counted(servers, numbers, position):
    a, b = servers
    file = two_way(a, b, [{"from": f"{numbers}.t"}])
    meddler = Meddler(b, file, "ab", "NEW.CHANNEL_ID = IF({mine}, 0, NEW.CHANNEL_ID)")
    try:
        there, back = position.lead(file, "ab"), position.lead(file, "ba")
        execute(a, f"INSERT INTO {numbers}.t VALUES (1, 'x')")
        there.applied(1)
        back.applied(1)
        assert (back.figures.echoes_dropped, back.figures.echoes_replicated) == (0, 1)
        # It has come back to A, but what A's loader wrote there has its mark.
        eventually(lambda: there.figures.echoes_dropped == 1, 30)
        assert there.figures.echoes_replicated == 0
    finally:
        meddler.go()
    # Written last, as by a loader that is not setl's.
    mark = own_mark(file, "ab", batch=2)
    with b.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {numbers}.t VALUES (2, 'y')")
        cursor.execute(*mark)
        connection.commit()
    eventually(lambda: back.figures.echoes_replicated == 2, 30)


def test_a_mark_that_the_server_does_not_log_stops_the_loader(servers, numbers, position):
    a, b = servers
    file = two_way(a, b, [{"from": f"{numbers}.t"}])
    meddler = Meddler(b, file, "ab", "NEW.CHANNEL_INFO = IF({mine}, 'fixed', NEW.CHANNEL_INFO)")
    try:
        there = position.lead(file, "ab")
        execute(a, f"INSERT INTO {numbers}.t VALUES (1, 'x')")
        there.applied(1)
        execute(a, f"INSERT INTO {numbers}.t VALUES (2, 'x')")
        error = there.ends()
        assert isinstance(error, ConfigurationError)
        assert "retl_mark" in str(error)
        assert len(rows(b, f"{numbers}.t")) == 1
    finally:
        meddler.go()
    there = position.lead(file, "ab")
    there.applied(2)
    assert there.figures.state is RunState.RUNNING
