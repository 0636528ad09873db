"""What Kafka and Elasticsearch tell of retention and certificates, and the alarms made of it."""

import ssl
import threading
import time
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography import x509
from kafka import KafkaProducer

from setl.alarms.facts import PipelineFacts
from setl.alarms.rules import judge_pipeline
from setl.channel.file import ElasticsearchTarget, KafkaSource
from setl.errors import TransientError
from setl.model.position import KafkaPosition
from setl.systems.expiry import DiskTarget, Expiration, ExpiringSystem, RemovingSource
from setl.systems.registry import system_of
from setl_embedded.certificates import CertificateAuthority
from tests.kafka_proxy import KafkaProxy

pytestmark = pytest.mark.not_mixed(why="no database takes part")
HOUR = 3600


def dts(brokers, topic, **more):
    return KafkaSource(type="kafka", brokers=[brokers], topic=topic, **more)


def alarm_of(stored):
    facts = PipelineFacts("shop", "ab", "PAUSE", retention=stored)
    found = [j for j in judge_pipeline(facts, time.time()) if j.holds]
    return [j for j in found if j.key.rule in {"position", "position_lost"}]


def test_a_checkpoint_is_compared_with_the_retention_of_its_topic(kafka):
    topic, admin = f"kept-{uuid.uuid4().hex[:8]}", AdminClient({"bootstrap.servers": kafka.brokers})
    [made] = admin.create_topics(
        [NewTopic(topic, 1, 1, config={"retention.ms": str(24 * HOUR * 1000)})]
    ).values()
    made.result(20)
    written = int(time.time()) - 21 * HOUR
    producer = KafkaProducer(bootstrap_servers=kafka.brokers)
    for number in range(3):
        producer.send(topic, b"a record", partition=0, timestamp_ms=(written + number) * 1000).get(
            20
        )
    producer.close()
    source = system_of(dts(kafka.brokers, topic))
    assert isinstance(source, RemovingSource)
    # Three hours are left of what was written 21 hours ago.
    stored = source.retention(KafkaPosition(topic, 0, 1, written))
    assert stored is not None
    assert stored.retention == 24 * HOUR
    assert 3 * HOUR - 120 < (stored.seconds_left() or 0) <= 3 * HOUR
    [alarm] = alarm_of(stored)
    assert alarm.key.rule == "position"
    assert "in 2 h 5" in alarm.text or "in 3 h" in alarm.text
    # All is applied: nothing can be removed that is still wanted.
    end = source.retention(KafkaPosition(topic, 0, 3, written))
    assert end is not None
    assert end.seconds_left() is None
    assert alarm_of(end) == []
    [removed] = admin.delete_records([TopicPartition(topic, 0, 2)]).values()
    removed.result(20)
    lost = source.retention(KafkaPosition(topic, 0, 1, written))
    assert lost is not None
    assert lost.lost
    [alarm] = alarm_of(lost)
    assert alarm.key.rule == "position_lost"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.issue("server", hosts=["127.0.0.1"])


def seen(of, certificate):
    read = x509.load_pem_x509_certificate(certificate[0].read_bytes())
    since, until = read.not_valid_before_utc, read.not_valid_after_utc
    return Expiration("certificate", of, until.timestamp(), since.timestamp())


def expirations(config):
    system = system_of(config)
    assert isinstance(system, ExpiringSystem)
    return system.expirations()


def test_brokers_tell_when_their_certificates_expire(kafka, authority, certificate, tmp_path):
    with KafkaProxy(kafka, certificate=certificate) as door:
        config = dts(door.brokers, "any", ssl_ca=str(authority.certificate))
        assert expirations(config) == [seen(door.brokers, certificate)]
        assert expirations(dts(door.brokers, "any")) == []
        stranger = CertificateAuthority(tmp_path).certificate
        with pytest.raises(TransientError, match="not trusted"):
            expirations(dts(door.brokers, "any", ssl_ca=str(stranger)))


@contextmanager
def https(certificate):
    """A door with TLS, as one stands before a cluster; nothing is asked behind it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_elasticsearch_reports_when_its_certificate_expires(authority, certificate):
    with https(certificate) as address:
        config = ElasticsearchTarget(
            type="elasticsearch",
            hosts=[f"https://{address}", f"http://{address}"],
            ca_certs=str(authority.certificate),
        )
        assert expirations(config) == [seen(address, certificate)]


def test_elasticsearch_reports_how_much_room_it_has(elasticsearch):
    system = system_of(ElasticsearchTarget(type="elasticsearch", hosts=[elasticsearch.url]))
    assert isinstance(system, DiskTarget)
    [disk] = system.disks() or []
    assert disk.of.endswith(f"of {elasticsearch.host}:{elasticsearch.port}")
    assert 0 < disk.free <= disk.size
    assert disk.last is not None
    assert disk.needed is not None
    assert disk.last < disk.needed < disk.size
