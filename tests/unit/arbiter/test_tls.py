import ssl

import pytest

from arbiter.access import Tls
from arbiter.errors import Invalid
from arbiter.session.tls import client_context
from setl_embedded.certificates import CertificateAuthority

SECRET = "hunter2"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    authority = CertificateAuthority(folder)
    certificate, key = authority.issue("n1", password=SECRET)
    _, open_key = authority.issue("n2")
    return {
        "ca": str(authority.certificate),
        "certificate": str(certificate),
        "key": str(key),
        "key_password": SECRET,
        "other": str(open_key),
        "missing": str(folder / "missing.pem"),
    }


def tls(files, **changes):
    wanted = {name: files[name] for name in ("ca", "certificate", "key", "key_password")}
    return Tls(**(wanted | changes))


def test_only_the_given_authority_is_trusted(files):
    context = client_context(tls(files))
    subjects = [certificate["subject"] for certificate in context.get_ca_certs()]
    assert subjects == [((("commonName", "setl embedded authority"),),)]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_without_one_those_of_the_system_are():
    assert client_context(Tls()).verify_mode is ssl.CERT_REQUIRED


def test_a_certificate_is_checked_even_if_the_name_is_not(files):
    context = client_context(tls(files, check_hostname=False))
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ca": "missing"}, "no certificates of authorities in .*: No such file"),
        ({"ca": "key"}, "no certificates of authorities in .*: no certificate or crl found"),
        ({"certificate": "missing"}, r"cannot read the certificate .*missing\.pem: No such file"),
        ({"certificate": "key"}, r"there is no certificate \(PEM\) in .*n1-key\.pem"),
        ({"key": "missing"}, r"cannot read the key .*missing\.pem: No such file"),
        ({"key": "certificate"}, "the key is not there, is not PEM, or its password is wrong"),
        ({"key": "other"}, "cannot use the certificate .*: the key belongs to another certificate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(files, changes, reason):
    with pytest.raises(Invalid, match=reason) as caught:
        client_context(tls(files, **{name: files[file] for name, file in changes.items()}))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("password", ["", "guess"])
def test_a_wrong_or_missing_password_is_an_error_and_no_question(files, password):
    with pytest.raises(Invalid, match="its password is wrong or missing") as caught:
        client_context(tls(files, key_password=password))
    assert "guess" not in str(caught.value)


def test_a_key_alone_is_of_no_use(files):
    with pytest.raises(Invalid, match="without its certificate"):
        client_context(tls(files, certificate=""))
