import pytest

from setl.channel.file import KafkaSource, MysqlSource
from setl.channel.reading import parse_channel
from setl.errors import ConfigurationError
from setl.operate.peek.look import source_subject, subject_at, target_subject
from setl.select.identity import replica_id
from setl.systems.mysql.peek import peek_id

MYSQL = {"type": "mysql", "host": "db1", "user": "u"}
DTS = {"type": "kafka", "brokers": ["b1:9092"], "topic": "orders"}


def pipeline(source, target):
    tables = [{"from": "s.t"}]
    one = {"name": "p", "source": source, "target": target, "tables": tables}
    return parse_channel({"channel": "c", "pipelines": [one]}).pipelines[0]


@pytest.mark.parametrize(
    ("address", "partitions", "values"),
    [
        ("kafka://b1:9092/orders", (), {"brokers": ["b1:9092"], "topic": "orders", "user": ""}),
        ("kafka://b1:9092,b2:1/or.ders/3", (3,), {"brokers": ["b1:9092", "b2:1"], "partition": 3}),
        ("kafka://me@b1:9092/orders?sid=dts1", (), {"user": "me", "sid": "dts1", "password": "pw"}),
        ("kafka://b1:9092/o/?ssl_ca=%2Fetc%2Fca.pem", (), {"ssl_ca": "/etc/ca.pem"}),
    ],
)
def test_addresses_of_topics(address, partitions, values):
    found = subject_at(address, "pw")
    assert isinstance(found.config, KafkaSource)
    assert found.partitions == partitions
    assert {name: getattr(found.config, name) for name in values} == values


@pytest.mark.parametrize(
    ("address", "values"),
    [
        ("mysql://root@db1", {"host": "db1", "port": 3306, "user": "root", "password": "pw"}),
        (
            "mysql://me%40home@127.0.0.1:3307/",
            {"host": "127.0.0.1", "port": 3307, "user": "me@home"},
        ),
        ("mysql://root@[::1]:3307", {"host": "::1", "port": 3307}),
    ],
)
def test_addresses_of_binlogs(address, values):
    found = subject_at(address, "pw")
    assert isinstance(found.config, MysqlSource)
    assert {name: getattr(found.config, name) for name in values} == values


@pytest.mark.parametrize(
    "address",
    [
        "kafka://b1:9092", "kafka:///orders", "kafka://b1/orders", "kafka://b1:9092/orders/x",
        "kafka://b1:9092/orders?acks=0", "mysql://db1:3306", "mysql://root@db1:99999",
        "mysql://root@db1/shop", "http://db1/x", "mysql://root@[::1", "://",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_the_forms_that_are(address):
    with pytest.raises(ConfigurationError, match="not an address") as caught:
        subject_at(address, "pw")
    assert "kafka://HOST:PORT" in caught.value.hint


@pytest.mark.parametrize(
    "address",
    [
        "mysql://u:hunter2@db1",
        "kafka://u:hunter2@b1:9092/t",
        "http://u:hunter2@x",
        "mysql://u:hunter2@[x",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address):
    with pytest.raises(ConfigurationError) as caught:
        subject_at(address, "pw")
    assert "hunter2" not in str(caught.value)


def test_the_two_ends_of_pipelines():
    binlog = source_subject(pipeline(MYSQL, {**DTS, "partitions": 1}))
    assert isinstance(binlog.config, MysqlSource)
    assert binlog.config.host == "db1"
    relay = pipeline(MYSQL, {**DTS, "user": "me", "password": "pw"})
    topic = target_subject(relay)
    assert isinstance(topic.config, KafkaSource)
    assert (topic.config.brokers, topic.config.topic) == (["b1:9092"], "orders")
    assert (topic.config.user, topic.config.password, topic.partitions) == ("me", "pw", ())
    with pytest.raises(ConfigurationError, match="the pipeline p writes no records"):
        target_subject(pipeline(DTS, {**MYSQL, "host": "db2"}))


@pytest.mark.parametrize(
    ("options", "partitions"),
    [
        ({}, (0,)),
        ({"partition": 3}, (3,)),
        ({"partitions": 2}, (0, 1)),
        ({"mode": "subscribe", "sid": "dts1"}, ()),
    ],
)
def test_which_partitions_a_subscription_has(options, partitions):
    found = source_subject(pipeline({**DTS, **options}, MYSQL))
    assert isinstance(found.config, KafkaSource)
    assert found.partitions == partitions


def test_the_id_of_a_look_is_no_pipelines_and_no_other_looks():
    config = subject_at("mysql://u@db1", "").config
    assert isinstance(config, MysqlSource)
    found = {peek_id(config, f"host:1:{i}") for i in range(1000)}
    assert len(found) > 990
    made = {replica_id("c", f"p{i}", "n1") for i in range(1000)}
    assert max(found) < 1 << 31 <= min(made)
    one = peek_id(config, "host:1:0")
    same = config.model_copy(update={"server_id": one})
    assert peek_id(same, "host:1:0") != one
