"""Accounts and TLS of a Kafka source, at a door that checks both."""

import base64
import time
import uuid

import pytest
from kafka import KafkaProducer

from setl.channel.file import KafkaSource, KafkaTarget
from setl.codec.dts.relayed import LAST, RelayPosition, RelayTransaction
from setl.errors import ConfigurationError, TransientError, UntrustedServerError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.systems.finding import Report
from setl.systems.kafka.preflight.source import check_kafka_source
from setl.systems.kafka.relay.log import KafkaRelayLog
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl_embedded.certificates import CertificateAuthority
from tests.kafka_proxy import KafkaProxy
from tests.unit.codec.dts_records import record
from tests.waiting import eventually

PASSWORD = "kept-to-itself-7"
WRONG = "not-the-one-8"
PATIENCE = 20.0  # seconds that a source waits for an answer
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
ACCOUNT = {"user": "reader", "sid": "dts7x", "password": PASSWORD}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.issue("broker", hosts=["127.0.0.1"])


@pytest.fixture(scope="module")
def topic(kafka):
    name = f"secured-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(bootstrap_servers=kafka.brokers)
    for operation in ("BEGIN", "COMMIT"):
        producer.send(name, record(operation), partition=0).get(20)
    producer.close()
    return name


@pytest.fixture
def door(kafka):
    doors = []

    def open_door(**demands):
        doors.append(KafkaProxy(kafka, **demands))
        return doors[-1].__enter__()

    yield open_door
    for one in doors:
        one.__exit__()


@pytest.fixture
def guarded(door):
    return door(accounts={"reader-dts7x": PASSWORD}, mechanisms=MECHANISMS)


@pytest.fixture
def source(topic):
    sources = []

    def make(door, *, timeout=PATIENCE, **more):
        config = KafkaSource(type="kafka", brokers=[door.brokers], topic=topic, **more)
        sources.append(DtsKafkaSource(config, timeout=timeout))
        return sources[-1]

    yield make
    for one in sources:
        one.close()


def read_all(source, topic):
    source.open(KafkaPosition(topic, 0, 0))
    found = []
    eventually(lambda: found.extend(source.read(10, 0.5)) or len(found) == 2, 20)
    assert [e.kind for e in found] == [EntryKind.BEGIN, EntryKind.COMMIT]
    assert source.locate(Checkpoint(found[-1].position)).resume is found[-1].position
    assert source.latest().order == (0, 2)


def refused(source):
    """What a source says that cannot connect, long before its time for an answer is over."""
    began = time.monotonic()
    with pytest.raises(ConfigurationError) as raised:
        source.latest()
    assert time.monotonic() - began < PATIENCE - 5
    for secret in (PASSWORD, WRONG):
        assert secret not in str(raised.value)
        assert secret not in repr(raised.value.__cause__)
    assert raised.value.where["brokers"].startswith("127.0.0.1:")
    return raised.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_account_of_a_subscription_logs_in(guarded, source, topic, mechanism):
    read_all(source(guarded, mechanism=mechanism, **ACCOUNT), topic)
    assert set(guarded.names) == {"reader-dts7x"}


def test_an_account_logs_in_over_tls(door, source, topic, authority, certificate):
    guarded = door(
        accounts={"plain": PASSWORD}, mechanisms=["SCRAM-SHA-512"], certificate=certificate
    )
    read_all(
        source(
            guarded,
            user="plain",
            password=PASSWORD,
            mechanism="SCRAM-SHA-512",
            ssl_ca=str(authority.certificate),
        ),
        topic,
    )
    assert set(guarded.names) == {"plain"}


def test_tls_alone(door, source, topic, authority, certificate):
    read_all(source(door(certificate=certificate), ssl_ca=str(authority.certificate)), topic)


def test_settings_of_the_channel_file_win(guarded, source, topic):
    settings = {"sasl.mechanism": "SCRAM-SHA-256", "sasl_plain_username": "reader-dts7x"}
    read_all(source(guarded, user="else", password=PASSWORD, kafka=settings), topic)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_to_be_one(guarded, source, mechanism, caplog):
    caplog.set_level("DEBUG", logger="setl")
    error = refused(source(guarded, mechanism=mechanism, **{**ACCOUNT, "password": WRONG}))
    assert error.message.startswith("Kafka refuses the account: ")
    assert error.hint == "Check `user`, `password` and, for a subscription, `sid`"
    assert WRONG not in caplog.text


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        # RFC 5802 has a message of its own for a refusal; a broker may send it without an error.
        (lambda message: message or b"e=invalid-proof", "broker responded with invalid-proof"),
        (lambda message: message or b"e=other-error,x=y", "broker responded with other-error"),
        (lambda message: message or b"x=y", "no verifier or server-error returned"),
        (lambda message: message or b"gibberish", "no verifier or server-error returned"),
    ],
)
def test_a_refusal_in_the_words_of_scram(door, source, mechanism, verdict, says):
    guarded = door(accounts={"reader-dts7x": PASSWORD}, mechanisms=[mechanism], verdict=verdict)
    error = refused(source(guarded, mechanism=mechanism, **{**ACCOUNT, "password": WRONG}))
    assert error.message.startswith("Kafka refuses the account: ")
    assert says in error.message


def test_a_broker_that_does_not_know_the_password_is_not_believed(door, source):
    guarded = door(
        accounts={"reader-dts7x": PASSWORD},
        mechanisms=["SCRAM-SHA-256"],
        verdict=lambda _: b"v=" + base64.b64encode(bytes(32)),
    )
    error = refused(source(guarded, mechanism="SCRAM-SHA-256", **ACCOUNT))
    assert "ServerSignature mismatch" in error.message


@pytest.mark.parametrize("name", ["a,b", "a=b", "=2C,", "ü"])
def test_names_that_scram_writes_otherwise(door, source, topic, name):
    guarded = door(accounts={name: PASSWORD}, mechanisms=["SCRAM-SHA-256"])
    account = {"user": name, "password": PASSWORD, "mechanism": "SCRAM-SHA-256"}
    read_all(source(guarded, **account), topic)
    assert set(guarded.names) == {name}


def test_a_check_says_the_same(guarded, topic):
    def found(**more):
        report = Report("p")
        config = {"brokers": [guarded.brokers], "topic": topic, **ACCOUNT, **more}
        check_kafka_source(KafkaSource(type="kafka", **config), report)
        [finding] = report.findings
        return finding

    assert found().level == "ok"
    wrong = found(password=WRONG)
    assert wrong.level == "error"
    assert wrong.what.startswith("Kafka refuses the account: ")
    assert wrong.hint == ("Check `user`, `password` and, for a subscription, `sid`",)
    assert found(mechanism="SCRAM-SHA-256").level == "ok"


def test_a_name_without_its_sid_is_refused(guarded, source):
    error = refused(source(guarded, user="reader", password=PASSWORD))
    assert "`sid`" in error.hint


def test_a_way_to_log_in_that_the_brokers_do_not_have(door, source):
    guarded = door(accounts={"reader-dts7x": PASSWORD}, mechanisms=["SCRAM-SHA-256"])
    error = refused(source(guarded, mechanism="PLAIN", **ACCOUNT))
    assert "does not offer the way to log in" in error.message
    assert "`mechanism`" in error.hint


def test_a_certificate_of_somebody_else(door, source, certificate, tmp_path):
    stranger = CertificateAuthority(tmp_path)
    error = refused(source(door(certificate=certificate), ssl_ca=str(stranger.certificate)))
    assert isinstance(error, UntrustedServerError)
    assert error.message.startswith("the broker's certificate is not trusted: ")
    assert "`ssl_ca`" in error.hint


def test_a_certificate_for_another_host(door, source, authority):
    elsewhere = authority.issue("elsewhere", hosts=["db.example"])
    error = refused(source(door(certificate=elsewhere), ssl_ca=str(authority.certificate)))
    assert error.message.startswith("the broker's certificate is not trusted: ")
    assert "names the broker's address" in error.hint


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_that_is_no_authority(door, source, certificate, tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    error = refused(source(door(certificate=certificate), ssl_ca=str(file)))
    assert error.message.startswith("a file for TLS cannot be used: ")


@pytest.mark.parametrize("demands", ["tls", "account"])
def test_a_door_that_closes_without_a_word_is_hinted_at(
    guarded, door, source, certificate, demands
):
    there = guarded if demands == "account" else door(certificate=certificate)
    with pytest.raises(TransientError, match=r"the last connection failed") as raised:
        source(there, timeout=5.0).latest()
    assert "`ssl_ca`" in raised.value.hint
    assert "`user`" in raised.value.hint


def test_a_password_that_is_changed_while_it_is_read(guarded, source, topic):
    reader = source(guarded, **ACCOUNT)
    read_all(reader, topic)
    guarded.accounts["reader-dts7x"] = WRONG
    guarded.drop()

    def refusal():
        """As a pipeline does: after an error that may pass, open again."""
        try:
            reader.read(10, 0.5)
        except TransientError:
            with pytest.raises(ConfigurationError) as raised:
                reader.open(KafkaPosition(topic, 0, 2))
            return raised.value
        except ConfigurationError as error:
            return error
        return None

    assert "refuses the account" in str(eventually(refusal, 60))
    guarded.accounts["reader-dts7x"] = PASSWORD
    read_all(reader, topic)


# -- the relay's side ----------------------------------------------------------------------


def relay_log(door, *, limit=30.0, **more):
    target = KafkaTarget(
        type="kafka", brokers=[door.brokers], topic=f"written-{uuid.uuid4().hex[:8]}", **more
    )
    return KafkaRelayLog(target, f"setl/{target.topic}", limit=limit)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_relay_writes_over_tls_with_an_account(door, authority, certificate, mechanism):
    guarded = door(accounts={"writer": PASSWORD}, mechanisms=[mechanism], certificate=certificate)
    account = {"user": "writer", "password": PASSWORD, "mechanism": mechanism}
    log = relay_log(guarded, ssl_ca=str(authority.certificate), **account)
    assert log.take_over() == (None,)
    at = RelayPosition(RelayTransaction(1, "binlog.000001", 4), LAST)
    log.append(0, b"value", at.encoded(), None, int(time.time() * 1000))
    log.flush()
    assert log.take_over() == (at,)
    log.close()
    assert set(guarded.names) == {"writer"}


def test_a_relay_that_is_refused_says_so(door, caplog):
    guarded = door(accounts={"writer": PASSWORD}, mechanisms=["PLAIN"])
    log = relay_log(guarded, limit=10.0, user="writer", password=WRONG)
    with pytest.raises(ConfigurationError) as raised:
        log.take_over()
    log.close()
    for secret in (PASSWORD, WRONG):
        assert secret not in str(raised.value)
        assert secret not in caplog.text
