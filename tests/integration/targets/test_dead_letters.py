"""Faulty rows end as dead letters, and everything else arrives."""

import json
from dataclasses import replace

import pytest

from arbiter.requests import Refused
from setl import failpoints
from setl.channel.routes.routing import Router
from setl.errors import DataError, FatalError, TransientError
from setl.load.deadletters.dead_letter import State, key_hash, letter_of
from setl.model.change import Row, TargetChanges
from setl.model.faulty import FaultyRow, RawRecord
from setl.model.schema import Column, Kind
from setl.operate.dead_letters import (
    Loadable,
    forced_elsewhere,
    loadable,
    seek_retry,
)
from setl.operate.planning import stranded_letters
from setl.systems.registry import system_of
from setl.transform.processing import processor_named
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, one_way, rows
from tests.integration.search.test_pipeline_search import Index, elasticsearch_target
from tests.letters import content_of
from tests.loading import fence_for, sink_on, ticket_for
from tests.unit.codec.binlog_events import EventWriter
from tests.waiting import eventually

NARROW = (
    "CREATE TABLE {db}.items (id BIGINT PRIMARY KEY, name VARCHAR({width}) NULL,"
    " amount {amount} NULL, at DATETIME(6) NULL) CHARACTER SET utf8mb4"
)


@pytest.fixture
def items(servers):
    """A table that is narrower at the target."""
    source, target = servers
    name = fresh_name("items")
    wide = NARROW.format(db=name, width=100, amount="INT")
    narrow = NARROW.format(db=name, width=10, amount="TINYINT")
    execute(source, f"CREATE DATABASE {name}", wide)
    execute(target, f"CREATE DATABASE {name}", narrow)
    yield name
    for server in servers:
        execute(server, f"DROP DATABASE {name}")


def into_mysql(servers, db, **options):
    source, target = servers
    options = {"faulty_rows": "dead_letter", **options}
    return one_way(source, mysql(target), [{"from": f"{db}.items"}], **options)


def letters(file, **query):
    with system_of(file.pipelines[0].target).dead_letters() as store:
        return store.find(f"{file.channel}/p", **query)


def mark(file, *found, state=State.RETRY):
    with system_of(file.pipelines[0].target).dead_letters() as store:
        store.mark([letter.id for letter in found], state)


def key_of(letter):
    return json.loads(letter.key_values or "[null]")[0]


def insert(server, db, values):
    text = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in values)
    execute(server, f"INSERT INTO {db}.items VALUES {text}")


# So that a thousand rows of one transaction are one load, however slowly they arrive: the first
# batch ends behind its thousandth row.
AT_ONCE = {"batch_wait": 60}


def thousand(poison):
    """A thousand rows, some of them replaced by others."""
    return [poison.get(i, (i, f"'n{i}'", i % 100, "NULL")) for i in range(1, 1001)]


POISON = {
    3: (3, "'far too long for it'", 1, "NULL"),
    500: (500, "'a'", 4711, "NULL"),
    501: (501, "'a'", -4711, "NULL"),
    999: (999, "'also far too long'", 999999, "NULL"),
}


def test_a_thousand_good_rows_arrive_and_the_bad_ones_are_put_aside(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items)
    binlog = binlog_end(source)["file"]  # before the insert, which may be its last transaction
    insert(source, items, thousand(POISON))
    running = position.lead(file)
    running.applied(1000)
    assert [r[0] for r in rows(target, f"{items}.items")] == [
        i for i in range(1, 1001) if i not in POISON
    ]
    found = letters(file)
    assert sorted(key_of(x) for x in found) == sorted(POISON)
    for letter in found:
        assert letter.target == letter.source == f"{items}.items"
        assert letter.operation == "upsert"
        assert letter.state is State.OPEN
        assert letter.position.startswith(binlog)
        assert "too long" in letter.error or "Out of range" in letter.error
        assert content_of(letter).values[0] in POISON
    assert running.figures.dead_lettered == 4
    eventually(lambda: running.figures.dead_letters == 4, 10)


def test_without_dead_letters_the_first_one_stops_the_pipeline(servers, items, position):
    source, _ = servers
    file = into_mysql(servers, items, faulty_rows="stop")
    insert(source, items, thousand(POISON))
    error = position.lead(file).ends()
    assert isinstance(error, DataError)
    assert error.where["key"] == "3"
    # What anybody may read of it, on the way from the task to the driver too.
    assert error.code in {1264, 1406}
    assert f"table {items}.items, the server's code {error.code})" in error.public
    assert "position" not in error.public
    assert letters(file) == []
    # Where the row event ends that has it.
    file_name, _, offset = error.where["position"].split(" ")[0].rpartition(":")
    events = execute(source, f"SHOW BINLOG EVENTS IN '{file_name}'")
    (event,) = (row[2] for row in events if row[4] == int(offset))
    assert event.startswith("Write_rows")


def test_too_many_dead_letters_stop_the_pipeline(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items, dead_letter_limit=3, **AT_ONCE)
    insert(source, items, thousand(POISON))
    error = position.lead(file).ends()
    assert isinstance(error, FatalError)
    assert "dead_letter_limit" in str(error)
    assert letters(file) == []
    assert rows(target, f"{items}.items") == ()
    more = file.pipelines[0].model_copy(update={"dead_letter_limit": 4})
    position.lead(file.model_copy(update={"pipelines": [more]})).applied(1000)
    assert len(letters(file)) == 4


def test_a_missing_column_is_no_rows_fault(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items)
    execute(target, f"ALTER TABLE {items}.items DROP COLUMN amount")
    insert(source, items, [(1, "'a'", 1, "NULL")])
    error = position.lead(file).ends()
    assert "amount" in str(error)
    assert letters(file) == []


def test_letters_are_loaded_again_once_the_target_is_mended(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items)
    insert(source, items, thousand(POISON))
    running = position.lead(file)
    running.applied(1000)
    execute(target, f"ALTER TABLE {items}.items MODIFY name VARCHAR(100) CHARACTER SET utf8mb4")
    mark(file, *letters(file))
    # Only the names fit now.
    eventually(lambda: letters(file, states=[State.RETRY]) == [], 60)
    left = {key_of(x): x for x in letters(file)}
    assert sorted(left) == [500, 501, 999]
    assert {letter.attempts for letter in left.values()} == {2}
    assert "Out of range" in left[999].error
    execute(target, f"ALTER TABLE {items}.items MODIFY amount INT")
    mark(file, *left.values())
    eventually(lambda: letters(file) == [], 60)
    assert rows(target, f"{items}.items") == rows(source, f"{items}.items")
    eventually(lambda: running.figures.dead_letters == 0, 10)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {db}.items SET name = 'short' WHERE id = 3",
        "DELETE FROM {db}.items WHERE id = 3",
        "UPDATE {db}.items SET id = 5000, name = 'short' WHERE id = 3",
        "REPLACE INTO {db}.items VALUES (3, 'short', 1, NULL)",
    ],
)
def test_a_later_change_of_the_row_supersedes_its_letter(servers, items, position, statement):
    source, target = servers
    file = into_mysql(servers, items)
    insert(
        source, items, [(1, "'a'", 1, "NULL"), POISON[3], (4, "'far too long as well'", 1, "NULL")]
    )
    running = position.lead(file)
    running.applied(3)
    execute(source, statement.format(db=items))
    running.applied(4)
    states = {key_of(x): x.state for x in letters(file)}
    assert states == {3: State.SUPERSEDED, 4: State.OPEN}
    expected = [r for r in rows(source, f"{items}.items") if r[0] != 4]
    assert list(rows(target, f"{items}.items")) == expected


def test_a_letter_from_before_its_table_was_emptied_brings_no_row_back(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items, ddl="pass")
    insert(source, items, [POISON[3]])
    running = position.lead(file)
    running.applied(1)
    execute(source, f"TRUNCATE {items}.items")
    insert(source, items, [(4, "'b'", 1, "NULL")])
    running.applied(2)
    (letter,) = letters(file)
    assert (letter.state, letter.key_hash) == (State.OPEN, "")
    router = Router(file.pipelines[0])
    assert loadable([letter], router, force=False, everything=True) == Loadable([], unknown=1)
    assert rows(target, f"{items}.items") == rows(source, f"{items}.items")


@pytest.mark.family("mariadb", why="of which mapping a letter is, setl compares by itself")
@pytest.mark.parametrize("change", [{"to": "{db}.renamed"}, {"columns": {"name": "lower(name)"}}])
def test_a_letter_from_before_another_mapping_is_loaded_only_by_force(
    servers, items, position, change
):
    source, target = servers
    file = into_mysql(servers, items)
    insert(source, items, [POISON[3], POISON[500]])
    first = position.lead(file)
    first.applied(2)
    assert len(letters(file)) == 2
    first.stop()

    execute(target, f"CREATE TABLE {items}.renamed LIKE {items}.items")
    change = {k: v.format(db=items) if isinstance(v, str) else v for k, v in change.items()}
    pipeline = file.pipelines[0]
    (mapping,) = pipeline.tables
    other = mapping.model_copy(update=change)
    anew = file.model_copy(update={"pipelines": [pipeline.model_copy(update={"tables": [other]})]})
    (stranded,) = stranded_letters(file, anew)
    assert stranded.what == (
        f"2 open dead letters of {items}.items, put aside under the mapping before"
    )
    router = Router(anew.pipelines[0])
    asked, _ = letters(file)
    with pytest.raises(Refused, match=f"maps {items}.items in another way than when {asked.id}"):
        loadable([asked], router, force=False, everything=False)
    left = loadable(letters(file), router, force=False, everything=True)
    assert (left.letters, left.remapped) == ([], 2)

    # What was asked for before the mapping changed is not loaded either.
    mark(file, *letters(file))
    wide = "MODIFY name VARCHAR(100) CHARACTER SET utf8mb4, MODIFY amount INT"
    execute(target, f"ALTER TABLE {items}.items {wide}")
    position.lead(anew)
    insert(source, items, [(5, "'B'", 1, "NULL")])
    into = f"{items}.renamed" if "to" in change else f"{items}.items"
    eventually(lambda: [row[0] for row in rows(target, into)] == [5], 60)
    assert {(x.state, x.key_hash) for x in letters(file)} == {(State.OPEN, "")}
    with system_of(pipeline.target).dead_letters() as store:
        forced = loadable([asked], router, force=True, everything=False)
        chosen = forced.letters
        seek_retry(store, [x.id for x in chosen], forced_elsewhere(chosen, router))
    eventually(lambda: len(letters(file)) == 1, 60)
    assert [row[0] for row in rows(target, f"{items}.items") if row[0] != 5] == [key_of(asked)]


def test_rows_of_large_loads_are_found_in_every_task(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items, rows_per_task=100)
    for start in range(0, 5000, 1000):
        insert(
            source,
            items,
            [
                (i, "'far too long for it'" if i % 500 == 7 else "'n'", 1, "NULL")
                for i in range(start, start + 1000)
            ],
        )
    position.lead(file).applied(5000)
    assert sorted(key_of(x) for x in letters(file)) == list(range(7, 5000, 500))
    assert len(rows(target, f"{items}.items")) == 4990


# -- what never reaches the target ---------------------------------------------------------------


def test_a_record_that_cannot_be_decoded(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items)
    insert(source, items, [(i, f"'n{i}'", 1, "NULL") for i in range(1, 1001)])
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        # The record does not say what the other columns are.
        cursor.execute(f"INSERT INTO {items}.items (id) VALUES (2001)")
    insert(source, items, [(1001, "'last'", 1, "NULL")])
    position.lead(file).applied(1002)
    assert [r[0] for r in rows(target, f"{items}.items")] == list(range(1, 1002))
    (letter,) = letters(file)
    assert letter.operation == "record"
    assert letter.source == letter.target == f"{items}.items"
    assert letter.key_values is None
    assert isinstance(letter.content, RawRecord)


def test_a_key_change_that_does_not_say_the_whole_row(servers, items, position):
    source, target = servers
    file = into_mysql(servers, items)
    insert(source, items, [(i, f"'n{i}'", 1, "NULL") for i in range(1, 1001)])
    file = into_mysql(servers, items)
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        cursor.execute(f"UPDATE {items}.items SET id = id + 5000 WHERE id IN (7, 8)")
    insert(source, items, [(1001, "'last'", 1, "NULL")])
    position.lead(file).applied(3)
    assert [r[0] for r in rows(target, f"{items}.items")] == [1001]
    found = letters(file)
    assert sorted(content_of(x).after[0] for x in found) == [5007, 5008]
    assert {(x.operation, x.key_values) for x in found} == {("update", None)}


def test_a_record_that_can_be_decoded_by_now(servers, items, position):
    """As after an update of setl: the letter holds all that decoding needs."""
    _, target = servers
    file = into_mysql(servers, items)
    events = EventWriter()
    described = events.table_map(
        [(8, b"")],
        schema=items,
        table="items",
        optional=bytes([4, 3, 2]) + b"id" + bytes([8, 1, 0]),
    )
    written = events.rows(30, 1, [b"\0" + (4711).to_bytes(8, "little")])
    record = RawRecord(
        "binlog", written, (events.format_description(), described), (items, "items")
    )
    broken = replace(record, payload=written[:-6])
    ticket = ticket_for("p", channel=file.channel)
    stored = [
        FaultyRow((items, "items"), f"{items}.items", version, content, DataError("not yet"))
        for version, content in ((5, record), (6, broken))
    ]
    with system_of(file.pipelines[0].target).dead_letters() as store:
        store.keep([letter_of(row, ticket, 1.0) for row in stored])
    mark(file, *letters(file))
    position.lead(file)
    eventually(lambda: letters(file, states=[State.RETRY]) == [], 60)
    (left,) = letters(file)
    assert (left.version, left.attempts, left.operation) == (6, 2, "record")
    assert "cannot be decoded" in left.error
    assert rows(target, f"{items}.items") == ((4711, None, None, None),)


def test_rows_without_the_key_that_their_mapping_names(servers, items, position):
    source, target = servers
    file = one_way(
        source,
        mysql(target),
        [{"from": f"{items}.items", "key": ["name"]}],
        faulty_rows="dead_letter",
    )
    left = [(1, "'a'", 1, "NULL"), (3, "'c'", 1, "NULL")]
    without = [(2, "NULL", 1, "NULL"), (4, "NULL", 1, "NULL"), (5, "NULL", 1, "NULL")]
    insert(source, items, [*left, *without])
    execute(source, f"UPDATE {items}.items SET name = 'e' WHERE id = 5")
    position.lead(file).applied(6)
    assert [r[0] for r in rows(target, f"{items}.items")] == [1, 3, 5]
    found = letters(file)
    assert all("null in a column that its mapping names as key" in x.error for x in found)
    assert sorted(content_of(letter).after[0] for letter in found) == [2, 4]


def test_rows_on_which_a_processor_fails(servers, items, position, spark, tmp_path):
    source, target = servers
    module = fresh_name("rules")
    code = tmp_path / f"{module}.py"
    code.write_text(
        "def inverted(change):\n"
        "    return change.with_values({'amount': 100 // change.row.as_integer('amount')})\n"
    )
    spark.sparkContext.addPyFile(str(code))
    file = one_way(
        source,
        mysql(target),
        [{"from": f"{items}.items", "processor": f"{module}:inverted"}],
        faulty_rows="dead_letter",
    )
    insert(
        source,
        items,
        thousand(
            {n: (n, "'n'", 0, "NULL") for n in (1, 500, 1000)}
            | {n: (n, "'n'", 4, "NULL") for n in (100, 200)}
            | {n * 100: (n * 100, "'n'", 4, "NULL") for n in (3, 4, 6, 7, 8, 9)}
        ),
    )
    position.lead(file).applied(1000)
    assert len(rows(target, f"{items}.items")) == 997
    found = letters(file)
    assert sorted(content_of(x).after[0] for x in found) == [1, 500, 1000]
    assert {x.operation for x in found} == {"insert"}
    assert "ZeroDivisionError" in found[0].error
    mark(file, *found)
    eventually(lambda: letters(file, states=[State.RETRY]) == [], 60)
    assert [x.attempts for x in letters(file)] == [2, 2, 2]
    processor_named.cache_clear()


# -- crashes -------------------------------------------------------------------------------------


def test_letters_are_written_with_the_good_rows_or_not_at_all(
    servers, items, tmp_path, monkeypatch
):
    _, target = servers
    ticket = ticket_for(fresh_name("p"))
    fence_for(target, ticket).raise_to(1, "n1")
    sink = sink_on(target, dead_letter_limit=10)
    columns = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT))
    upserts: list[Row] = [(1, "a"), (2, "far too long for it"), (3, "c")]
    changes = TargetChanges((items, "items"), columns, (0,), upserts, [], [5, 5, 5], [])

    def stored():
        return execute(
            target,
            f"SELECT key_hash FROM retl.setl_deadletter WHERE pipeline = '{ticket.pipeline_key}'",
        )

    monkeypatch.setattr(failpoints, "_folder", str(tmp_path))
    (tmp_path / "task.before_commit").write_text("error")
    with pytest.raises(TransientError):
        sink.apply(ticket, [changes])
    assert rows(target, f"{items}.items") == stored() == ()
    loaded = sink.apply(ticket, [changes])
    assert (loaded.dead_letters, loaded.tables_with_dead_letters) == (1, {f"{items}.items"})
    assert [r[0] for r in rows(target, f"{items}.items")] == [1, 3]
    assert stored() == ((key_hash((2,)),),)
    # The answer to the commit is lost: the batch is applied again.
    (tmp_path / "task.after_commit").write_text("error")
    with pytest.raises(TransientError):
        sink.apply(ticket, [changes])
    sink.apply(ticket, [changes])
    assert len(stored()) == 1
    sink.close()


# -- expressions, and an index as the target ---------------------------------------------------


def into_index(servers, server, db, **mapping):
    source, _ = servers
    table = {"from": f"{db}.items", "to": f"{db}-items", **mapping}
    return one_way(source, elasticsearch_target(server), [table], faulty_rows="dead_letter"), Index(
        server, f"{db}-items"
    )


def documents(index):
    index.call("POST", "/_refresh")
    return index.call("GET", "/_count")["count"]


@pytest.mark.family("mariadb", why="Spark finds the rows, which are the same by then")
def test_expressions_that_fail_on_some_rows(servers, elasticsearch, items, position):
    source, _ = servers
    file, index = into_index(servers, elasticsearch, items, columns={"share": "100 / amount"})
    values = {i: (i, "'n'", 0, "NULL") for i in (17, 18, 900)}
    good = {i: (i, "'n'", 1 + i % 9, "NULL") for i in range(1, 1001)}
    insert(source, items, thousand({**good, **values}))
    running = position.lead(file)
    running.applied(1000, timeout=200)
    found = letters(file)
    assert sorted(key_of(x) for x in found) == [17, 18, 900]
    assert all("DIVIDE_BY_ZERO" in x.error for x in found)
    assert documents(index) == 997
    execute(source, f"UPDATE {items}.items SET amount = 5 WHERE id = 17")
    running.applied(1001)
    assert [x.state for x in letters(file)].count(State.SUPERSEDED) == 1
    assert index.document(17)["share"] == 20
    mark(file, *letters(file, states=[State.OPEN]))
    eventually(lambda: letters(file, states=[State.RETRY]) == [], 60)
    assert {x.attempts for x in letters(file, states=[State.OPEN])} == {2}


def test_documents_that_have_no_form_and_documents_that_are_refused(
    servers, elasticsearch, items, position
):
    source, _ = servers
    file, index = into_index(servers, elasticsearch, items)
    fields = {"id": {"type": "long"}, "name": {"type": "integer"}}
    index.call("PUT", "", {"mappings": {"properties": fields}})
    poison = {
        5: (5, "'x'", 1, "NULL"),
        6: (6, "'y'", 1, "NULL"),
        700: (700, "'1'", 1, "'0000-00-00 00:00:00'"),
    }
    good = {i: (i, f"'{i}'", 1, "NULL") for i in range(1, 1001)}
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        text = ", ".join("(" + ", ".join(map(str, r)) + ")" for r in {**good, **poison}.values())
        cursor.execute(f"INSERT INTO {items}.items VALUES {text}")
    running = position.lead(file)
    running.applied(1000)
    assert documents(index) == 997
    found = {key_of(x): x for x in letters(file)}
    assert sorted(found) == [5, 6, 700]
    assert "failed to parse field [name]" in found[5].error
    assert "0000-00-00" in found[700].error
    assert found[5].target == f"{items}-items"
    execute(source, f"UPDATE {items}.items SET name = '55' WHERE id = 5")
    execute(source, f"DELETE FROM {items}.items WHERE id = 700")
    running.applied(1002)
    states = {key_of(x): x.state for x in letters(file)}
    assert states == {5: State.SUPERSEDED, 6: State.OPEN, 700: State.SUPERSEDED}
    assert index.document(5)["name"] == "55"


def test_an_index_that_takes_no_such_fields_is_no_rows_fault(
    servers, elasticsearch, items, position
):
    source, _ = servers
    file, index = into_index(servers, elasticsearch, items)
    mapping = {"dynamic": "strict", "properties": {"id": {"type": "long"}}}
    index.call("PUT", "", {"mappings": mapping})
    insert(source, items, [(1, "'a'", 1, "NULL")])
    error = position.lead(file).ends()
    assert isinstance(error, FatalError)
    assert "strict" in str(error)
    assert letters(file) == []
