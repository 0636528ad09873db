"""Which certificates a node needs for ZooKeeper, and what is said of those that expire soon."""

import time
from datetime import timedelta
from functools import partial

import pytest

from arbiter.access import Tls
from arbiter.certificates import certificates_in
from arbiter.errors import Contact
from arbiter.servers import Answer
from setl.alarms.rules import judge_certificate
from setl.node.ensemble import all_known, expiring_in, lost_in, needed_in
from setl.node.ensemble_watch import EnsembleWatch, certificates_of
from setl_embedded.certificates import CertificateAuthority

DAY = 86_400.0
NOW = 1_000_000.0


def days_left(seen):
    return {each.of: round((each.expires - time.time()) / DAY) for each in seen}


def chain_of(*files):
    return tuple(certificates_in(str(file))[0] for file in files)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another one, which has the same name."""
    return CertificateAuthority(tmp_path_factory.mktemp("two"))


def test_a_node_needs_its_file_the_servers_and_the_authorities_in_use(authority, other, tmp_path):
    client, key = authority.issue("n1", life=timedelta(days=3))
    server, _ = authority.issue("zk1", life=timedelta(days=5))
    many = tmp_path / "ca.pem"  # one more, that nothing is of
    many.write_bytes(other.certificate.read_bytes() + authority.certificate.read_bytes())
    tls = Tls(str(many), str(client), str(key))
    shown = {"zk1:2181": chain_of(server, authority.certificate)}
    name = "CN=setl embedded authority"
    assert days_left(certificates_of(tls, shown)) == {str(client): 3, "zk1:2181": 5, name: 7}
    assert days_left(certificates_of(tls, {})) == {str(client): 3, name: 7}
    assert days_left(certificates_of(Tls(), shown)) == {"zk1:2181": 5, name: 7}
    alone = {"zk1:2181": chain_of(server)}
    assert days_left(certificates_of(Tls(str(many)), alone)) == {"zk1:2181": 5, name: 7}
    assert certificates_of(Tls(ca=str(many)), {}) == ()  # nobody knows which are in use
    assert certificates_of(Tls("/no/such", "/no/such", ""), {}) == ()


def test_of_a_file_with_a_chain_the_first_to_end_counts(authority, tmp_path):
    long, _ = authority.issue("long", life=timedelta(days=30))
    short, _ = authority.issue("short", life=timedelta(days=2))
    chain = tmp_path / "chain.pem"
    chain.write_bytes(long.read_bytes() + short.read_bytes())
    assert days_left(certificates_of(Tls(certificate=str(chain)), {})) == {str(chain): 2}


def as_json_of(seen):
    return {"address": seen.address, "answers": seen.answers, "refused": seen.refused}


class Watched:
    """A watch of servers that show what a test says."""

    def __init__(self, tls, servers=1):
        self.answers = {}
        self.watch = EnsembleWatch(
            [(f"zk{number}", 2181) for number in range(1, servers + 1)],
            lambda: Contact.CONNECTED,
            lambda host, port, seconds: self.answers.get(host, Answer(serves=False)),
            tls,
        )

    def seen(self):
        self.watch.look()
        return days_left(self.watch.certificates() or ())


def test_one_server_is_asked_for_its_certificate_and_files_are_read_again(authority, tmp_path):
    file = tmp_path / "client.pem"
    file.write_bytes(authority.issue("old", life=timedelta(days=1))[0].read_bytes())
    watched = Watched(Tls(certificate=str(file)))
    assert watched.watch.certificates() is None
    server, _ = authority.issue("zk", life=timedelta(days=2))
    watched.answers["zk1"] = Answer(serves=True, chain=chain_of(server, authority.certificate))
    name = "CN=setl embedded authority"
    assert watched.seen() == {str(file): 1, "zk1:2181": 2, name: 7}
    assert watched.watch.seen() == ()  # of one server its session tells
    file.write_bytes(authority.issue("new", life=timedelta(days=40))[0].read_bytes())
    watched.answers.clear()  # what it has shown stays known
    assert watched.seen() == {str(file): 40, "zk1:2181": 2, name: 7}


def test_a_server_whose_certificate_is_refused_is_lost_and_it_is_said_why(authority, caplog):
    watched = Watched(Tls(), servers=3)
    good = chain_of(authority.issue("good", life=timedelta(days=2))[0], authority.certificate)
    watched.answers = dict.fromkeys(("zk1", "zk2", "zk3"), Answer(serves=True, chain=good))
    watched.seen()
    late = chain_of(authority.issue("late", life=timedelta(minutes=-1))[0])
    watched.answers["zk2"] = Answer(serves=False, refused="it has expired", chain=late)
    watched.seen()
    seen = watched.seen()
    assert (seen["zk2:2181"], seen["zk1:2181"], seen["CN=setl embedded authority"]) == (0, 2, 7)
    assert [(each.answers, each.refused) for each in watched.watch.seen()] == [
        (True, ""),
        (False, "it has expired"),
        (True, ""),
    ]
    (logged,) = [record for record in caplog.records if "does not answer" in record.message]
    assert "it has expired" in str(logged.__dict__)


def test_a_node_that_could_use_no_server_any_more_says_so_while_its_session_lives():
    watched = Watched(Tls(), servers=3)
    refused = Answer(serves=False, refused="its certificate is not accepted: unknown authority")
    watched.answers = dict.fromkeys(("zk1", "zk2", "zk3"), refused)
    watched.seen()
    watched.seen()
    seen = [as_json_of(each) for each in watched.watch.seen()]
    lost = lost_in({"n1": {"zookeeper": seen}})
    assert [each.address for each in lost] == ["zk1:2181", "zk2:2181", "zk3:2181"]
    assert lost[0].sentence == (
        "ZooKeeper server zk1:2181 cannot be used: its certificate is not accepted: unknown"
        " authority; n1 sees it so; 3 of 3 servers lost: a node that loses its connection cannot"
        " come back"
    )
    assert "trust the authority" in lost[0].hint


def test_without_tls_there_is_nothing_to_know():
    watched = Watched(None, servers=3)
    assert watched.watch.certificates() == ()
    watched.watch.look()
    assert watched.watch.certificates() == ()


# -- what all nodes say ------------------------------------------------------------------------


def reported(kind, of, days, life=365):
    expires = NOW + days * DAY
    return {"kind": kind, "of": of, "begins": expires - life * DAY, "expires": expires}


def answer(*certificates):
    return {"zookeeper_certificates": list(certificates)}


FILE, CA, ZK1 = (
    partial(reported, "client", "/zk.pem"),
    partial(reported, "authority", "CN=ca"),
    "zk1:2181",
)


def test_a_node_s_own_file_is_reported_for_each_and_what_is_common_once():
    answers = {
        "n2": answer(FILE(5), CA(10), reported("server", ZK1, 3)),
        "n1": answer(FILE(90), CA(10), reported("server", ZK1, 3)),
        "n3": answer(FILE(6), CA(400), reported("server", "zk2:2181", 90)),
        "n4": None,
    }
    assert [each.subject for each in needed_in(answers)] == [
        "authority CN=ca", "/zk.pem of node n1", "/zk.pem of node n2", "/zk.pem of node n3",
        "ZooKeeper zk1:2181", "ZooKeeper zk2:2181",
    ]  # fmt: skip
    ca, n2, n3, zk1 = (each.sentence(NOW) for each in expiring_in(answers, NOW))
    assert ca == (
        "the certificate of the authority CN=ca, which n1, n2 need for ZooKeeper, expires in 10 d;"
        " then they cannot connect again once their connections break"
    )
    assert n2 == (
        "the certificate /zk.pem of node n2 for ZooKeeper expires in 5 d; then it cannot connect"
        " again once its connection breaks"
    )
    assert n3 == n2.replace("n2", "n3").replace("5 d", "6 d")
    assert zk1 == (
        "the certificate of ZooKeeper server zk1:2181 expires in 3 d; then nodes cannot connect to"
        " it"
    )


@pytest.mark.parametrize(
    ("days", "life", "severity"),
    [
        (14.1, 365, None),
        (13.9, 365, "warning"),
        (3.4, 365, "critical"),
        (-1, 365, "critical"),
        # Short-lived ones are renewed by a program, when about a third is left.
        (10, 30, None),
        (4.9, 30, "warning"),
        (0.3, 1, None),
        (0.1, 1, "warning"),
        (0.04, 1, "critical"),
    ],
)
def test_it_is_reported_early_enough_and_short_lived_ones_are_not_always_reported(
    days, life, severity
):
    (facts,) = needed_in({"n1": answer(FILE(days, life))})
    judged = judge_certificate(facts, NOW)
    assert (judged.severity if judged.holds else None) == severity
    assert judged.key == ("certificate", "", "", "/zk.pem of node n1")
    assert judged.hint
    assert ("has expired" in judged.text) is (days < 0)


def test_what_a_node_has_not_reported_is_not_known():
    assert all_known([answer(), answer(CA(1))])
    for silent in (None, {}, {"zookeeper_certificates": None}):
        assert not all_known([answer(), silent])
