"""Rows that pass from server to server as text: each type arrives as it is, or is not passed so."""

from dataclasses import replace

import pytest

from setl.errors import DataError, FencedError, TransientError
from setl.model.change import TargetChanges
from setl.printable import text_of_bytes
from setl.systems.mysql.values import row_text
from setl.systems.mysql.values.row_text import NotRenderedError, can_render
from tests.integration.passages import ALONE, Forwarding, definitions, each_type, is_left
from tests.integration.pipelines import execute
from tests.integration.type_catalogue import columns
from tests.integration.types.test_types_mysql import on_all, same
from tests.loading import fence_for, sink_on


@pytest.fixture(params=["data", "statements"])
def passage(servers, request):
    """Rows go with LOAD DATA LOCAL, or, where the server takes none, with INSERT."""
    (before,) = execute(servers[1], "SELECT @@GLOBAL.local_infile")[0]
    execute(servers[1], f"SET GLOBAL local_infile = {int(request.param == 'data')}")
    made = Forwarding(servers)
    yield made
    made.sink.close()
    execute(servers[1], f"SET GLOBAL local_infile = {before}")
    for server in servers:
        execute(server, f"DROP DATABASE {made.schema}")


@pytest.fixture
def sends_data(passage, request):
    """Whether it goes with LOAD DATA LOCAL."""
    return request.node.callspec.params["passage"] == "data"


def loads_of(passage):
    """How many LOAD DATA the sink's own connection has carried out, and took back."""
    names = ("Com_load", "Com_rollback_to_savepoint")
    shown = passage.carried_out
    return [shown[name] for name in names]


def test_every_type_arrives_as_it_is_or_is_left_to_others(passage, sends_data):
    before = loads_of(passage)
    found = on_all(passage.servers, columns)
    texts = {n: found[n] for n in found if not is_left(n, *found[n])}
    assert len(texts) > 80
    tables = 0
    for name, count in each_type(passage, texts):
        tables += 1
        assert passage.passes(name) == count, name
        same(passage.servers, f"`{passage.schema}`.`{name}`")
    loads, back = (n - b for n, b in zip(loads_of(passage), before, strict=True))
    assert (loads, back) == (tables * sends_data, 0)
    others = [(n, found[n]) for n in found if is_left(n, *found[n]) and n not in ALONE]
    passage.create(definitions(others), name="others")
    unsure = [c.name for c in passage.reader("others").schema.columns[1:] if can_render([c])]
    assert unsure == []


@pytest.mark.parametrize("name", ALONE)
def test_values_that_the_target_may_refuse(passage, name):
    """What is no label, what is as long as a packet, JSON, which is text to MariaDB."""
    definition, values = on_all(passage.servers, columns)[name]
    passage.create(f"id INT PRIMARY KEY, v {definition}")
    passage.insert(*(f"{i}, {value}" for i, value in enumerate(values)))
    if passage.passes() is None:
        assert passage.there() == []
    else:
        same(passage.servers, f"`{passage.schema}`.`t`")


def test_text_that_could_end_its_quotes_does_not(passage):
    passage.create("id INT PRIMARY KEY, v VARCHAR(60), b VARBINARY(60), e ENUM('it''s','\\\\')")
    odd = r"'\\\'); DROP TABLE t; -- \0\Z\n\'\"%s%%`'"
    passage.insert(f"1, {odd}, {odd}, 'it''s'", r"2, '\\', '\\', '\\'", "3, '', '', NULL")
    assert passage.passes() == 3
    same(passage.servers, f"`{passage.schema}`.`t`")


def test_a_row_that_no_text_says_is_left_to_others(passage, monkeypatch):
    """Of what a server cannot write it makes NULL, and of a row with a NULL in it, too."""
    passage.create("id INT PRIMARY KEY, v VARCHAR(20)")
    passage.insert("1, 'a'", "2, 'b'")
    real = row_text.rendering
    monkeypatch.setattr(
        "setl.systems.mysql.reading.table_reader.rendering",
        lambda columns: f"IF(id = 2, NULL, {real(columns)})",
    )
    reader = passage.reader()
    (whole,) = reader.ranges(None, 10, 1)
    with pytest.raises(NotRenderedError):
        list(reader.rendered(row_text.VALUES, reader.schema.columns, whole.part))
    assert passage.passes() is None
    assert passage.there() == []


# Bytes that are no character, which servers take from whoever speaks this character set.
NO_CHARACTERS = [
    ("cp1250", "81"), ("gbk", "A140"), ("cp932", "81AD"), ("big5", "A15A"), ("tis620", "A0"),
]  # fmt: skip


@pytest.mark.parametrize(("charset", "none"), NO_CHARACTERS)
def test_bytes_that_are_no_character_do_not_become_question_marks(passage, charset, none):
    """Nor what else a server says in their place when it is asked for the text. They stay bytes."""
    passage.create(f"id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {charset}")
    passage.insert("1, 'a?'", "2, NULL", f"3, CONCAT('a?', CONVERT(x'{none}' USING {charset}))")
    reader = passage.reader()
    (whole,) = reader.ranges(None, 10, 1)
    assert passage.passes() is None
    change = TargetChanges((passage.schema, "t"), tuple(reader.schema.columns), (0,))
    for some in reader.read(reader.schema.columns, whole.part):
        change.own_upserts.extend(some)
    passage.sink.apply(passage.ticket, [change])
    same(passage.servers, f"`{passage.schema}`.`t`")
    table = f"{passage.schema}.t"
    execute(
        passage.servers[1], f"TRUNCATE {table}", f"ALTER TABLE {table} CONVERT TO CHARSET utf8mb4"
    )
    # Whether or not the target is known to have another character set by now.
    said = ""
    for _ in range(2):
        with pytest.raises(DataError, match=r"string value|text that has no character") as caught:
            passage.sink.apply(passage.ticket, [change])
        assert caught.value.where["key"] == "3"
        assert passage.there() == []
        said = str(caught.value)
    assert none in said


def read_values(passage):
    """The second column of all rows, as they are read row by row."""
    reader = passage.reader()
    (whole,) = reader.ranges(None, 10, 1)
    return [row[1] for some in reader.read(reader.schema.columns, whole.part) for row in some]


@pytest.mark.parametrize("kind", ["ENUM", "SET"])
def test_a_label_that_is_no_character_does_not_become_a_question_mark(passage, kind):
    passage.create(f"id INT PRIMARY KEY, v {kind}('a', x'A140') CHARACTER SET gbk")
    passage.insert("1, 'a'", "2, NULL", "3, 2")
    shown = execute(passage.servers[0], f"SELECT HEX(v) FROM {passage.schema}.t WHERE id = 3")
    assert [tuple(row) for row in shown] == [("A140",)]
    one, nothing, lost = read_values(passage)
    assert (one, nothing) == ("a", None)
    with pytest.raises(UnicodeEncodeError):
        lost.encode()  # so no server takes it
    assert passage.passes() is None


@pytest.mark.family("mariadb", why="MySQL says NULL for it in ucs2, and takes none in utf32")
@pytest.mark.parametrize(("charset", "half"), [("ucs2", "006ED800"), ("utf32", "0000DFFF")])
def test_half_a_surrogate_pair_that_comes_as_bytes_stays_bytes(passage, charset, half):
    passage.create(f"id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {charset}")
    passage.insert("1, 'n'", f"2, CONVERT(x'{half}' USING {charset})")
    assert read_values(passage) == ["n", text_of_bytes(charset, half)]


@pytest.mark.family("mysql", why="MariaDB says bytes for it that are no UTF-8")
def test_half_a_surrogate_pair_does_not_become_null(passage):
    passage.create("id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET ucs2")
    passage.insert("1, 'n'", "2, NULL", "3, CONVERT(x'006ED800' USING ucs2)")
    one, nothing, half = read_values(passage)
    assert (one, nothing) == ("n", None)
    with pytest.raises(UnicodeEncodeError):
        half.encode()  # so no server takes it
    assert passage.passes() is None
    assert passage.there() == []


def test_a_row_longer_than_the_sources_packet_is_left_to_others(passage):
    passage.create("id INT PRIMARY KEY, v LONGBLOB")
    (packet,) = execute(passage.servers[0], "SELECT @@max_allowed_packet")[0]
    passage.insert("1, 'a'", f"2, REPEAT('x', {packet // 2 + 10})")  # in hex it is twice as long
    assert passage.passes() is None
    assert passage.there() == []


DIFFERENT = [
    ("VARCHAR(20)", "VARCHAR(10)"),
    ("VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1"),
    ("DECIMAL(10,3)", "DECIMAL(10,2)"),
    ("DATETIME(6)", "DATETIME"),
    ("INT", "DOUBLE"),
    ("BINARY(4)", "BINARY(8)"),
    ("ENUM('a','B')", "ENUM('a','b')"),
    ("INT", "BIT(32)"),
]


@pytest.mark.parametrize(("here", "there"), DIFFERENT)
def test_columns_that_differ_are_left_to_others(passage, here, there):
    passage.create(f"id INT PRIMARY KEY, v {here}", f"id INT PRIMARY KEY, v {there}")
    passage.insert("1, NULL")
    assert passage.passes() is None


@pytest.mark.parametrize(
    "keys", ["PRIMARY KEY (id), UNIQUE (v)", "UNIQUE (v)", "KEY (id)", "PRIMARY KEY (v)"]
)
def test_other_keys_are_left_to_others(passage, keys):
    shape = "id INT NOT NULL, v INT NOT NULL"
    passage.create(f"{shape}, PRIMARY KEY (id)", f"{shape}, {keys}")
    passage.insert("1, 1")
    assert passage.passes() is None


def test_what_is_there_already_is_changed_and_nothing_else(passage, sends_data):
    shape = "id INT PRIMARY KEY, v VARCHAR(20), g INT AS (id + 1)"
    passage.create(shape, f"{shape}, own INT DEFAULT 7")
    execute(passage.servers[0], f"INSERT INTO {passage.schema}.t (id, v) VALUES (1, 'a'), (2, 'b')")
    execute(
        passage.servers[1],
        f"INSERT INTO {passage.schema}.t (id, v, own) VALUES (2, 'old', 1), (3, 'stays', 1)",
    )
    before = loads_of(passage)
    for _ in range(2):
        assert passage.passes() == 2
        assert [tuple(row) for row in passage.there("id, v, g, own")] == [
            (1, "a", 2, 7),
            (2, "b", 3, 1),
            (3, "stays", 4, 1),
        ]
    # LOAD DATA skips rows that are there. It is not tried again for a while.
    loads, back = (n - b for n, b in zip(loads_of(passage), before, strict=True))
    assert (loads, back) == (sends_data, sends_data)


@pytest.mark.parametrize("own", ["INT", "TIMESTAMP"])
def test_no_value_is_made_up_for_a_column_that_has_no_default(passage, own):
    shape = "id INT PRIMARY KEY, v INT"
    passage.create(shape, f"{shape}, own {own} NOT NULL")
    passage.insert("1, 1", "2, 2")
    assert passage.passes() is None
    assert passage.there() == []


def test_rows_are_refused_as_a_whole_and_nothing_stays(passage):
    """A number out of range is seen by the server; who writes rows one by one says which it is."""
    passage.create("id INT PRIMARY KEY, v INT UNSIGNED", "id INT PRIMARY KEY, v INT")
    passage.insert(*(f"{i}, 1" for i in range(5)), "9, 4294967295")
    passage.sink.close()
    passage.sink = sink_on(passage.servers[1], statement_size=30)  # several statements
    assert passage.passes() is None
    assert passage.there() == []
    passage.sink.close()


def test_a_stale_leader_passes_nothing(passage):
    passage.create("id INT PRIMARY KEY, v INT")
    passage.insert("1, 1")
    fence_for(passage.servers[1], passage.ticket).raise_to(2, "n2")
    with pytest.raises(FencedError):
        passage.passes()
    assert passage.there() == []


def test_tables_with_dead_letters_are_left_to_others(passage):
    passage.create("id INT PRIMARY KEY, v INT")
    passage.insert("1, 1")
    tables_with_dead_letters = replace(
        passage.ticket, tables_with_dead_letters=frozenset({f"{passage.schema}.t"})
    )
    assert passage.passes(ticket=tables_with_dead_letters) is None


def test_a_source_that_is_gone_may_come_back(passage, monkeypatch):
    passage.create("id INT PRIMARY KEY, v INT")
    passage.insert("1, 1")
    monkeypatch.setattr(
        "setl.systems.mysql.reading.table_reader.rendering",
        lambda _: "(SELECT 1 FROM t WHERE KILL)",
    )
    reader = passage.reader()
    (whole,) = reader.ranges(None, 10, 1)
    broken = replace(reader, endpoint=replace(reader.endpoint, port=1))
    with pytest.raises(TransientError):
        list(broken.rendered(row_text.VALUES, reader.schema.columns, whole.part))
