"""References to the environment, and what is said about secrets."""

from pathlib import Path

import pytest

from setl.channel.reading import (
    definition_warnings,
    parse_channel,
    read_channel_definition,
    resolve_and_parse,
    resolve_references,
)
from setl.channel.text.problems import ChannelFileError
from setl.channel.text.references import without_secrets
from setl.channel.variables import ALLOWED

from .channels import ONE_WAY, SEARCH, changed, pipelines_of

DATA = Path(__file__).parent / "data"
ENVIRONMENT = {
    "NAME": "shop", "HOST": "db", "USER_NAME": "u", "BEAT": "0.5", "START": "earliest",
    "URL": "http://es:9200", "SCHEMA": "s", "ROWS": "77",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("x${A}y${B}z", "x1y2z"),
        ("${A:-9}", "1"),
        ("${NO:-9}", "9"),
        ("${NO:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-9}", "9"),
        ("${TWICE}", "${A}"),  # what the environment gives is not looked at again
        ("$${A}", "${A}"),
        ("$A costs 5$", "$A costs 5$"),
    ],
)
def test_values(text, value):
    environment = {"A": "1", "B": "2", "EMPTY": "", "TWICE": "${A}"}
    definition = {"x": [{"y": text}], "n": 5}
    assert resolve_references(definition, environment) == {"x": [{"y": value}], "n": 5}
    assert definition == {"x": [{"y": text}], "n": 5}


def test_all_that_is_missing_at_once():
    definition = {"a": "${X}", "b": [{"c": "${Y}${Z:-}"}, "${1}", "${X"]}
    with pytest.raises(ChannelFileError) as caught:
        resolve_references(definition, {})
    malformed = "has a malformed reference; write ${NAME}, ${NAME:-default}, or $${ for ${"
    assert [(p.path, p.message) for p in caught.value.problems] == [
        ("a", "the environment variable X is not set"),
        ("b[0].c", "the environment variable Y is not set"),
        ("b[1]", malformed),
        ("b[2]", malformed),
    ]


def test_every_kind_of_value_can_come_from_the_environment():
    definition = read_channel_definition(DATA / "from_environment.yaml")
    (pipeline,) = pipelines_of(resolve_and_parse(definition, ENVIRONMENT))
    assert (pipeline.source.port, pipeline.source.heartbeat) == (3306, 0.5)
    assert (pipeline.batch_rows, pipeline.ddl, pipeline.tables[0].to) == (77, "ignore", "s-t")
    assert definition["channel"] == "${NAME}"


def test_missing_variables_and_other_mistakes_come_together():
    definition = changed("pipelines[0].batch_rows", "${ROWS}", changed("pipelines[0].window", 0))
    with pytest.raises(ChannelFileError) as caught:
        resolve_and_parse(definition, {})
    assert {p.path: p.message for p in caught.value.problems} == {
        "pipelines[0].batch_rows": "the environment variable ROWS is not set",
        "pipelines[0].window": "must be at least 1, not 0",
    }


def test_messages_do_not_show_what_the_environment_holds():
    definition = changed("pipelines[0].source.port", "${PORT}")
    with pytest.raises(ChannelFileError) as caught:
        resolve_and_parse(definition, {"PORT": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert caught.value.problems[0].message == "must be a whole number, not what ${PORT} stands for"


def test_references_pass_where_the_file_is_only_looked_at():
    definition = changed("pipelines[0].source.host", "${HOST}")
    definition = changed("pipelines[0].tables[0].from", "${SCHEMA}.t", definition)
    definition = changed("pipelines[0].tables[0].to", "${X}*", definition)
    assert pipelines_of(parse_channel(definition))[0].source.host == "${HOST}"


def refused(path, value, environment, **further):
    definition = changed(path, value)
    for position, text in further.items():
        definition["pipelines"][0]["target"][position] = text
    with pytest.raises(ChannelFileError) as caught:
        resolve_and_parse(definition, environment)
    return {p.path: p.message for p in caught.value.problems}


@pytest.mark.parametrize("name", ["SETL_HTTP_TOKEN", "SETL_ZOOKEEPER_DIGEST", "setl_x"])
@pytest.mark.parametrize("path", ["source.host", "source.password", "tables[0].where"])
def test_variables_of_setl_are_none_of_a_channel_files(path, name):
    reported = refused(f"pipelines[0].{path}", f"${{{name}}}", {name: "hunter2"})
    assert "setl's own" in reported[f"pipelines[0].{path}"]
    assert "hunter2" not in str(reported)


def test_a_node_says_which_variables_channel_files_may_use():
    environment = {"SHOP_HOST": "db1", "OTHER_HOST": "db2", ALLOWED: "SHOP_* DTS_USER"}
    definition = changed("pipelines[0].source.host", "${SHOP_HOST}")
    assert pipelines_of(resolve_and_parse(definition, environment))[0].source.host == "db1"
    reported = refused("pipelines[0].source.host", "${OTHER_HOST}", environment)
    assert reported == {
        "pipelines[0].source.host": f"names OTHER_HOST; {ALLOWED} lets channel files use only"
        " SHOP_*, DTS_USER"
    }


@pytest.mark.parametrize(
    "name", ["OTHER_PASSWORD", "API_KEY", "TOKEN", "db_pw", "A_SECRET", "PASS", "X_DIGEST"]
)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("source.host", "{}.invalid"),
        ("source.user", "{}"),
        ("tables[0].where", "id > '{}'"),
        ("tables[0].columns", {"x": "'{}'"}),
    ],
)
def test_a_secret_only_stands_where_secrets_do(path, text, name):
    reference = f"${{{name}}}"
    written = {k: v.format(reference) for k, v in text.items()} if isinstance(text, dict) else (
        text.format(reference)
    )  # fmt: skip
    reported = refused(f"pipelines[0].{path}", written, {name: "hunter2"})
    assert next(m for p, m in reported.items() if path in p).startswith(f"names {name}, a secret")
    assert "hunter2" not in str(reported)


def test_a_secret_by_its_use_stands_nowhere_else():
    reported = refused(
        "pipelines[0].source.user", "${WORD}", {"WORD": "hunter2"}, password="${WORD}"
    )
    assert reported["pipelines[0].source.user"].startswith("names WORD, a secret")


@pytest.mark.parametrize(
    "key",
    ["sasl.oauthbearer.config", "sasl_oauthbearer_client_secret", "ssl.key.password",
     "sasl.password", "ssl.key.pem"],
)  # fmt: skip
def test_secrets_of_kafka_clients_are_hidden_and_warned_of(key):
    source = {"type": "kafka", "brokers": ["k:9092"], "topic": "t", "kafka": {key: "hunter2"}}
    definition = changed("pipelines[0].source", source)
    assert "hunter2" not in str(without_secrets(definition))
    assert [p.path for p in definition_warnings(definition)] == [f"pipelines[0].source.kafka.{key}"]


@pytest.mark.parametrize(
    ("password", "warned"),
    [("hunter2", True), ("", False), ("${P}", False), ("${P:-hunter2}", True), ("x${P}", True)],
)
def test_literal_secrets_are_warned_of(password, warned):
    definition = changed("pipelines[0].target", {**SEARCH, "user": "u", "password": password})
    warnings = definition_warnings(definition)
    assert [(p.path, p.level) for p in warnings] == (
        [("pipelines[0].target.password", "warning")] if warned else []
    )
    assert "hunter2" not in str(warnings)


def test_columns_named_password_are_no_secrets():
    tables = [{"from": "a.b", "columns": {"password": "sha2(secret, 256)"}}]
    assert definition_warnings(changed("pipelines[0].tables", tables)) == ()
    assert definition_warnings(ONE_WAY) == ()


@pytest.mark.parametrize(
    "function", ["os:system", "subprocess:run", "builtins:eval", "os.path:join"]
)
def test_a_processor_is_no_function_of_pythons_own_library(function):
    reported = refused("pipelines[0].tables[0].processor", function, {})
    assert "module of Python's own" in reported["pipelines[0].tables[0].processor"]
