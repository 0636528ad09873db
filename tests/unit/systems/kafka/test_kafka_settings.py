"""What the Kafka client is told of a channel file."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from setl.channel.fields.kafka_settings import CONSUMER_SETTINGS, OF_KAFKA_PYTHON, PRODUCER_SETTINGS
from setl.channel.reading import parse_channel
from setl.channel.text.problems import ChannelFileError
from setl.errors import ConfigurationError
from setl.systems.finding import Report
from setl.systems.kafka.reader import TopicReader
from setl.systems.kafka.settings import source_settings
from setl.systems.kafka.tls import check_transport
from tests.unit.channel.channels import DTS, changed
from tests.unit.systems.kafka.fake_reader import config


def test_the_position_is_stored_by_setl_and_not_by_kafka():
    settings = source_settings(config())
    assert settings["bootstrap.servers"] == "b1:9092,b2:9092"
    assert settings["enable.auto.commit"] is False
    assert settings["enable.auto.offset.store"] is False
    assert settings["isolation.level"] == "read_committed"
    assert "sasl.mechanism" not in settings


def test_a_dts_account_has_the_group_in_its_name():
    settings = source_settings(config(user="reader", sid="dts123", password="s3cret"))
    assert settings["sasl.username"] == "reader-dts123"
    assert settings["group.id"] == "dts123"
    assert (settings["security.protocol"], settings["sasl.mechanism"]) == (
        "SASL_PLAINTEXT",
        "PLAIN",
    )


def test_settings_of_the_channel_win_under_any_spelling():
    passed = {
        "security.protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "check_crcs": False,
        "session.timeout.ms": 7000,
        # As kafka-python calls them.
        "sasl_plain_username": "else",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
        "fetch.max.wait.ms": 7,
    }
    settings = source_settings(config(user="u", kafka=passed))
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["sasl.mechanism"] == "SCRAM-SHA-256"
    assert settings["check.crcs"] is False
    assert settings["session.timeout.ms"] == 7000
    assert settings["sasl.username"] == "else"
    assert settings["ssl.ca.location"] == "/ca.pem"
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert settings["fetch.wait.max.ms"] == 7
    assert not any("_" in name for name in settings)


@pytest.mark.parametrize(
    ("more", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"kafka": {"ssl_cafile": "/ca.pem"}}, "SSL"),
        ({"kafka": {"ssl.ca.location": "/ca.pem"}, "user": "u"}, "SASL_SSL"),
        ({"kafka": {"ssl_cafile": "/ca.pem", "security_protocol": "PLAINTEXT"}}, "PLAINTEXT"),
        ({"ssl_ca": "/ca.pem"}, "SSL"),
    ],
)
def test_who_names_something_of_tls_gets_it(more, protocol):
    assert source_settings(config(**more))["security.protocol"] == protocol


@pytest.mark.parametrize(
    ("broker", "more", "code"),
    [
        ("b1:9092", {}, "tls-missing"),
        ("127.0.0.1:9092,b2:9092", {}, "tls-missing"),
        ("[::1]:9092", {}, ""),
        ("b1:9092", {"security.protocol": "SASL_SSL"}, ""),
        ("b1:9092", {"security.protocol": "sasl_plaintext"}, "tls-missing"),
        (
            "b1:9092",
            {"security.protocol": "SSL", "enable.ssl.certificate.verification": "False"},
            "tls-unverified",
        ),
        (
            "b1:9092",
            {"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "None"},
            "tls-unverified",
        ),
        (
            "b1:9092",
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "https"},
            "",
        ),
    ],
)
def test_connections_that_somebody_could_read_are_reported(broker, more, code):
    report = Report("here")
    plain = {"bootstrap.servers": broker, "security.protocol": "PLAINTEXT"}
    check_transport({**plain, **more}, report)
    assert [finding.code for finding in report.findings] == ([code] if code else [])


@pytest.mark.parametrize(
    "setting",
    [
        {"ssl_check_hostname": False},
        {"ssl_endpoint_identification_algorithm": "none"},
        {"ssl.endpoint.identification.algorithm": "none"},
        {"enable.ssl.certificate.verification": False},
        {"enable_ssl_certificate_verification": "false"},
    ],
)
def test_each_way_to_verify_less_is_reported(setting):
    report = Report("here")
    settings = source_settings(config(ssl_ca="/ca.pem", kafka=setting))
    check_transport({**settings, "bootstrap.servers": "b1:9092"}, report)
    assert [finding.code for finding in report.findings] == ["tls-unverified"]


def test_a_setting_that_librdkafka_does_not_know_is_named():
    settings = {**source_settings(config()), "api.version.nonsense": 1}
    with pytest.raises(ConfigurationError, match=r"api\.version\.nonsense") as raised:
        TopicReader(settings, "orders", 1.0)
    assert "librdkafka" in raised.value.hint


@pytest.mark.parametrize("client", [Consumer, Producer])
def test_librdkafka_knows_every_setting_that_is_allowed(client):
    allowed = CONSUMER_SETTINGS if client is Consumer else PRODUCER_SETTINGS
    for name in allowed - OF_KAFKA_PYTHON:
        reported = ""
        try:
            client({"group.id": "g", name.replace("_", "."): "?"})
        except (KafkaException, TypeError, ValueError) as error:
            reported = str(error)
        assert "No such configuration" not in reported, name


@pytest.mark.parametrize(
    "name",
    [
        "nonsense", "metrics_enabled", "plugin.library.paths", "plugin_library_paths",
        "ssl.engine.location", "ssl_engine_id", "ssl.providers", "sasl.kerberos.kinit.cmd",
        "sasl.oauthbearer.assertion.jwt.template.file", "log_cb", "oauth_cb", "opaque",
        "statistics.interval.ms", "interceptors",
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["source", "target"])
def test_what_loads_code_or_runs_commands_is_refused(end, name):
    files = {"source": DTS, "target": {"type": "kafka", "brokers": ["k:9092"], "topic": "t"}}
    given = changed(f"pipelines[0].{end}", {**files[end], "kafka": {name: "x"}})
    with pytest.raises(ChannelFileError) as caught:
        parse_channel(given)
    (problem,) = (p for p in caught.value.problems if "kafka" in p.path)
    assert "librdkafka" in problem.message


def test_every_setting_that_has_another_name_is_one_of_librdkafka():
    names = ["fetch_max_wait_ms", "receive_buffer_bytes", "request_timeout_ms", "send_buffer_bytes"]
    TopicReader(source_settings(config(kafka=dict.fromkeys(names, 1000))), "orders", 1.0).close()
