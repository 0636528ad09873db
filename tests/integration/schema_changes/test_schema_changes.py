"""Schema changes that are replicated while rows flow, on two real servers."""

import threading

import pymysql
import pytest

from setl.channel.reading import parse_channel
from setl.errors import FatalError, FencedError, TransientError
from setl.run.measured.figures import RunState
from tests.held_points import held
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    mysql,
    on_both,
    one_way,
    rows,
)
from tests.integration.types.test_global_settings import reported
from tests.waiting import eventually

TABLE = "CREATE TABLE {db}.t (id BIGINT PRIMARY KEY, a INT NULL, b VARCHAR(40) NULL)"
SHAPE = (
    "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT,"
    " COLUMN_KEY, EXTRA, COLLATION_NAME, COLUMN_COMMENT FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = '{db}' AND TABLE_NAME NOT LIKE '\\_%' ORDER BY 1, 2"
)


db = on_both("ddl", TABLE)


def shape(server, db):
    return execute(server, SHAPE.format(db=db))


def same(servers, db, *tables):
    a, b = servers
    assert shape(a, db) == shape(b, db)
    for table in tables:
        assert rows(a, f"{db}.{table}") == rows(b, f"{db}.{table}")
    return True


def left_open(server, file):
    """What the record of schema changes holds besides what is done, and known of the source."""
    return execute(
        server,
        "SELECT id, step, state, statement FROM retl.setl_ddl"
        " WHERE state NOT IN ('done', 'default', 'server')"
        f" AND pipeline LIKE '{file.channel}/%'",
    )


class Writing:
    """Inserts rows one by one, whatever columns there are, until it is told to stop."""

    def __init__(self, server, table):
        self.server = server
        self.table = table
        self.written = 0
        self.failed = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        with self.server.connect() as connection, connection.cursor() as cursor:
            while not self._stop.wait(0.005):
                self.written += 1
                try:
                    cursor.execute(
                        f"INSERT INTO {self.table} (id) VALUES (%s)", (1_000_000 + self.written,)
                    )
                except pymysql.MySQLError as error:
                    self.failed.append(error)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


CHANGES = [
    "ALTER TABLE {db}.t ADD COLUMN c VARCHAR(20) NOT NULL DEFAULT 'new' COMMENT '{db}.t' AFTER id",
    "ALTER TABLE {db}.t ADD (d INT, e DECIMAL(10,2) DEFAULT 1.5)",
    "ALTER TABLE {db}.t DROP COLUMN a",
    "ALTER TABLE {db}.t RENAME COLUMN b TO bb, ADD INDEX by_c (c)",
    "ALTER TABLE {db}.t CHANGE bb b VARCHAR(80) CHARACTER SET utf8mb4 NULL",
    "ALTER TABLE {db}.t MODIFY d BIGINT NULL FIRST",
    "CREATE INDEX by_d ON {db}.t (d)",
    "DROP INDEX by_d ON {db}.t",
    "ALTER TABLE {db}.t MODIFY b TEXT CHARACTER SET latin1 NULL, DROP INDEX by_c",
]


def test_every_kind_of_alter_while_rows_flow(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="pass")
    running = position.lead(file)
    with Writing(a, f"{db}.t") as writing:
        before = 0
        for change in CHANGES:
            before = writing.written
            eventually(lambda before=before: writing.written > before + 20, 30)
            execute(a, change.format(db=db))
            execute(a, f"DELETE FROM {db}.t ORDER BY id LIMIT 3")
        eventually(lambda: writing.written > before + 60, 30)
    assert not writing.failed
    eventually(lambda: same(servers, db, "t"), 90)
    figures = running.figures
    assert (figures.ddl_replicated, figures.ddl_ignored) == (len(CHANGES), 0)
    assert "latin1" in figures.last_ddl


def ddl_context(servers, db, position, **options):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="pass", **options)
    return file, position.lead(file)


def test_a_table_is_made_where_rows_can_go_whatever_the_target_makes_by_itself(
    servers, db, position
):
    a, b = servers
    _, running = ddl_context(servers, db, position)
    with reported(b, "default_storage_engine", "MyISAM"):
        execute(a, f"CREATE TABLE {db}.u (id INT PRIMARY KEY)", f"INSERT INTO {db}.u VALUES (1)")
        running.applied(1)
    execute(
        a,
        f"CREATE TABLE {db}.v (id INT PRIMARY KEY) ENGINE=MyISAM ROW_FORMAT=FIXED",
        f"INSERT INTO {db}.v VALUES (1)",
        f"ALTER TABLE {db}.u ENGINE=MEMORY",
        f"INSERT INTO {db}.u VALUES (2)",
    )
    running.applied(3)
    assert same(servers, db, "u", "v")


def test_tables_are_created_renamed_truncated_and_dropped(servers, db, position):
    a, b = servers
    file, running = ddl_context(servers, db, position)
    execute(
        a,
        f"INSERT INTO {db}.t (id) VALUES (1), (2)",
        f"USE {db}",
        "CREATE TABLE u (id INT PRIMARY KEY, t BIGINT, FOREIGN KEY (t) REFERENCES t(id))",
        "INSERT INTO u VALUES (1, 1), (2, 2)",
        "CREATE TABLE v LIKE t",
        "INSERT INTO v (id) VALUES (7)",
        "CREATE TABLE w COMMENT 'made' AS SELECT 1 AS id, 'x' AS s FROM v WHERE id < 0",
        "ALTER TABLE w ADD PRIMARY KEY (id)",
        "INSERT INTO w VALUES (5, 'v')",
        "TRUNCATE v",
        "INSERT INTO v (id) VALUES (8)",
        "RENAME TABLE v TO between_, w TO v, between_ TO w",
        "INSERT INTO v VALUES (6, 'z')",
        "INSERT INTO w (id) VALUES (9)",
        "ALTER TABLE w ADD x INT, RENAME TO w2",
        "ALTER TABLE w2 RENAME w2",
        "INSERT INTO w2 (id, x) VALUES (10, 10)",
        "DROP TABLE u, v",
        "CREATE TABLE u (k INT PRIMARY KEY)",
        "INSERT INTO u VALUES (3)",
        "DROP TABLE IF EXISTS never_there",
    )
    execute(a, f"INSERT INTO {db}.t (id) VALUES (3)")
    eventually(lambda: len(rows(b, f"{db}.t")) == 3, 60)
    assert same(servers, db, "t", "u", "w2")
    assert [r[0] for r in execute(b, f"SHOW TABLES FROM {db}")] == ["t", "u", "w2"]
    assert running.figures.ddl_ignored == 0
    assert left_open(b, file) == ()


def ghost(db, alter):
    """What gh-ost runs, in its order; rows of the table flow meanwhile."""
    return [
        f"drop /* gh-ost */ table if exists `{db}`.`_t_gho`",
        f"drop /* gh-ost */ table if exists `{db}`.`_t_del`",
        (
            f"create /* gh-ost */ table `{db}`.`_t_ghc` (id bigint auto_increment primary key,"
            " last_update timestamp not null DEFAULT CURRENT_TIMESTAMP, hint varchar(64), value"
            " varchar(4096), unique key hint_uidx(hint)) auto_increment=256"
        ),
        f"create /* gh-ost */ table `{db}`.`_t_gho` like `{db}`.`t`",
        f"alter /* gh-ost */ table `{db}`.`_t_gho` {alter}",
        f"insert /* gh-ost */ into `{db}`.`_t_ghc` (hint, value) values ('state', 'Migrated')",
        (
            f"insert /* gh-ost `{db}`.`t` */ ignore into `{db}`.`_t_gho` (id, a, b)"
            f" (select id, a, b from `{db}`.`t` force index (`PRIMARY`) lock in share mode)"
        ),
        f"replace /* gh-ost */ into `{db}`.`_t_gho` (id, a, b) values (1, 11, 'changed')",
        (
            f"create /* gh-ost */ table `{db}`.`_t_del` (id int auto_increment primary key)"
            " engine=InnoDB comment='ghost-cut-over-sentry'"
        ),
        f"drop /* gh-ost */ table if exists `{db}`.`_t_del`",
        f"rename /* gh-ost */ table `{db}`.`t` to `{db}`.`_t_del`, `{db}`.`_t_gho` to `{db}`.`t`",
        f"drop /* gh-ost */ table if exists `{db}`.`_t_ghc`",
        f"drop /* gh-ost */ table if exists `{db}`.`_t_del`",
    ]


def test_a_swap_as_gh_ost_makes_it(servers, db, position):
    a, b = servers
    file, running = ddl_context(servers, db, position)
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x'), (2, 2, 'y')")
    statements = ghost(db, "ADD COLUMN c INT DEFAULT 5, MODIFY b VARCHAR(99), DROP COLUMN a")
    statements = [
        s.replace("(id, a, b)", "(id, b)").replace("id, a, b", "id, b") for s in statements
    ]
    statements = [s.replace("(1, 11, 'changed')", "(1, 'changed')") for s in statements]
    for statement in statements:
        execute(a, statement)
        if "cut-over" in statement:
            execute(a, f"UPDATE {db}.t SET b = 'changed' WHERE id = 1")
    execute(a, f"INSERT INTO {db}.t (id, c) VALUES (3, 33)")
    eventually(lambda: len(rows(b, f"{db}.t")) == 3, 60)
    assert same(servers, db, "t")
    assert [r[0] for r in execute(b, f"SHOW TABLES FROM {db}")] == ["t"]
    running.applied(4)  # rows are counted a moment after they can be seen
    assert running.figures.rows_total == 4, "rows of the shadow were loaded"
    assert left_open(b, file) == ()


def test_a_swap_as_pt_online_schema_change_makes_it(servers, db, position):
    a, b = servers
    _, running = ddl_context(servers, db, position)
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x'), (2, 2, 'y')")
    on_t = f"ON `{db}`.`t` FOR EACH ROW"
    into = f"REPLACE INTO `{db}`.`_t_new` (`id`, `a`, `b`) VALUES (NEW.`id`, NEW.`a`, NEW.`b`)"
    with Writing(a, f"{db}.t") as writing:
        execute(
            a,
            f"CREATE TABLE `{db}`.`_t_new` (\n  `id` bigint NOT NULL,\n  `a` int DEFAULT NULL,\n"
            "  `b` varchar(40) DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB",
            f"ALTER TABLE `{db}`.`_t_new` ADD COLUMN c INT NOT NULL DEFAULT 5, ADD KEY by_a (a)",
            f"CREATE TRIGGER `{db}`.`pt_osc_t_del` AFTER DELETE {on_t} DELETE IGNORE FROM"
            f" `{db}`.`_t_new` WHERE `{db}`.`_t_new`.`id` <=> OLD.`id`",
            f"CREATE TRIGGER `{db}`.`pt_osc_t_upd` AFTER UPDATE {on_t} {into}",
            f"CREATE TRIGGER `{db}`.`pt_osc_t_ins` AFTER INSERT {on_t} {into}",
            f"INSERT LOW_PRIORITY IGNORE INTO `{db}`.`_t_new` (`id`, `a`, `b`) SELECT `id`, `a`,"
            f" `b` FROM `{db}`.`t` LOCK IN SHARE MODE /*pt-online-schema-change 1 copy table*/",
            f"UPDATE {db}.t SET a = 20 WHERE id = 2",
        )
        before = writing.written
        eventually(lambda: writing.written > before + 30, 30)
        execute(
            a,
            f"RENAME TABLE `{db}`.`t` TO `{db}`.`_t_old`, `{db}`.`_t_new` TO `{db}`.`t`",
            f"DROP TABLE IF EXISTS `{db}`.`_t_old`",
            *(f"DROP TRIGGER IF EXISTS `{db}`.`pt_osc_t_{what}`" for what in ("del", "upd", "ins")),
        )
        before = writing.written
        eventually(lambda: writing.written > before + 30, 30)
    assert not writing.failed
    eventually(lambda: same(servers, db, "t"), 60)
    assert execute(b, f"SELECT a, c FROM {db}.t WHERE id = 2") == ((20, 5),)
    assert execute(b, f"SHOW TRIGGERS FROM {db}") == ()
    assert [r[0] for r in execute(b, f"SHOW TABLES FROM {db}")] == ["t"]
    running.applied(writing.written + 3)
    assert running.figures.rows_total == writing.written + 3, "rows of the shadow were loaded"


def test_a_swap_whose_beginning_was_not_seen_stops_and_can_be_mended_by_hand(servers, db, position):
    a, b = servers
    for statement in ghost(db, "ADD COLUMN c INT")[:8]:
        execute(a, statement)
    file, running = ddl_context(servers, db, position)
    for statement in ghost(db, "")[8:]:
        execute(a, statement)
    execute(a, f"INSERT INTO {db}.t (id, c) VALUES (2, 2)")
    error = running.ends()
    assert isinstance(error, FatalError)
    assert "_t_gho replaces" in str(error)
    execute(
        b,
        f"ALTER TABLE {db}.t ADD COLUMN c INT",
        f"INSERT INTO {db}.t VALUES (1, 11, 'changed', NULL)",
    )
    execute(b, error.hint.partition("run there: ")[2].partition(";")[0])
    position.lead(file)
    eventually(lambda: same(servers, db, "t"), 60)


OTHER_SWAPS = {
    # gh-ost copies values by the names of columns, so that they stay.
    "has another column a now": [
        "CREATE TABLE {db}._t_gho LIKE {db}.t",
        "ALTER TABLE {db}._t_gho DROP COLUMN a, ADD COLUMN a INT DEFAULT 7",
        "INSERT INTO {db}._t_gho (id, a, b) SELECT id, a, b FROM {db}.t",
        "RENAME TABLE {db}.t TO {db}._t_del, {db}._t_gho TO {db}.t",
    ],
    "was made with the columns c": [
        "CREATE TABLE {db}._t_new (id BIGINT PRIMARY KEY, a INT, b VARCHAR(40), c INT, KEY (c))",
        "INSERT INTO {db}._t_new (id, a, b) SELECT id, a, b FROM {db}.t",
        "RENAME TABLE {db}.t TO {db}._t_old, {db}._t_new TO {db}.t",
    ],
    "is dropped while an online schema change of it is under way": [
        "CREATE TABLE {db}._t_new (id BIGINT PRIMARY KEY, a INT, b VARCHAR(40))",
        "ALTER TABLE {db}._t_new ADD COLUMN c INT DEFAULT 7",
        "INSERT INTO {db}._t_new (id, a, b) SELECT id, a, b FROM {db}.t",
        "DROP TABLE {db}.t",
        "RENAME TABLE {db}._t_new TO {db}.t",
    ],
}


@pytest.mark.parametrize("why", OTHER_SWAPS)
def test_a_swap_that_its_statements_do_not_tell_stops(servers, db, position, why):
    a, b = servers
    file, running = ddl_context(servers, db, position)
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x')")
    execute(a, *(statement.format(db=db) for statement in OTHER_SWAPS[why]))
    error = running.ends()
    assert why in error.message
    assert rows(b, f"{db}.t") == ((1, 1, "x"),)
    if "dropped" in why:  # the hint leads on
        execute(b, error.hint.partition("run there: ")[2].partition(";")[0])
        position.lead(file)
        eventually(lambda: same(servers, db, "t"), 60)
        assert rows(b, f"{db}.t") == ((1, 1, "x", 7),)


DYING = {
    "swap columns": ["ALTER TABLE {db}.t RENAME COLUMN a TO b, RENAME COLUMN b TO a"],
    "truncate": ["TRUNCATE {db}.t"],
    "create": ["CREATE TABLE {db}.u LIKE {db}.t", "INSERT INTO {db}.u (id) VALUES (1)"],
    "add": ["ALTER TABLE {db}.t ADD c INT DEFAULT 3"],
    "swap tables": ["RENAME TABLE {db}.t TO {db}.u, {db}.s TO {db}.t, {db}.u TO {db}.s"],
    "drop": ["DROP TABLE {db}.s"],
}
DYING_AT = [
    # The next leader has to find out whether the change has run, which each kind tells otherwise.
    *((kind, point) for kind in DYING for point in ("ddl.begun", "ddl.ran")),
    # That it has is written down, whatever it was; these would be undone by running once more.
    *(
        (kind, point)
        for kind in ("swap columns", "swap tables")
        for point in ("ddl.done", "checkpoint.stored")
    ),
]


@pytest.mark.parametrize(("kind", "point"), DYING_AT)
def test_a_node_that_dies_at_any_point_of_a_change(servers, db, position, kind, point):
    a, b = servers
    for server in servers:
        execute(server, f"CREATE TABLE {db}.s (id INT PRIMARY KEY)")
    file, first = ddl_context(servers, db, position)
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'one'), (2, 2, 'two')")
    first.applied(2)
    with held(point) as there:
        for change in DYING[kind]:
            execute(a, change.format(db=db))
        execute(a, f"INSERT INTO {db}.t (id) VALUES (4)")
        assert there.wait(30)
        second = position.lead(file, nid="n2")
        eventually(lambda: second.figures.state is RunState.RUNNING, 60)
        eventually(lambda: same(servers, db, "t"), 60)
    # If the first one had done all before the other came, this is what it is fenced off from.
    execute(a, f"INSERT INTO {db}.t (id) VALUES (5)")
    assert isinstance(first.ends(), FencedError | TransientError)
    eventually(lambda: same(servers, db, "t"), 60)
    assert execute(a, f"SHOW TABLES FROM {db}") == execute(b, f"SHOW TABLES FROM {db}")
    assert left_open(b, file) == ()


@pytest.fixture
def both_ways(servers, db, position):
    """Two pipelines that pass schema changes on to each other, as (forth, back)."""
    a, b = servers
    ends = [(a, b), (b, a)]
    pipelines = [
        {
            "name": name,
            "source": {**mysql(source), "start": binlog_end(source), "heartbeat": 0},
            "target": mysql(target),
            "tables": [{"from": f"{db}.*"}],
            "ddl": "pass",
        }
        for name, (source, target) in zip(("forth", "back"), ends, strict=True)
    ]
    file = parse_channel({"channel": fresh_name("both"), "pipelines": pipelines})
    return position.lead(file, "forth"), position.lead(file, "back")


def test_nothing_goes_round_between_two_sites(servers, db, both_ways):
    a, b = servers
    execute(
        a,
        f"ALTER TABLE {db}.t ADD c INT",
        f"INSERT INTO {db}.t (id, c) VALUES (1, 1)",
        f"CREATE TABLE {db}.u LIKE {db}.t",
        f"CREATE TABLE {db}.gone (id INT PRIMARY KEY) AS SELECT 1 AS id",
        f"CREATE INDEX by_c ON {db}.u (c)",
        f"TRUNCATE {db}.u",
        f"RENAME TABLE {db}.u TO {db}.v",
        f"DROP TABLE {db}.gone",
    )
    eventually(lambda: same(servers, db, "t", "v"), 60)
    execute(
        b,
        f"CREATE TABLE {db}.gone (id INT PRIMARY KEY)",
        f"INSERT INTO {db}.gone VALUES (2)",
        f"DROP TABLE IF EXISTS {db}.gone, {db}.v",
        f"ALTER TABLE {db}.t DROP COLUMN c",
        f"CREATE TABLE {db}.w (id INT PRIMARY KEY)",
        f"INSERT INTO {db}.t (id) VALUES (2)",
    )
    eventually(lambda: same(servers, db, "t", "w") and shape(a, db), 60)
    # Whatever were still to go round lies before these rows in the two binlogs.
    execute(a, f"INSERT INTO {db}.t (id) VALUES (3)")
    execute(b, f"INSERT INTO {db}.t (id) VALUES (4)")
    eventually(lambda: len(rows(a, f"{db}.t")) == len(rows(b, f"{db}.t")) == 4, 60)
    passed = [(r.figures.ddl_replicated, r.figures.ddl_ignored) for r in both_ways]
    assert passed == [(7, 0), (4, 0)]
    assert [len(names) for names in ddl_in_binlog(servers, db)] == [1 + 7 + 7, 1 + 8 + 4]


@pytest.mark.parametrize(
    "changes",
    [
        ["DROP TABLE {db}.t", "CREATE TABLE {db}.t (id BIGINT PRIMARY KEY)"],
        ["RENAME TABLE {db}.t TO {db}.v, {db}.u TO {db}.t, {db}.v TO {db}.u"],
        ["RENAME TABLE {db}.t TO {db}.v", "CREATE TABLE {db}.t LIKE {db}.v"],
        ["ALTER TABLE {db}.t RENAME {db}.v", "ALTER TABLE {db}.u RENAME TO {db}.t"],
    ],
    ids=["dropped and created", "swapped", "rotated", "altered"],
)
def test_no_table_replaces_another_where_both_sites_write(servers, db, both_ways, changes):
    """A row on its way back would come to the new table at A, and be in the old one at B."""
    a, b = servers
    forth, back = both_ways
    execute(a, f"CREATE TABLE {db}.u LIKE {db}.t", f"INSERT INTO {db}.t (id) VALUES (1)")
    eventually(lambda: same(servers, db, "t", "u"), 60)
    execute(a, *(change.format(db=db) for change in changes))
    error = forth.ends()
    assert isinstance(error, FatalError)
    assert "puts another table instead of" in error.message
    assert f"replaced-table@{db}." in error.hint
    assert back.error is None
    if "CREATE" in changes[-1]:  # by then B has no table of that name, so that nobody writes there
        assert (("t",) in execute(b, f"SHOW TABLES FROM {db}")) is False


def test_a_table_without_rows_may_make_room_for_another(servers, db, both_ways):
    a, _ = servers
    execute(
        a,
        f"DROP TABLE {db}.t",
        f"CREATE TABLE {db}.t (id BIGINT PRIMARY KEY, c INT)",
        f"RENAME TABLE {db}.t TO {db}.v",
        f"CREATE TABLE {db}.t LIKE {db}.v",
        f"INSERT INTO {db}.t VALUES (1, 2)",
        f"RENAME TABLE {db}.t TO {db}.u",
        f"RENAME TABLE {db}.u TO {db}.t",  # the same table comes back
        f"INSERT INTO {db}.t VALUES (2, 3)",
    )
    both_ways[0].applied(2, timeout=60)
    assert same(servers, db, "t", "v")


def ddl_in_binlog(servers, db):
    """The statements about a database in the last binlogs of each server, which may begin one."""
    found = []
    for server in servers:
        files = [row[0] for row in execute(server, "SHOW BINARY LOGS")][-4:]
        events = [
            row for file in files for row in execute(server, f"SHOW BINLOG EVENTS IN '{file}'")
        ]
        texts = [str(row[5]) for row in events if row[2] == "Query" and db in str(row[5])]
        found.append([text for text in texts if "DATABASE" not in text])
    return found


def test_a_fresh_node_decodes_rows_from_before_the_changes(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="pass")
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'one')")
    for number, change in enumerate(CHANGES, start=2):
        execute(a, change.format(db=db), f"INSERT INTO {db}.t (id) VALUES ({number})")
    execute(a, f"ALTER TABLE {db}.t RENAME {db}.s", f"UPDATE {db}.s SET c = 'last' WHERE id < 4")
    position.lead(file, nid="n9")
    eventually(lambda: same(servers, db, "s"), 60)


def test_a_target_that_was_changed_first_needs_nothing_replicated(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="ignore")
    running = position.lead(file)
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'one')")
    running.applied(1)
    for server in (b, a):
        execute(server, f"ALTER TABLE {db}.t ADD c INT NULL FIRST, MODIFY b TEXT")
    execute(a, f"INSERT INTO {db}.t (id, c) VALUES (2, 2)")
    running.applied(2)
    assert same(servers, db, "t")
    assert (running.figures.ddl_replicated, running.figures.ddl_ignored) == (0, 1)


def test_what_an_ignored_change_leads_to_names_it(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}], ddl="ignore")
    running = position.lead(file)
    execute(a, f"ALTER TABLE {db}.t ADD COLUMN added INT")
    figures = eventually(lambda: running.figures.ddl_ignored and running.figures, 30)
    assert "ADD COLUMN added INT (at " in figures.last_ddl_ignored
    assert " UTC)" in figures.last_ddl_ignored
    execute(a, f"INSERT INTO {db}.t (id, added) VALUES (1, 1)")
    error = running.ends()
    assert "added" in error.message
    assert "A schema change was ignored before: ALTER TABLE" in error.hint
    assert "sql_log_bin = 0" in error.hint  # else it comes back where both sites pass changes on
    assert "`setl start`" in error.hint
    # Fixed as the error says, it goes on where it stopped.
    execute(b, f"ALTER TABLE {db}.t ADD COLUMN added INT")
    running = position.lead(file)
    running.applied(1)
    assert rows(b, f"{db}.t") == rows(a, f"{db}.t")


def test_a_node_that_is_killed_while_tables_change(servers, db, position):
    a, b = servers
    file, running = ddl_context(servers, db, position)
    with Writing(a, f"{db}.t") as writing:
        for number, change in enumerate(CHANGES):
            before = writing.written
            eventually(lambda before=before: writing.written > before + 10, 30)
            execute(a, change.format(db=db))
            if number % 2:
                running.run.abort()
                running = position.lead(file, nid=f"n{number}")

    def arrived():
        if not running.thread.is_alive():
            pytest.fail(f"the last leader ended: {running.error!r}")
        return same(servers, db, "t")

    eventually(arrived, 90)
    # A change is written down as done after it can be seen.
    eventually(lambda: left_open(b, file) == (), 30)


def test_expressions_go_on_with_new_columns(servers, db, position):
    a, b = servers
    execute(b, f"ALTER TABLE {db}.t ADD twice BIGINT")
    mapping = {"from": f"{db}.t", "columns": {"twice": "a * 2"}, "where": "id < 100"}
    running = position.lead(one_way(a, mysql(b), [mapping], ddl="pass"))
    execute(a, f"INSERT INTO {db}.t VALUES (1, 1, 'x'), (200, 1, 'x')")
    running.applied(2)
    execute(a, f"ALTER TABLE {db}.t ADD c INT FIRST", f"INSERT INTO {db}.t VALUES (7, 2, 2, 'y')")
    running.applied(3)
    found = execute(b, f"SELECT id, a, b, c, twice FROM {db}.t ORDER BY id")
    assert found == ((1, 1, "x", None, 2), (2, 2, "y", 7, 4))
