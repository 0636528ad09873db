"""Triggers of a target that make other rows than the source has."""

from setl.errors import ConfigurationError
from setl.systems.mysql.preflight import trigger_watch
from tests.checking import check_channel
from tests.integration.pipelines import execute, fresh_name, mysql, on_both, one_way, rows, two_way
from tests.waiting import eventually

MAPPED = ("items", "audit")
CASES = {
    "writes": ("AFTER INSERT", "INSERT INTO audit (id, item) VALUES (NEW.id, NEW.id)"),
    "calls": ("AFTER INSERT", "CALL note(NEW.id)"),
    "asks": ("AFTER UPDATE", "SET @noted = noted(NEW.id)"),
    "views": ("AFTER UPDATE", "UPDATE seen SET item = NEW.id WHERE id = NEW.id"),
    "chains": ("AFTER DELETE", "INSERT INTO beside VALUES (OLD.id)"),
    "changes": ("BEFORE UPDATE", "SET NEW.name = UPPER(NEW.name)"),
    "own_column": ("BEFORE INSERT", "SET NEW.arrived = 1"),
    "elsewhere": ("AFTER INSERT", "INSERT INTO apart VALUES (NEW.id)"),
}

NOTED = """CREATE FUNCTION noted(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
    BEGIN CALL note(x); RETURN x; END"""


db = on_both(
    "triggers",
    "CREATE TABLE {db}.items (id INT PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE {db}.audit (id INT PRIMARY KEY, item INT)",
)


def channel(servers, db, accept=()):
    mappings = [{"from": f"{db}.{table}"} for table in MAPPED]
    a, b = servers
    return two_way(a, b, mappings, accept=list(accept))


def found(file):
    return {
        (f.code, f.what.split()[2]): f
        for f in check_channel(file)
        if f.where.startswith("ab,") and "trigger" in f.code
    }


def test_check_says_what_triggers_of_a_target_lead_to(servers, db):
    _, b = servers
    assert found(channel(servers, db)) == {}
    with b.connect(database=db) as connection, connection.cursor() as cursor:
        for statement in (
            "ALTER TABLE items ADD arrived INT",
            "CREATE TABLE beside (id INT PRIMARY KEY)",
            "CREATE TABLE apart (id INT PRIMARY KEY)",
            "CREATE VIEW seen AS SELECT a.* FROM audit a WHERE a.id > 0",
            "CREATE PROCEDURE note(x INT) INSERT INTO audit (id, item) VALUES (x, x)",
            NOTED,
            "CREATE TRIGGER after_beside AFTER INSERT ON beside FOR EACH ROW DELETE FROM audit",
            *(f"CREATE TRIGGER {n} {when} ON items FOR EACH ROW {body}"
              for n, (when, body) in CASES.items()),
        ):  # fmt: skip
            cursor.execute(statement)
    seen = found(channel(servers, db))
    writing = {name for code, name in seen if code == "trigger-writes-mapped"}
    assert writing == {"writes", "calls", "asks", "views", "chains"}
    changing = {name for code, name in seen if code == "trigger-changes-rows"}
    assert changing == {"changes"}
    assert {f.level for (code, _), f in seen.items() if code != "target-triggers"} == {"error"}
    (others,) = (f.what for (code, _), f in seen.items() if code == "target-triggers")
    assert "elsewhere" in others
    assert "own_column" in others
    both = seen["trigger-writes-mapped", "writes"].what
    assert "never goes to the other site, and the two sites differ for good" in both
    accepted = channel(servers, db, [f"trigger-*@{db}.items"])
    assert {f.level for f in found(accepted).values()} == {"accepted", "warning"}


def test_an_event_of_a_target_writes_a_mapped_table(servers, db):
    a, b = servers
    event = (
        f"CREATE EVENT {db}.purge ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01'"
        f" DO DELETE FROM {db}.audit WHERE id < 1"
    )
    before = [rows(server, "(SELECT @@event_scheduler) e")[0][0] for server in servers]
    one = one_way(a, mysql(b), [{"from": f"{db}.{table}"} for table in MAPPED])
    both = channel(servers, db)

    def events(file):
        return [f.id for f in check_channel(file) if f.code == "event-writes-mapped"]

    try:
        execute(b, "SET GLOBAL event_scheduler = ON", event)
        assert events(one) == [f"event-writes-mapped@{db}.audit"]
        assert events(both) == []  # a client of one site, as any other
        execute(a, "SET GLOBAL event_scheduler = ON", event)
        assert events(both) == [f"event-writes-mapped@{db}.audit"] * 2
        execute(b, f"ALTER EVENT {db}.purge DISABLE")
        assert events(one) == []
        assert events(both) == []
    finally:
        for server, value in zip(servers, before, strict=True):
            execute(server, f"SET GLOBAL event_scheduler = {value}")


def test_a_trigger_that_appears_later_stops_the_pipeline(servers, db, position, monkeypatch):
    monkeypatch.setattr(trigger_watch, "SECONDS", 0.0)
    a, b = servers
    file = channel(servers, db)
    running = position.lead(file, "ab")
    execute(a, f"INSERT INTO {db}.items VALUES (1, 'x')")
    running.applied(1)
    execute(
        b,
        f"CREATE TRIGGER {db}.log AFTER INSERT ON {db}.items FOR EACH ROW"
        f" INSERT INTO {db}.audit VALUES (NEW.id, NEW.id)",
    )
    execute(a, f"INSERT INTO {db}.items VALUES (2, 'x')")
    error = running.ends()
    assert isinstance(error, ConfigurationError)
    assert f"the trigger log writes {db}.audit" in str(error)
    assert f"trigger-writes-mapped@{db}.items under `accept`" in error.hint
    assert rows(b, f"{db}.items") == ((1, "x"),)
    assert rows(b, f"{db}.audit") == ()
    execute(b, f"DROP TRIGGER {db}.log")
    position.lead(file, "ab")
    eventually(lambda: len(rows(b, f"{db}.items")) == 2, 60)


def test_triggers_that_let_setl_pass_keep_both_sites_equal(servers, db, position):
    """The hint that the finding names."""
    user = fresh_name("app")
    for site, server in enumerate(servers):
        execute(
            server,
            f"CREATE USER {user}@'%' IDENTIFIED BY 'Secret-1'",
            f"GRANT SELECT, INSERT ON {db}.* TO {user}@'%'",
            f"CREATE TRIGGER {db}.log AFTER INSERT ON {db}.items FOR EACH ROW"
            f" IF SUBSTRING_INDEX(USER(), '@', 1) <> '{server.user}' THEN"
            f" INSERT INTO {db}.audit VALUES (NEW.id * 10 + {site}, NEW.id); END IF",
        )
    file = channel(servers, db, [f"trigger-writes-mapped@{db}.items"])
    assert {f.level for f in found(file).values()} == {"accepted"}
    runs = [position.lead(file, name) for name in ("ab", "ba")]
    for site, server in enumerate(servers):
        client = {"user": user, "password": "Secret-1", "autocommit": True}
        with server.connect(**client) as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {db}.items VALUES (%s, 'x')", [(2 * i + site,) for i in range(20)]
            )
    expected = tuple(
        (10 * (2 * i + site) + site, 2 * i + site) for i in range(20) for site in (0, 1)
    )
    for server in servers:
        eventually(lambda s=server: rows(s, f"{db}.audit") == expected, 60)
        assert len(rows(server, f"{db}.items")) == 40
    assert [run.applied(40).rows_total for run in runs] == [40, 40]
    for server in servers:
        execute(server, f"DROP USER {user}@'%'")
