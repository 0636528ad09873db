"""After an online schema change, the target's table is defined as the source's."""

from unittest.mock import patch

import pytest

from setl import failpoints
from setl.errors import FatalError
from tests.integration.pipelines import execute

CHILD = (
    "CREATE TABLE {db}.p (id INT PRIMARY KEY)",
    "INSERT INTO {db}.p VALUES (1), (2)",
    (
        "CREATE TABLE {db}.c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, m INT, s VARCHAR(9),"
        " CONSTRAINT c_fk FOREIGN KEY (pid) REFERENCES p (id),"
        " FOREIGN KEY (m) REFERENCES p (id) ON UPDATE RESTRICT,"
        " CONSTRAINT c_s CHECK (s <> '\\\\'), CHECK (m >= 0))"
    ),
    "INSERT INTO {db}.c VALUES (1, 1, 2, 'x')",
)
PT = "the shadow as pt-online-schema-change makes it"
BY_HAND = (
    "CREATE TABLE _c_gho (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, m INT, s VARCHAR(9), KEY c_fk"
    " (pid), KEY m (m)"
)
SHADOWS = {
    "like": ["CREATE TABLE _c_gho LIKE c", "ALTER TABLE _c_gho ADD w INT"],
    "like, with a key of its own": [
        "CREATE TABLE _c_gho LIKE c",
        "CREATE INDEX own ON _c_gho (pid)",
        "ALTER TABLE _c_gho DROP KEY m, AUTO_INCREMENT = 70",
    ],
    "like, made twice": [
        "CREATE TABLE _c_gho LIKE c",
        "ALTER TABLE _c_gho ADD CONSTRAINT c_fk2 FOREIGN KEY (pid) REFERENCES p (id)",
        "CREATE TABLE IF NOT EXISTS _c_gho LIKE c",
    ],
    "like, nothing altered": ["CREATE TABLE _c_gho LIKE c"],
    "like, with other constraints": [
        "CREATE TABLE _c_gho LIKE c",
        "ALTER TABLE _c_gho ADD w INT, ADD CONSTRAINT c_fk2 FOREIGN KEY (pid) REFERENCES p (id)",
        "ALTER TABLE _c_gho ADD FOREIGN KEY (m) REFERENCES p (id), ADD CHECK (w <> 5)",
    ],
    "pt": [PT, "ALTER TABLE _c_gho ADD w INT"],
    "pt, one dropped": [PT, "ALTER TABLE _c_gho DROP FOREIGN KEY _c_fk, ADD w INT"],
    "by hand, without": [f"{BY_HAND})"],
    "by hand, others": [
        (
            f"{BY_HAND}, CONSTRAINT other CHECK (m > -1), FOREIGN KEY (m) REFERENCES p (id),"
            " CONSTRAINT c_fk3 FOREIGN KEY (pid) REFERENCES p (id))"
        )
    ],
}


SWAP = (
    "INSERT INTO _c_gho (id, pid, m, s) SELECT id, pid, m, s FROM c",
    "RENAME TABLE c TO _c_del, _c_gho TO c",
)


def run(sites, *statements):
    for entry in sites.entries(*statements):
        sites.apply(entry)


@pytest.fixture
def children(sites):
    for server in (sites.a, sites.b):
        execute(server, *(statement.format(db=sites.db) for statement in CHILD))
    return sites


@pytest.mark.parametrize("how", SHADOWS)
def test_a_table_has_the_constraints_of_the_shadow_that_took_its_position(children, how):
    sites = children
    made = sites.shape(sites.a, "c")[0][1].replace("TABLE `c`", "TABLE `_c_gho`")
    made = made.replace("CONSTRAINT `", "CONSTRAINT `_")
    run(
        sites,
        *(made if statement is PT else statement for statement in SHADOWS[how]),
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
        *SWAP,
        "DROP TABLE _c_del",
    )
    sites.assert_same("c")


OTHERS = {
    ") ROW_FORMAT = COMPRESSED": ("ROW_FORMAT=COMPRESSED", "ROW_FORMAT = COMPRESSED"),
    ", UNIQUE KEY once (s))": ("UNIQUE KEY `once`", "ADD UNIQUE KEY once (s)"),
}


@pytest.mark.parametrize("more", OTHERS)
def test_a_shadow_that_was_made_otherwise_stops_the_pipeline(children, more):
    sites, (named, by_hand) = children, OTHERS[more]
    made = f"{BY_HAND.replace('_c_gho', '_c_new')}, KEY own (s){more}"
    *noted, swap = sites.entries(made, *(text.replace("_c_gho", "_c_new") for text in SWAP))
    for entry in noted:
        sites.apply(entry)
    before = sites.shape(sites.b, "c")
    with pytest.raises(FatalError, match="made") as caught:
        sites.apply(swap)
    assert sites.shape(sites.b, "c") == before
    assert named in caught.value.message
    assert "shadow-definition@schema.table" in caught.value.hint
    assert "as the shadow was made" in caught.value.hint
    execute(sites.b, f"ALTER TABLE {sites.db}.c ADD KEY own (s), {by_hand}")
    sites.apply(swap, number=sites.number)
    sites.assert_same("c")


def test_a_target_whose_table_is_another_one_on_purpose_is_left_as_it_is(children):
    sites = children
    run(sites, "ALTER TABLE c DROP FOREIGN KEY c_fk, DROP FOREIGN KEY c_ibfk_1")
    execute(sites.b, f"ALTER TABLE {sites.db}.c ADD KEY reports (s, m), COMMENT = 'copy'")
    before = sites.shape(sites.b, "c")
    made = sites.shape(sites.a, "c")[0][1].replace("TABLE `c`", "TABLE `_c_gho`")
    *noted, swap = sites.entries(made.replace("CONSTRAINT `c_", "CONSTRAINT `_c_"), *SWAP)
    for entry in noted:
        sites.apply(entry)
    with pytest.raises(FatalError, match="copy"):
        sites.apply(swap)
    assert sites.shape(sites.b, "c") == before
    accepting = sites.ddl_context(marked_drops=False, accept=[f"shadow-definition@{sites.db}.*"])
    done = sites.apply(swap, accepting, number=sites.number)
    assert "keeps what the source's has not: KEY `reports`" in done[0]
    assert "KEY `reports` (`s`,`m`)" in sites.shape(sites.b, "c")[0][1]


def test_a_table_that_was_altered_after_its_shadow_was_made(children):
    sites = children
    made = "CREATE TABLE _c_gho LIKE c"
    *noted, swap = sites.entries(made, "ALTER TABLE c ADD KEY late (s)", *SWAP)
    for entry in noted:
        sites.apply(entry)
    with pytest.raises(FatalError, match="altered after its shadow was created"):
        sites.apply(swap)
    # What was done later, before the pipeline went back, is none of it.
    run(sites, made)
    number = sites.number + 1
    sites.number += 1
    run(sites, "ALTER TABLE c ADD KEY later (m)")
    sites.apply(swap, number=number, generation=2)


def test_a_swap_that_comes_again(children):
    """After a crash in its first step, and after the pipeline has gone back to before it."""
    sites = children
    entries = sites.entries(
        "CREATE TABLE _c_gho LIKE c",
        "ALTER TABLE _c_gho ADD w INT, ADD CONSTRAINT c_fk2 FOREIGN KEY (pid) REFERENCES p (id)",
        *SWAP,
    )
    first = sites.number + 1
    for entry in entries[:-1]:
        sites.apply(entry)
    with patch.object(failpoints, "reached", _dying("ddl.ran")), pytest.raises(ZeroDivisionError):
        sites.apply(entries[-1])
    sites.apply(entries[-1], number=sites.number)
    sites.assert_same("c")
    for number, entry in enumerate(entries, first):
        sites.apply(entry, number=number, generation=2)
    sites.assert_same("c")


BY_HAND_RENAMED = {
    "in two statements": [
        "RENAME TABLE t TO _t_old",
        "CREATE TABLE t (id INT PRIMARY KEY, b INT)",
        "CREATE TABLE other_old (id INT PRIMARY KEY)",
    ],
    "in one": [
        "CREATE TABLE t_new (id INT PRIMARY KEY, b INT)",
        "RENAME TABLE t TO _t_old, t_new TO t",
    ],
    "by ALTER": [
        "ALTER TABLE t RENAME TO _t_old",
        "CREATE TABLE t LIKE nokey",
    ],
    "after an online change": [
        "CREATE TABLE _t_new LIKE t",
        "ALTER TABLE _t_new ADD w INT",
        "INSERT INTO _t_new (id, at, d, n) SELECT id, at, d, n FROM t",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "DROP TABLE _t_old",
        "RENAME TABLE t TO _t_old",
        "CREATE TABLE t (id INT PRIMARY KEY, b INT)",
    ],
}


def names(server, db):
    return [name for (name,) in execute(server, f"SHOW TABLES FROM {db}")]


@pytest.mark.parametrize("how", BY_HAND_RENAMED)
def test_a_table_without_a_shadow_is_renamed_and_goes_with_the_source_s(sites, how):
    run(sites, *BY_HAND_RENAMED[how])
    assert names(sites.a, sites.db) == names(sites.b, sites.db)
    sites.assert_same("t")
    sites.assert_same("_t_old")
    run(sites, "DROP TABLE t", "DROP TABLE IF EXISTS _t_old")
    assert names(sites.a, sites.db) == names(sites.b, sites.db)


@pytest.mark.parametrize("point", ["ddl.begun", "ddl.ran", "ddl.done"])
def test_a_node_that_dies_while_a_table_is_renamed_by_hand(sites, point):
    entries = sites.entries(
        "RENAME TABLE t TO _t_old", "CREATE TABLE t (id INT PRIMARY KEY)", "DROP TABLE _t_old"
    )
    for entry in entries:
        with (
            patch.object(failpoints, "reached", _dying(point)),
            pytest.raises(ZeroDivisionError),
        ):
            sites.apply(entry)
        assert sites.apply(entry, number=sites.number)
    sites.assert_same("t")
    assert names(sites.a, sites.db) == names(sites.b, sites.db)


def test_a_table_of_the_target_alone_does_not_go_with_the_source_s(sites):
    execute(sites.b, f"CREATE TABLE {sites.db}._t_old (id INT)")
    run(sites, "CREATE TABLE _t_old (id INT)", "DROP TABLE _t_old")
    assert "_t_old" in names(sites.b, sites.db)


def test_a_shadow_that_does_not_take_the_position_of_its_table_is_reported(sites):
    run(sites, "CREATE TABLE _t_gho LIKE t", "RENAME TABLE t TO _t_del")
    assert sites.rows(sites.b)
    (entry,) = sites.entries("CREATE TABLE t (id INT PRIMARY KEY)")
    with pytest.raises(FatalError, match="already exists") as caught:
        sites.apply(entry)
    assert "_t_gho" in caught.value.hint
    assert "RENAME TABLE" in caught.value.hint
    execute(sites.b, f"RENAME TABLE {sites.db}.t TO {sites.db}._t_del")
    assert sites.apply(entry, number=sites.number)
    sites.assert_same("t")


def _dying(at):
    def reached(point):
        if point == at:
            raise ZeroDivisionError

    return reached
