"""Files are read as written, and everything wrong in them is said at once."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from setl.channel.fields.endpoints import BUILT_IN_TARGETS, LoadStart
from setl.channel.file import BinlogStart, ChannelFile, GtidStart, OffsetStart, TableMapping
from setl.channel.reading import (
    ChannelFileError,
    definition_warnings,
    parse_channel,
    read_channel_definition,
    read_channel_file,
    resolve_and_parse,
)
from setl.errors import ConfigurationError
from tests.index_products import type_of

from .channels import DTS, ONE_WAY, REMOVED, SEARCH, changed, pipelines_of

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"
BUILT_IN = ", ".join(f"`{type_of(form)}`" for form in BUILT_IN_TARGETS)
SECRETS = {"A_PASSWORD": "a", "B_PASSWORD": "b", "DTS_PASSWORD": "d", "ES_KEY": "k"}


def problems_of(definition):
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(definition)
    return [(p.path, p.message) for p in caught.value.problems]


def only_problem(definition):
    (problem,) = problems_of(definition)
    return problem


def test_ten_mistakes_give_ten_lines():
    definition = read_channel_definition(DATA / "ten_mistakes.yaml")
    with pytest.raises(ConfigurationError) as caught:
        resolve_and_parse(definition, {})
    assert str(caught.value).splitlines() == [
        f"{DATA / 'ten_mistakes.yaml'} has 10 mistakes:",
        "  chanel: is an unknown key; did you mean `channel`? (line 1)",
        (
            "  pipelines[0].name: must be 1 to 64 letters, digits, dots, dashes or underscores,"
            " not `orders to search` (line 3)"
        ),
        (
            "  pipelines[0].source.host: must be a host name or an address, without a scheme, user"
            " or path, not `mysql://db1` (line 4)"
        ),
        "  pipelines[0].source.port: must be at most 65535, not 70000 (line 4)",
        (
            # The last one is the target of another package, which is installed for the tests.
            f"  pipelines[0].target.type: must be {BUILT_IN} or `jsonlines`"
            " (did you mean `elasticsearch`?), not `elastic` (line 5)"
        ),
        (
            "  pipelines[0].tables[0].from: must be schema.table (write a dot inside a name as"
            " \\.), not `orders` (line 7)"
        ),
        "  pipelines[0].tables[1].columns.total: must not be empty (line 10)",
        (
            "  pipelines[0].tables[1].exclude: cannot be given together with `include`; choose one"
            " of them (line 12)"
        ),
        "  pipelines[0].batch_rows: must be a whole number, not `many` (line 13)",
        "  pipelines[0].ddl: must be `ignore`, `stop` or `pass`, not `skip` (line 14)",
    ]
    assert "hunter2" not in str(caught.value)


def test_errors_survive_pickling():
    with pytest.raises(ChannelFileError) as caught:
        parse_channel({})
    again = pickle.loads(pickle.dumps(caught.value.at(channel="x")))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


@pytest.mark.parametrize("file", ["two_way.yaml", "dts_to_search.yaml"])
def test_good_files(file):
    definition = read_channel_definition(DATA / file)
    assert isinstance(resolve_and_parse(definition, SECRETS), ChannelFile)
    # Without an environment references are text, which is enough for a look at the file.
    assert isinstance(read_channel_file(DATA / file), ChannelFile)
    assert definition_warnings(definition) == ()


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("shop*.yaml")), ids=lambda f: f.name)
def test_published_examples(file):
    environment = {"SHOP_A_PASSWORD": "a", "SHOP_B_PASSWORD": "b"}
    assert read_channel_file(file, environment).pipelines


def test_values_arrive():
    file = resolve_and_parse(read_channel_definition(DATA / "two_way.yaml"), SECRETS)
    first, second = pipelines_of(file)
    assert (first.source.port, first.source.password, first.source.heartbeat) == (3307, "a", 0)
    assert (second.source.start, second.target.fence_timeout) == ("earliest", 2.5)
    assert first.tables[0].from_ == "shop.*"
    assert pickle.loads(pickle.dumps(file)) == file


def test_passwords_are_not_shown():
    file = resolve_and_parse(
        changed("pipelines[0].source", {**DTS, "user": "u", "password": "hunter2",
                                        "kafka": {"ssl_password": "hunter3"}}), {}
    )  # fmt: skip
    assert "hunter" not in repr(file)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"file": "bin.000003"}, BinlogStart(file="bin.000003", offset=4)),
        ({"file": "bin.000003", "offset": 99}, BinlogStart(file="bin.000003", offset=99)),
        ({"gtid": "0-1-17"}, GtidStart(gtid="0-1-17")),
        ({"load": True}, LoadStart(load=True)),
        ("latest", "latest"),
    ],
)
def test_start_of_a_binlog(start, expected):
    file = parse_channel(changed("pipelines[0].source.start", start))
    source: Any = file.pipelines[0].source
    assert source.start == expected


def test_start_of_a_topic():
    file = parse_channel(changed("pipelines[0].source", {**DTS, "start": {"offset": 5}}))
    source: Any = file.pipelines[0].source
    assert source.start == OffsetStart(offset=5)


P, S, T, M = "pipelines[0]", "pipelines[0].source", "pipelines[0].target", "pipelines[0].tables[0]"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("channel", REMOVED, "is required"),
        ("channel", None, "has no value; give it one or remove the key"),
        ("channel", "", "must be 1 to 64 letters, digits, dots, dashes or underscores"),
        ("channel", "..", "must be 1 to 64 letters, digits, dots, dashes or underscores, not `..`"),
        ("channel", 5, "must be text (put it in quotes), not 5"),
        ("channel", True, "must be text (put it in quotes), not true"),
        ("mark_id", 0, "must be at least 1, not 0"),
        ("mark_id", 1 << 31, "must be below 2147483648, not 2147483648"),
        ("pipelines", [], "must have at least one item"),
        ("pipelines", {}, "must be a list (each item on a line that begins with -), not a mapping"),
        (P, "x", "must be a mapping of keys to values, not `x`"),
        (S, [], "must be a mapping of keys to values, not a list"),
        (f"{S}.type", REMOVED, "is required and says which kind this is"),
        (f"{S}.type", "mysq", "must be `mysql` or `kafka` (did you mean `mysql`?), not `mysq`"),
        (f"{S}.type", "dts", "is a format: write `type: kafka`; `format: dts` is the default"),
        (f"{T}.type", "dts", "is a format: write `type: kafka`; `format: dts` is the default"),
        (f"{S}.host", "db1:3306", "must not have a port in it; write `port:` for that"),
        (f"{S}.port", 0, "must be at least 1, not 0"),
        (f"{S}.port", True, "must be a number, not true"),
        (f"{S}.port", 3306.5, "must be a whole number, not 3306.5"),
        (f"{S}.user", " ", "must not be empty"),
        (f"{S}.pasword", "hunter2", "is an unknown key; did you mean `password`?"),
        (f"{S}.password", 12345, "must be text (put it in quotes)"),
        (f"{S}.server_id", 1 << 32, "must be at most 4294967295, not 4294967296"),
        (f"{S}.heartbeat", -1, "must be at least 0, not -1"),
        (f"{S}.start", "latets",
         "must be `latest` or `earliest` (did you mean `latest`?), not `latets`"),
        (f"{S}.start", {"offset": 4},
         ("must be latest, earliest, {load: true}, {file: …, offset: …} or {gtid: …},"
          " not a mapping")),
        (f"{S}.start", {"load": False}, "must be `true`, not false"),
        (f"{S}.start", {"file": "x"},
         "must be the name of a binlog file, such as mysql-bin.000003, not `x`"),
        (f"{S}.start", {"file": "x.1", "offset": 3}, "must be at least 4, not 3"),
        (f"{T}.fence_timeout", 0, "must be above 0, not 0"),
        (f"{T}.fence_timeout", float("inf"), "must be a number, not inf"),
        (f"{P}.tables", [], "must have at least one item"),
        (f"{P}.batch_rows", 0, "must be at least 1, not 0"),
        (f"{P}.batch_bytes", 1 << 31, "must be at most 1073741824, not 2147483648"),
        (f"{P}.batch_wait", 0, "must be above 0, not 0"),
        (f"{P}.window", 1025, "must be at most 1024, not 1025"),
        (f"{P}.rows_per_task", "1e3", "must be a whole number, not `1e3`"),
        (f"{P}.generation", 0, "must be at least 1, not 0"),
        (f"{P}.generation", 2048, "must be below 2048, not 2048"),
        (f"{P}.checkpoint", "disk", "must be `target`, `zookeeper`, `kafka` or `file`, not `disk`"),
        (f"{M}.from", "mysql.user", "must not name a system schema, which is never replicated"),
        (f"{M}.from", "shop.", "must not leave a name empty"),
        (f"{M}.to", "", "must not be empty"),
        (f"{M}.to", "a.b.c",
         "must be schema.table or table (write a dot inside a name as \\.), not `a.b.c`"),
        (f"{M}.to", "x_*",
         ("has 1 * where `from` has 0 wildcards; write as many, or none to bring all tables"
         " together")),
        (f"{M}.where", "  ", "must not be empty"),
        (f"{M}.key", [], "must have at least one item"),
        (f"{M}.group", "a b",
         "must be 1 to 64 letters, digits, dots, dashes or underscores, not `a b`"),
        (f"{M}.columns", {"a": " "}, "must not be empty"),
        (f"{M}.include", [], "is empty and there are no `columns`, so nothing would be written"),
        (f"{M}.from_", "a.b", "is an unknown key; did you mean `from`?"),
        ("accept", ["a@source"], "is an unknown key here; it belongs in `pipelines`"),
        (f"{P}.host", "db1", "is an unknown key here; it belongs in `source` or `target`"),
        (f"{P}.conflict", "home", "is an unknown key here; it belongs in `tables`"),
        (f"{P}.colour", 1,
         ("is an unknown key; known are name, source, target, tables, batch_rows, batch_bytes,"
         " batch_wait, window, buffer_bytes, rows_per_task, create, ddl, faulty_rows,"
         " dead_letter_limit, accept, checkpoint, checkpoint_file, checkpoint_interval,"
         " load_limits,"
         " verify, alarms, generation, nodes")),
        (f"{P}.verify", {}, "is required"),
        (f"{P}.verify", {"every": "soon"},
         "must be a time such as 6h, 90m or 1d 12h, or a number of seconds, not `soon`"),
    ],
)  # fmt: skip
def test_one_mistake_one_readable_line(path, value, message):
    where, what = only_problem(changed(path, value))
    assert what == message
    assert where.startswith(path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"hosts": []}, "must have at least one item"),
        ({"hosts": ["es1:9200"]}, "must be a URL such as https://es1:9200, not `es1:9200`"),
        ({"hosts": ["http://u:hunter2@es1"]},
         "must not have an account in it; write `user:` and `password:` for that"),
        ({"hosts": ["ftp://u:hunter2@es1"]},
         "must be a URL such as https://es1:9200, not `ftp://…@es1`"),
        ({"api_key": "k", "user": "u"},
         "cannot be given together with `user`; choose one of them"),
        ({"password": "p"}, "is required where there is a password"),
    ],
)  # fmt: skip
def test_mistakes_of_an_elasticsearch_target(target, message):
    definition = changed(T, {**SEARCH, **target})
    assert only_problem(definition)[1] == message


@pytest.mark.parametrize(
    ("source", "path", "message"),
    [
        ({"brokers": ["k1"]}, ".brokers[0]", "must be host:port, not `k1`"),
        ({"brokers": "k1:9092"}, ".brokers",
         "must be a list (each item on a line that begins with -), not `k1:9092`"),
        ({"partition": -1}, ".partition", "must be at least 0, not -1"),
        ({"start": {"timestamp": 1750000000000}}, ".start.timestamp",
         "must be in seconds since 1970, not in milliseconds, not 1750000000000"),
        ({"kafka": {"group.id": "x"}}, ".kafka.group.id",
         "cannot be set; setl keeps the position in the topic itself"),
        ({"kafka": {"a": [1]}}, ".kafka.a", "must be text, a number, true or false, not a list"),
        ({"password": "p"}, ".user", "is required where there is a password"),
        ({"partition": 1, "partitions": 2}, ".partition",
         "cannot be given together with `partitions`; choose one of them"),
        ({"mode": "subscribe"}, ".sid", "is required to subscribe: it is the consumer group"),
        ({"mode": "subscribe", "sid": "s", "partition": 1}, ".partition",
         ("cannot be chosen with `mode: subscribe`, where the group deals partitions out; assign"
          " them instead")),
        ({"mechanism": "MD5"}, ".mechanism",
         "must be `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`, not `MD5`"),
    ],
)  # fmt: skip
def test_mistakes_of_a_dts_source(source, path, message):
    assert only_problem(changed(S, {**DTS, **source})) == (S + path, message)


@pytest.mark.parametrize(
    ("target", "path", "message"),
    [
        ({"kafka": {"acks": "1"}}, ".kafka.acks", "cannot be set; `delivery` decides it"),
        ({"partitions": 4}, ".partitions",
         "would leave all but the first empty; choose `partition_by: table` or `key`"),
        ({"delivery": "often"}, ".delivery",
         "must be `transactional`, `idempotent` or `one_in_flight`, not `often`"),
        ({"password": "p"}, ".user", "is required where there is a password"),
        ({"schema_changes": False}, ".schema_changes",
         "means nothing to `format: dts`, which always has them"),
    ],
)  # fmt: skip
def test_mistakes_of_a_relays_topic(target, path, message):
    assert only_problem(changed(T, {**DTS, **target})) == (T + path, message)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{P}.checkpoint", "target", "is stored in ZooKeeper for a relay; leave it out"),
        (f"{M}.to", "shop.other", "means nothing to a relay, which passes rows on unchanged"),
        (f"{M}.where", "a > 1", "means nothing to a relay, which passes rows on unchanged"),
        (f"{M}.create", True, "means nothing to a relay, which passes rows on unchanged"),
        (f"{P}.create", True, "means nothing to a relay, which writes records and no tables"),
        (
            f"{S}.start",
            {"load": True},
            "means nothing to a relay, which copies changes and no rows",
        ),
        (S, DTS, "must be mysql: a relay reads a binlog, not `kafka`"),
    ],
)
def test_what_a_relay_cannot_do(path, value, message):
    definition = changed(path, value, changed(T, DTS))
    at = f"{S}.type" if path == S else path
    assert only_problem(definition) == (at, message)


@pytest.mark.parametrize("path", [f"{P}.create", f"{M}.create"])
def test_tables_are_created_from_a_server_that_is_known(path):
    definition = changed(path, True, changed(S, DTS))
    message = "needs the server that the records are of: `database` in the source"
    assert only_problem(definition) == (path, message)
    database = {"host": "db1", "user": "u"}
    parse_channel(changed(path, True, changed(S, {**DTS, "database": database})))


SUBSCRIBED = {**DTS, "mode": "subscribe", "sid": "g"}


@pytest.mark.parametrize(
    ("source", "options", "path", "message"),
    [
        (SUBSCRIBED, {"checkpoint": "file", "checkpoint_file": "/var/p.json"}, "checkpoint",
         ("cannot be a file with `mode: subscribe`: the next member of the group may be on another"
          " machine, and has to find it")),
        (DTS, {"checkpoint": "kafka"}, "source.sid",
         "is required for `checkpoint: kafka`: it is the consumer group"),
        (None, {"checkpoint": "kafka"}, "checkpoint",
         "can only be `kafka` where the source is Kafka"),
        (DTS, {"checkpoint": "file"}, "checkpoint_file", "is required for `checkpoint: file`"),
        (DTS, {"checkpoint_file": "/var/p.json"}, "checkpoint_file",
         "means nothing without `checkpoint: file`"),
        (DTS, {"checkpoint": "file", "checkpoint_file": "p.json"}, "checkpoint_file",
         ("must be a path from the root: a node may be started in another folder next time,"
          " not `p.json`")),
        (DTS, {"checkpoint_interval": 61}, "checkpoint_interval", "must be at most 60, not 61"),
    ],
)  # fmt: skip
def test_a_store_that_does_not_fit(source, options, path, message):
    definition = changed(S, source) if source else ONE_WAY
    for name, value in options.items():
        definition = changed(f"{P}.{name}", value, definition)
    assert only_problem(definition) == (f"{P}.{path}", message)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (SUBSCRIBED, {}),
        (SUBSCRIBED, {"checkpoint": "kafka", "checkpoint_interval": 0}),
        (SUBSCRIBED, {"checkpoint": "zookeeper"}),
        ({**DTS, "sid": "g"}, {"checkpoint": "kafka"}),
        (DTS, {"checkpoint": "file", "checkpoint_file": "/var/lib/setl/p.json"}),
        (DTS, {"checkpoint": "file", "checkpoint_file": "${PLACE}"}),
        (None, {"checkpoint": "file", "checkpoint_file": "/var/lib/setl/p.json"}),
    ],
)
def test_a_store_that_fits(source, options):
    definition = changed(S, source) if source else ONE_WAY
    for name, value in options.items():
        definition = changed(f"{P}.{name}", value, definition)
    assert parse_channel(definition)


@pytest.mark.parametrize(
    ("source", "options", "path", "message"),
    [
        (DTS, {"checkpoint": "file", "checkpoint_file": "/p"}, "checkpoint_file",
         "is already the file in which pipelines[0] keeps its checkpoint"),
        ({**DTS, "sid": "g"}, {"checkpoint": "kafka"}, "checkpoint",
         "cannot be `kafka`: pipelines[0] keeps its checkpoint in the same group"),
        (SUBSCRIBED, {}, "source.sid",
         "is already the group of pipelines[0]; only one of them would ever read"),
    ],
)  # fmt: skip
def test_a_position_is_stored_for_one_pipeline(source, options, path, message):
    first = {**ONE_WAY["pipelines"][0], "source": source, **options}
    definition = changed("pipelines[0]", first)
    definition = changed("pipelines[1]", {**first, "name": "q"}, definition)
    assert only_problem(definition) == (f"pipelines[1].{path}", message)
    other = {**source, "topic": "other"} if "checkpoint_file" not in options else source
    definition = changed("pipelines[1].source", other, definition)
    if "checkpoint_file" in options:
        definition = changed("pipelines[1].checkpoint_file", "/q", definition)
    assert parse_channel(definition)


def test_checkpoint_in_elasticsearch_is_refused():
    definition = changed(T, SEARCH, changed(f"{P}.checkpoint", "target"))
    assert only_problem(definition) == (
        f"{P}.checkpoint",
        "cannot be `target` where rows become documents; leave it out",
    )


def test_pipelines_have_names_of_their_own():
    definition = changed("pipelines[1]", ONE_WAY["pipelines"][0])
    assert only_problem(definition) == ("pipelines[1].name", "is already the name of pipelines[0]")


def test_pipelines_read_one_server_under_ids_of_their_own():
    source = {**ONE_WAY["pipelines"][0]["source"], "server_id": 9}
    definition = changed(S, source)
    definition = changed("pipelines[1]", {**definition["pipelines"][0], "name": "q"}, definition)
    assert only_problem(definition) == (
        "pipelines[1].source.server_id",
        "is already the id with which pipelines[0] reads this server",
    )
    assert parse_channel(changed("pipelines[1].source.host", "other", definition))
    assert parse_channel(changed("pipelines[1].source.server_id", 10, definition))


def test_the_same_entry_twice():
    # The second spelling stands for the same table.
    tables = [{"from": "s.t"}, {"from": "s.\\t"}]
    assert only_problem(changed(f"{P}.tables", tables)) == (
        f"{P}.tables[1]",
        "has the same `from` and `to` as tables[0]",
    )


@pytest.mark.parametrize("to", [None, "shop.orders", "orders"])
def test_a_table_cannot_be_its_own_target(to):
    mapping = {"from": "shop.orders"} | ({"to": to} if to else {})
    definition = changed(f"{T}.host", "a", changed(M, mapping))
    assert only_problem(definition) == (
        f"{M}.to",
        "must name another table, since source and target are the same server",
    )
    assert parse_channel(changed(f"{T}.host", "a", changed(M, {**mapping, "to": "other"})))


def test_rules_hold_for_values_made_by_code_too():
    with pytest.raises(ValueError, match="include"):
        TableMapping(**{"from": "a.b", "include": ["x"], "exclude": ["y"]})
    table = TableMapping.model_validate({"from_": "a.b", "exclude": ["y"]})
    again = TableMapping.model_validate(table.model_dump())
    assert again == table


def test_a_rule_is_checked_although_fields_are_wrong():
    tables = [{"from": "s.t", "include": ["a"], "exclude": ["b"], "where": 5}]
    assert [path for path, _ in problems_of(changed(f"{P}.tables", tables))] == [
        f"{P}.tables[0].where",
        f"{P}.tables[0].exclude",
    ]


def test_schema_changes_are_replicated_by_one_pipeline():
    several = changed(S, {**DTS, "partitions": 2})
    several["pipelines"][0]["ddl"] = "pass"
    path, message = only_problem(several)
    assert path == "pipelines[0].ddl"
    assert message.startswith("cannot be `pass` with `partitions`")
