"""What is read of certificates, in files and from servers."""

import socket
import ssl
import sys
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

from arbiter.access import Tls
from arbiter.certificates import certificates_in, signed_by
from arbiter.servers import ask
from setl_embedded.certificates import CertificateAuthority
from setl_embedded.ports import HOST

DAY = 86_400.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another one of the same name."""
    return CertificateAuthority(tmp_path_factory.mktemp("other"))


def life_of(file):
    return [(each.expires - time.time()) / DAY for each in certificates_in(str(file))]


def test_a_file_reports_how_long_each_of_its_certificates_is_valid(authority, tmp_path):
    late, key = authority.issue("late", life=timedelta(minutes=-1))
    far, _ = authority.issue("far", life=timedelta(days=40_000))  # written with four digits of year
    whole = tmp_path / "whole.pem"
    whole.write_bytes(key.read_bytes() + b"some words\n" + late.read_bytes() + far.read_bytes())
    assert life_of(whole) == pytest.approx([0, 40_000], abs=0.01)
    assert [each.subject for each in certificates_in(str(whole))] == ["CN=late", "CN=far"]
    half = tmp_path / "half.pem"
    half.write_bytes(late.read_bytes()[:200])
    for unread in (key, half, tmp_path / "missing.pem", tmp_path):
        assert certificates_in(str(unread)) == ()


def test_an_authority_of_the_same_name_with_another_key_has_not_signed(authority, other):
    certificate, _ = authority.issue("n1")
    (of_n1,), (mine,), (its,) = (
        certificates_in(str(file))
        for file in (certificate, authority.certificate, other.certificate)
    )
    assert mine.subject == its.subject == of_n1.issuer
    assert signed_by(of_n1, mine)
    assert not signed_by(of_n1, its)
    assert not signed_by(mine, of_n1)


@contextmanager
def server(certificate, key, demands=None):
    """Speaks TLS with whoever comes, and answers; demands certificates of an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if demands:
        context.load_verify_locations(demands)
        context.verify_mode = ssl.CERT_REQUIRED

    def work():
        while True:
            try:
                taken, _ = listening.accept()
            except OSError:
                return
            with (
                context.wrap_socket(
                    taken, server_side=True, do_handshake_on_connect=False
                ) as secured,
                suppress(OSError),
            ):
                try:
                    secured.do_handshake()
                    secured.recv(100)
                    secured.sendall(b"Mode: follower\n")
                except OSError:  # what was sent is read, or its end would cut the alert short
                    socket.socket.shutdown(secured, socket.SHUT_WR)
                    while socket.socket.recv(secured, 100):
                        pass

    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(5.0)


def test_a_server_shows_its_certificate_and_from_python_3_13_on_who_it_is_trusted_by(authority):
    with server(*authority.issue("zk1", hosts=[HOST])) as port:
        answer = ask(HOST, port, 5.0, Tls(ca=str(authority.certificate)))
    assert answer.serves
    shown, *above = [each.subject for each in answer.chain]
    assert shown == "CN=zk1"
    assert above == (["CN=setl embedded authority"] if sys.version_info >= (3, 13) else [])


def test_a_server_that_is_not_trusted_cannot_be_used_and_shows_when_it_expires(authority, other):
    trusting = Tls(ca=str(authority.certificate))
    late = authority.issue("zk-late", hosts=[HOST], life=timedelta(minutes=-1))
    for files, why, days in [
        (late, "certificate has expired", 0),
        (other.issue("zk-other", hosts=[HOST]), "certificate signature failure", 7),
        (authority.issue("elsewhere", hosts=["elsewhere"]), "not valid for", 7),
    ]:
        with server(*files) as port:
            answer = ask(HOST, port, 5.0, trusting)
        assert not answer.serves
        assert "its certificate is not accepted" in answer.refused
        assert why in answer.refused
        (shown,) = answer.chain
        assert (shown.expires - time.time()) / DAY == pytest.approx(days, abs=0.01)


def test_a_server_that_does_not_take_this_side_s_certificate_cannot_be_used(authority, tmp_path):
    files = authority.issue("zk2", hosts=[HOST])
    late, late_key = authority.issue("n-late", life=timedelta(minutes=-1))
    foreign, foreign_key = CertificateAuthority(tmp_path, "another").issue("n-foreign")
    with server(*files, demands=authority.certificate) as port:
        for certificate, key, why in [
            ("", "", "it wants a certificate, and this client was given none"),
            (late, late_key, f"the certificate of this client, {late}, expired at 20"),
            (foreign, foreign_key, "it does not accept the certificate of this client"),
        ]:
            tls = Tls(str(authority.certificate), str(certificate), str(key))
            answer = ask(HOST, port, 5.0, tls)
            assert not answer.serves
            assert why in answer.refused
            assert answer.chain[0].subject == "CN=zk2"
