"""E-mail through a real mail server that wants TLS and an account."""

import ssl
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from setl.alarms.alarm_state import AlarmKey, Event, Notice
from setl.alarms.mail import Mail
from setl.alarms.settings import MailSettings
from setl.errors import ConfigurationError, SetlError, TransientError
from setl_embedded.certificates import CertificateAuthority
from setl_embedded.ports import free_port

pytestmark = pytest.mark.not_mixed(why="no database takes part")
PASSWORD = "the right password"
EVENT = Event(
    "firing", AlarmKey("lag", "shop", "ab"), "warning", "ab is behind", "", 1_700_000_000.0
)
NOTICE = Notice("0123456789abcdef", 1_700_000_000.0, (EVENT,))


class Mailbox:
    """What arrived: the account, whether TLS was spoken, and the message."""

    def __init__(self):
        self.arrived, self.refuses = [], {}

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # noqa: N802
        if address in self.refuses:
            return self.refuses[address]
        envelope.rcpt_tos.append(address)
        return "250 taken"

    async def handle_DATA(self, _server, session, envelope):  # noqa: N802
        account = session.auth_data.login.decode() if session.auth_data else ""
        self.arrived.append(
            (account, session.ssl is not None, message_from_bytes(envelope.content))
        )
        return "250 taken"


def allowed(_server, _session, _envelope, _mechanism, data):
    right = (data.login, data.password) == (b"setl", PASSWORD.encode())
    return AuthResult(success=right, handled=False, auth_data=data)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("mail"))


@pytest.fixture
def served(authority):
    """Starts a mail server whose certificate is good for some hosts."""

    @contextmanager
    def serve(hosts=("127.0.0.1",), *, tls=True):
        certificate, key = authority.issue("mail", hosts=hosts)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        secured = {
            "tls_context": context,
            "require_starttls": True,
            "auth_required": True,
            "authenticator": allowed,
        }
        mailbox, port = Mailbox(), free_port()
        controller = Controller(mailbox, hostname="127.0.0.1", port=port, **secured if tls else {})
        controller.start()
        settings = MailSettings(
            "127.0.0.1", port, "setl@example.org", ("dba@example.org",),
            user="setl", password=PASSWORD, ca=str(authority.certificate),
        )  # fmt: skip
        try:
            yield settings, mailbox
        finally:
            controller.stop()

    return serve


def send(settings):
    Mail(settings, cluster="shop", node="n1", seconds=10.0).send(NOTICE)


def refused(settings, kind: type[SetlError] = ConfigurationError):
    with pytest.raises(kind) as caught:
        send(settings)
    shown = f"{caught.value} {caught.value.hint}"
    assert PASSWORD not in shown
    return shown


def test_a_message_arrives_through_starttls_with_a_login(served):
    with served() as (settings, mailbox):
        send(settings)
    [(account, encrypted, message)] = mailbox.arrived
    assert (account, encrypted) == ("setl", True)
    assert message["To"] == "dba@example.org"
    assert message["Message-ID"] == f"<{NOTICE.id}@setl>"


def test_a_wrong_password_names_the_setting_and_not_the_password(served):
    with served() as (settings, mailbox):
        shown = refused(replace(settings, password="a wrong password"))
        assert "refuses the account" in shown
        assert "`password` of `mail`" in shown
        assert "a wrong password" not in shown
        assert mailbox.arrived == []
        shown = refused(replace(settings, user="", password=""))
        assert "wants an account" in shown
        assert "`user` and `password` of `mail`" in shown


def test_a_certificate_of_nobody_we_trust_or_of_another_host_gets_no_password(served, tmp_path):
    stranger = CertificateAuthority(tmp_path).certificate
    with served() as (settings, mailbox):
        shown = refused(replace(settings, ca=str(stranger)))
        assert "its certificate is not trusted" in shown
        assert "`ca` of `mail`" in shown
    with served(hosts=("mail.example.org",)) as (settings, other):
        shown = refused(settings)
        assert "is not for this host" in shown
        assert "`host` of `mail`" in shown
    assert mailbox.arrived == other.arrived == []


def test_a_file_of_authorities_that_is_not_there_or_none_is_named(served, tmp_path):
    (tmp_path / "none.pem").write_text("not a certificate")
    with served() as (settings, _):
        for name in ("missing.pem", "none.pem"):
            file = str(tmp_path / name)
            shown = refused(replace(settings, ca=file))
            assert file in shown
            assert "`ca` of `mail`" in shown


def test_a_server_without_tls_gets_neither_password_nor_message(served):
    with served(tls=False) as (settings, mailbox):
        assert "`tls` of `mail`" in refused(settings)
        assert "`tls` of `mail`" in refused(replace(settings, tls="tls"))
        assert mailbox.arrived == []


def test_what_passes_is_transient_and_a_refused_address_is_named(served):
    with served() as (settings, mailbox):
        mailbox.refuses["dba@example.org"] = "451 later"
        refused(settings, TransientError)
        mailbox.refuses["dba@example.org"] = "550 unknown"
        assert "refuses all addresses" in refused(settings)
        two = replace(settings, to=("dba@example.org", "boss@example.org"))
        assert "refuses dba@example.org" in refused(two)
        assert len(mailbox.arrived) == 1
    refused(settings, TransientError)
