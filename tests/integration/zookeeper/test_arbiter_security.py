"""Secured servers: who gets in, who does not and how soon that is said, and what stays secret."""

import logging
import socket
import sys
import threading
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, make_digest_acl

from arbiter.access import Access, Tls
from arbiter.errors import Conflict, Contact, Denied, Unreachable
from arbiter.values import HistoryItem, LeaderLockStatus, NodeInfo, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl_embedded import ZooKeeper, ZooKeeperSecurity
from setl_embedded.certificates import CertificateAuthority
from setl_embedded.ports import HOST
from tests.waiting import eventually

pytestmark = pytest.mark.servers

PIPELINE = PipelineId("shop", "there")
TIMEOUT = 12.0  # seconds a session lasts without contact: enough for a busy machine
SOON = 10.0
"""Seconds within which a refusal has to be said, on a busy machine; `join` waits for twice that."""

DIGEST = Access(digest="setl:s3cret-word")


@pytest.fixture(scope="module")
def security(tmp_path_factory):
    return ZooKeeperSecurity(
        tmp_path_factory.mktemp("security"),
        tls=True,
        client_certificates=True,
        accounts=["setl", "other"],
    )


@pytest.fixture(scope="module")
def secured(tmp_path_factory, security):
    """A server that speaks TLS with holders of certificates, and offers SASL."""
    folder = tmp_path_factory.mktemp("secured")
    with ZooKeeper(folder, "zookeeper-secured", security=security) as server:
        yield server


@pytest.fixture(scope="module")
def strict_security(tmp_path_factory):
    return ZooKeeperSecurity(
        tmp_path_factory.mktemp("strict-security"), accounts=["setl"], require_sasl=True
    )


@pytest.fixture(scope="module")
def strict(tmp_path_factory, strict_security):
    """A server without TLS that refuses whoever has not logged in by SASL."""
    folder = tmp_path_factory.mktemp("strict")
    with ZooKeeper(folder, "zookeeper-strict", security=strict_security) as server:
        yield server


@pytest.fixture
def root():
    return f"/security-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def joined(root):
    """Makes started arbiters under one root, and closes them."""
    made = []

    def join(hosts, access=None, **options):
        options = {"root": root, "session_timeout": TIMEOUT} | options
        arbiter = ZooKeeperArbiter(hosts, access=access, **options)
        made.append(arbiter)
        arbiter.start(20)
        return arbiter

    yield join
    for arbiter in made:
        arbiter.close()


def sasl(security, user="setl", password=None):
    return {
        "mechanism": "DIGEST-MD5",
        "username": user,
        "password": security.passwords[user] if password is None else password,
    }


def tls(security, **changes):
    wanted = {
        "ca": str(security.ca),
        "certificate": str(security.certificate),
        "key": str(security.key),
        "key_password": security.key_password,
    }
    return Tls(**(wanted | changes))


def both(security, user="setl", password=None):
    """TLS and a SASL login."""
    return Access(sasl=sasl(security, user, password), tls=tls(security))


def use(arbiter):
    """Make one znode of every kind."""
    arbiter.channels.put("shop", {"channel": "shop"})
    arbiter.nodes.announce(NodeInfo("n1"))
    held = arbiter.leader_locks.campaign(PIPELINE, "n1")
    held = arbiter.leader_locks.set_status(PIPELINE, held, LeaderLockStatus.OVERTAKE)
    arbiter.positions.store(PIPELINE, {"file": "b.1"}, None)
    arbiter.history.add(PIPELINE, HistoryItem(held.epoch, "n1", "test", 0.0))
    return held


def refusal(join, *arguments, **options):
    """What is said to somebody who does not get in, and that it is said soon."""
    began = time.monotonic()
    with pytest.raises(Denied) as caught:
        join(*arguments, **options)
    assert time.monotonic() - began < SOON
    return str(caught.value)


def tree(arbiter, path):
    """Every path from `path` down, with its ACLs."""
    client = arbiter._session_of_kazoo._client
    found = {path: client.get_acls(path)[0]}
    for name in client.get_children(path):
        found |= tree(arbiter, f"{path}/{name}")
    return found


@pytest.fixture
def by_hand(zookeeper):
    """A client of kazoo, as an administrator has one."""
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


# -- those who get in -------------------------------------------------------------------------


def test_tls_and_sasl_carry_everything_an_arbiter_does(secured, security, joined):
    a = joined(secured.hosts, both(security))
    b = joined(secured.hosts, both(security))
    held = use(a)
    woken = []
    b.session.watch(lambda: woken.append(b.session.contact()))
    eventually(lambda: b._session_of_kazoo._watches.complete)
    assert b.leader_locks.one(PIPELINE) == held
    assert [node.nid for node in b.nodes.all()] == ["n1"]
    assert b.positions.read(PIPELINE) == ({"file": "b.1"}, 0)
    assert [item.nid for item in b.history.all(PIPELINE)] == ["n1"]
    woken.clear()
    a.leader_locks.release(PIPELINE, held)
    eventually(lambda: woken, 20)
    assert b.leader_locks.campaign(PIPELINE, "n2").epoch > held.epoch


def test_a_cut_tls_connection_is_made_again_in_the_same_session(secured, security, joined):
    arbiter = joined(secured.hosts, both(security))
    held = use(arbiter)
    seen = []
    arbiter.session.watch(lambda: seen.append(arbiter.session.contact()))
    arbiter._session_of_kazoo._handler.drop()
    eventually(lambda: Contact.SUSPENDED in seen, 30, interval=0.01)
    eventually(lambda: arbiter.session.contact() is Contact.CONNECTED, 30)
    assert arbiter.session.session_id() == held.session
    assert arbiter.leader_locks.one(PIPELINE) == held
    assert Contact.LOST not in seen


def test_many_answers_at_once_come_through_tls(secured, security, joined):
    # What stays in the buffer of TLS is seen with the next sign of life, ten seconds later.
    arbiter = joined(secured.hosts, both(security), session_timeout=60.0)
    names = [f"c{n:03}" for n in range(60)]
    for name in names:
        arbiter.channels.put(name, {"padding": "x" * 500})
    for _ in range(5):
        began = time.monotonic()
        assert [channel.name for channel in arbiter.channels.all()] == names
        assert time.monotonic() - began < 5.0


def test_everything_below_the_root_belongs_to_its_maker_alone(secured, security, joined, root):
    arbiter = joined(secured.hosts, both(security))
    use(arbiter)
    found = tree(arbiter, root)
    for kind in ("nodes/n1", "channels/shop", "shop/there/mainstem", "there/position", "history/"):
        assert any(kind in path for path in found), kind
    everybody = {(acl.id.scheme, acl.id.id, acl.perms) for acls in found.values() for acl in acls}
    # Not even the certificate's holder, whom ZooKeeper counts as one identity more.
    assert everybody == {("sasl", "setl", 31)}


def test_either_of_two_credentials_opens_what_both_have_made(
    zookeeper, strict, strict_security, joined, root
):
    login = sasl(strict_security)
    with_both = Access(digest=DIGEST.digest, sasl=login)
    use(joined(strict.hosts, with_both))
    assert joined(strict.hosts, Access(sasl=login)).channels.one("shop").name == "shop"
    found = tree(joined(strict.hosts, with_both), root)
    assert {acl.id.scheme for acls in found.values() for acl in acls} == {"digest", "sasl"}


def test_a_root_in_a_folder_that_only_an_administrator_writes_to(zookeeper, joined, by_hand):
    """ZooKeeper says "no permission" for the folder before it says "exists already"."""
    folder = f"/closed-{uuid.uuid4().hex[:12]}"
    mine = make_digest_acl("setl", "s3cret-word", all=True)
    by_hand.create(folder, b"", acl=[ACL(1, Id("world", "anyone"))])
    with pytest.raises(Denied, match=folder):
        use(joined(zookeeper.hosts, DIGEST, root=f"{folder}/missing"))
    admin = KazooClient(zookeeper.hosts, auth_data=[("digest", "admin:a")])
    admin.start()
    try:
        home = f"/home-{uuid.uuid4().hex[:12]}"
        admin.create(home, acl=[make_digest_acl("admin", "a", all=True)])
        admin.create(f"{home}/setl", acl=[mine])
    finally:
        admin.stop()
        admin.close()
    use(joined(zookeeper.hosts, DIGEST, root=f"{home}/setl"))


# -- those who do not -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stranger",
    [None, Access(digest="setl:wrong"), Access(digest="other:s3cret-word")],
    ids=["no credentials", "wrong password", "other user"],
)
def test_a_stranger_to_the_digest_is_reported_so_at_once(zookeeper, joined, root, stranger):
    use(joined(zookeeper.hosts, DIGEST))
    said = refusal(joined, zookeeper.hosts, stranger)
    assert said == (
        f"ZooKeeper at {zookeeper.hosts} does not let this client read {root};"
        " the root was made with other credentials than these"
    )
    assert joined(zookeeper.hosts, DIGEST).channels.one("shop").name == "shop"


def test_a_stranger_to_the_login_is_reported_so_at_once(secured, security, joined):
    use(joined(secured.hosts, both(security)))
    for_tls = tls(security)
    for access, why in [
        (Access(sasl=sasl(security, password="guess"), tls=for_tls), "refuses the credentials"),
        (both(security, "nobody", "guess"), "refuses the credentials"),
        (both(security, "other"), "made with other credentials"),
        (Access(tls=for_tls), "made with other credentials"),
        (Access(digest="setl:guess", tls=for_tls), "made with other credentials"),
    ]:
        assert why in refusal(joined, secured.hosts, access)


def test_a_server_that_demands_a_login_says_so(strict, strict_security, joined, caplog):
    for access, why in [
        (None, "wants a login that this client has not made"),
        (DIGEST, "wants a login that this client has not made"),
        (Access(sasl=sasl(strict_security, password="guess")), "wants a login, and refuses"),
    ]:
        assert why in refusal(joined, strict.hosts, access)
    assert not [record for record in caplog.records if record.exc_info]
    use(joined(strict.hosts, Access(sasl=sasl(strict_security))))


def test_a_login_where_none_is_offered_has_an_end(zookeeper, root):
    access = Access(sasl={"mechanism": "DIGEST-MD5", "username": "setl", "password": "x"})
    arbiter = ZooKeeperArbiter(zookeeper.hosts, root=root, session_timeout=TIMEOUT, access=access)
    began = time.monotonic()
    with pytest.raises((Denied, Unreachable), match="offer SASL"):
        arbiter.start(8.0)
    assert time.monotonic() - began < 8.0 + 5
    arbiter.close()


def test_certificates_that_do_not_fit_are_refused_on_either_side(
    secured, security, joined, tmp_path
):
    foreign = ZooKeeperSecurity(tmp_path, tls=True)
    late, late_key = security.authority.issue("late", life=timedelta(minutes=-1))
    for changed, why in [
        ({"ca": str(foreign.ca)}, "its certificate is not accepted"),
        ({"certificate": "", "key": ""}, "it wants a certificate, and this client was given none"),
        (
            {"certificate": str(late), "key": str(late_key)},
            f"the certificate of this client, {late}, expired at 20",
        ),
        (
            {
                "certificate": str(foreign.certificate),
                "key": str(foreign.key),
                "key_password": foreign.key_password,
            },
            f"it does not accept the certificate of this client, {foreign.certificate}",
        ),
    ]:
        access = Access(sasl=sasl(security), tls=tls(security, **changed))
        assert why in refusal(joined, secured.hosts, access)


def test_the_name_in_a_certificate_counts_unless_reported_otherwise(tmp_path, joined):
    security = ZooKeeperSecurity(tmp_path / "s", tls=True, server_names=("zk.example",))
    with ZooKeeper(tmp_path / "zookeeper", "zookeeper-elsewhere", security=security) as server:
        said = refusal(joined, server.hosts, Access(tls=tls(security)))
        assert "certificate is not valid for '127.0.0.1'" in said
        use(joined(server.hosts, Access(tls=tls(security, check_hostname=False))))


def test_plain_and_tls_do_not_meet_and_nothing_hangs(secured, zookeeper, security, root):
    for hosts, access, why in [
        (secured.hosts, None, "wants TLS"),
        (zookeeper.hosts, Access(tls=tls(security)), "TLS"),
    ]:
        arbiter = ZooKeeperArbiter(hosts, root=root, session_timeout=TIMEOUT, access=access)
        began = time.monotonic()
        with pytest.raises(Unreachable, match=why):
            arbiter.start(4.0)
        assert time.monotonic() - began < 4.0 + 5
        arbiter.close()


# -- roots that were there before -------------------------------------------------------------


def test_credentials_are_refused_where_they_would_protect_nothing(zookeeper, joined, root):
    use(joined(zookeeper.hosts))
    said = refusal(joined, zookeeper.hosts, DIGEST)
    assert said.startswith(f"{root} in ZooKeeper at {zookeeper.hosts} is open to clients without")
    assert f"setAcl -R {root} auth::cdrwa" in said
    # Nothing was changed: whoever works without credentials goes on.
    assert joined(zookeeper.hosts).channels.one("shop").name == "shop"


def test_a_root_that_others_may_only_read_is_open_too(zookeeper, joined, root, by_hand):
    mine = make_digest_acl("setl", "s3cret-word", all=True)
    by_hand.create(root, b"", acl=[mine, ACL(1, Id("world", "anyone"))])
    assert "is open to clients without" in refusal(joined, zookeeper.hosts, DIGEST)


@pytest.mark.parametrize("folder", ["nodes", "channels"])
def test_closing_the_root_alone_is_not_enough(zookeeper, joined, root, folder):
    arbiter = joined(zookeeper.hosts, DIGEST)
    use(arbiter)
    client = arbiter._session_of_kazoo._client
    client.set_acls(f"{root}/{folder}", OPEN_ACL_UNSAFE)
    assert f"{root}/{folder} in ZooKeeper" in refusal(joined, zookeeper.hosts, DIGEST)


def test_the_hint_that_the_error_names_is_one(zookeeper, joined, root):
    use(joined(zookeeper.hosts))
    refusal(joined, zookeeper.hosts, DIGEST)
    owner = KazooClient(zookeeper.hosts, auth_data=[("digest", DIGEST.digest)])
    owner.start()
    try:
        close_all(owner, root)  # what setAcl -R does
    finally:
        owner.stop()
        owner.close()
    assert joined(zookeeper.hosts, DIGEST).channels.one("shop").name == "shop"
    assert "made with other credentials" in refusal(joined, zookeeper.hosts)


def close_all(client, path):
    for name in client.get_children(path):
        close_all(client, f"{path}/{name}")
    client.set_acls(path, [ACL(31, Id("auth", ""))])


# -- credentials that change while a node runs ------------------------------------------------


def test_a_login_that_is_withdrawn_is_said_to_be_and_may_come_back(tmp_path, joined):
    right = ZooKeeperSecurity(tmp_path / "right", accounts=["setl"])
    wrong = ZooKeeperSecurity(tmp_path / "wrong", accounts=["setl"])
    with ZooKeeper(tmp_path / "zookeeper", "zookeeper-own", tick_ms=200, security=right) as server:
        arbiter = joined(server.hosts, Access(sasl=sasl(right)))
        held = use(arbiter)
        server.security = wrong
        server.restart()
        eventually(lambda: arbiter.session.contact() is Contact.LOST, 40)

        def denied():
            try:
                arbiter.channels.all()
            except Unreachable:
                return False
            except Denied as error:
                return "refuses the credentials" in str(error)
            return False

        eventually(denied, 20)
        for _ in range(20):
            began = time.monotonic()
            with pytest.raises((Denied, Unreachable)):
                arbiter.channels.all()
            assert time.monotonic() - began < TIMEOUT / 3 + 5
        server.security = right
        server.restart()

        def back():
            try:
                arbiter.nodes.announce(NodeInfo("n1"))
            except (Unreachable, Denied, Conflict):  # the session before it is not over yet
                return False
            return arbiter.session.contact() is Contact.CONNECTED

        eventually(back, 30)
        eventually(lambda: arbiter.leader_locks.one(PIPELINE) is None, 40)
        assert arbiter.leader_locks.campaign(PIPELINE, "n1").epoch > held.epoch


class HangingUp:
    """Passes bytes on between clients and a server; may hang up where the login begins."""

    def __init__(self, port):
        self._port = port
        self._server = socket.create_server((HOST, 0))
        self._open = []
        self.hangs_up = False
        self.logins = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def hosts(self):
        return f"{HOST}:{self._server.getsockname()[1]}"

    def cut(self):
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection((HOST, self._port))
            self._open += [near, far]
            threading.Thread(target=self._upwards, args=(near, far), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near), daemon=True).start()

    def _upwards(self, near, far):
        """The client's first frame begins the session, and the second the login."""
        head = near.recv(4, socket.MSG_WAITALL)
        far.sendall(head + near.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        if self.hangs_up:
            near.recv(1)
            self.logins += 1
            time.sleep(0.1)  # for requests to be made meanwhile
            near.shutdown(socket.SHUT_RDWR)
            far.shutdown(socket.SHUT_RDWR)
        else:
            self._pump(near, far)

    def _pump(self, source, target):
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


def test_a_server_that_dies_at_the_login_has_not_refused_it(strict, strict_security, joined):
    proxy = HangingUp(strict.port)
    try:
        arbiter = joined(proxy.hosts, Access(sasl=sasl(strict_security)))
        use(arbiter)
        proxy.hangs_up = True
        proxy.cut()
        deadline = time.monotonic() + 60
        while proxy.logins < 3:
            assert time.monotonic() < deadline
            with pytest.raises(Unreachable):  # and never Denied, which would end the node
                arbiter.channels.all()
            time.sleep(0.02)
        proxy.hangs_up = False
        eventually(lambda: arbiter.session.session_id() and answered(arbiter.channels.all), 60)
    finally:
        proxy.close()


def answered(ask):
    try:
        return ask()
    except Unreachable:
        return None


# -- secrets ----------------------------------------------------------------------------------


def test_no_secret_is_logged_said_stored_or_on_a_command_line(
    secured, security, joined, caplog, root
):
    caplog.set_level(logging.DEBUG)
    for name in ("kazoo", "kazoo.client"):  # a node that ran in this process has muted them
        caplog.set_level(logging.DEBUG, logger=name)
    secrets = ["s3cret-word", *security.passwords.values(), security.key_password]
    full = Access(digest=DIGEST.digest, sasl=sasl(security), tls=tls(security))
    arbiter = joined(secured.hosts, full)
    use(arbiter)
    said = [
        refusal(joined, secured.hosts, both(security, "other")),
        refusal(joined, secured.hosts, Access(digest="x:s3cret-word", tls=tls(security))),
        refusal(joined, secured.hosts, both(security, "setl", security.passwords["other"])),
    ]
    client = arbiter._session_of_kazoo._client
    stored = [client.get(path)[0].decode() for path in tree(arbiter, root)]
    server = Path(f"/proc/{secured.pid}/cmdline").read_text()
    assert "jaas.conf" in server
    positions = {
        "log": caplog.text,
        "errors": "".join(said),
        "repr": f"{full!r} {arbiter!r} {arbiter._session_of_kazoo!r}",
        "znodes": "".join(stored),
        "command line": server,
        "the server's log": secured.log.read_text(),
    }
    assert caplog.text
    for position, text in positions.items():
        assert not [secret for secret in secrets if secret in text], position


def test_files_of_the_embedded_servers_are_their_owners_alone(security):
    folder = Path(security.ca).parent
    assert folder.stat().st_mode & 0o077 == 0
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


# -- from the command line --------------------------------------------------------------------


@pytest.fixture
def setl(monkeypatch, capsys):
    """Runs a command; gives its exit status, what it printed, and its error."""

    from setl.cli import main as command

    def run(*arguments, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"SETL_ZOOKEEPER_{name}", value)
        monkeypatch.setattr(sys, "argv", ["setl", *arguments])
        try:
            command.main()
        except SystemExit as ended:
            status = ended.code
        else:
            status = 0
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_commands_take_tls_and_login_from_the_environment(secured, security, joined, root, setl):
    joined(secured.hosts, both(security)).nodes.announce(NodeInfo("n-of-this-test"))
    where = ("--zookeeper", secured.hosts, "--root", root)
    password = security.passwords["setl"]
    environment = {
        "SASL": f"setl:{password}",
        "CA": str(security.ca),
        "CERTIFICATE": str(security.certificate),
        "KEY": str(security.key),
        "KEY_PASSWORD": security.key_password,
    }
    status, out, _ = setl("list", *where, **environment)
    assert status == 0
    assert "n-of-this-test" in out
    status, _, error = setl("list", *where, **(environment | {"SASL": "setl:guess"}))
    assert status == 4
    assert "refuses the credentials" in error
    assert "guess" not in error
    status, _, error = setl("list", *where, **(environment | {"KEY_PASSWORD": "guess"}))
    assert status == 2
    assert "its password is wrong or missing" in error
    assert "guess" not in error


def test_a_session_that_cannot_come_back_says_why(secured, security, joined, tmp_path):
    certificate, key = tmp_path / "client.pem", tmp_path / "client-key.pem"

    def use_files(pair):
        for file, given in zip((certificate, key), pair, strict=True):
            file.write_bytes(given.read_bytes())

    use_files(security.authority.issue("first"))
    files = {"certificate": str(certificate), "key": str(key), "key_password": ""}
    arbiter = joined(secured.hosts, Access(sasl=sasl(security), tls=tls(security, **files)))
    assert arbiter.session.problem() == ""
    whole = certificate.read_bytes()
    certificate.write_bytes(whole[: len(whole) // 2])  # as while it is being copied
    arbiter._znodes.drop()
    eventually(lambda: str(certificate) in arbiter.session.problem(), 30)
    assert arbiter.session.contact() is not Contact.CONNECTED
    use_files(security.authority.issue("late", life=timedelta(minutes=-1)))
    eventually(lambda: f"{certificate}, expired at 20" in arbiter.session.problem(), 30)
    # Renewed, with another key. Nothing is started again.
    use_files(security.authority.issue("renewed"))
    eventually(lambda: arbiter.session.contact() is Contact.CONNECTED, 30)
    assert arbiter.session.problem() == ""


def test_a_server_that_did_not_trust_a_certificate_at_its_start_names_it(tmp_path, joined):
    """ZooKeeper takes it in TLS, and ends the session without a word."""
    security = ZooKeeperSecurity(tmp_path / "one", tls=True, client_certificates=True)
    two = CertificateAuthority(tmp_path, "authority two")
    certificate, key = two.issue("client-two")
    with ZooKeeper(tmp_path / "zookeeper", "zookeeper-early", security=security) as server:
        trusted = Path(security.ca)
        trusted.write_text(trusted.read_text() + two.certificate.read_text())
        files = {"certificate": str(certificate), "key": str(key), "key_password": ""}
        arbiter = ZooKeeperArbiter(
            server.hosts, session_timeout=TIMEOUT, access=Access(tls=tls(security, **files))
        )
        with pytest.raises(Unreachable, match=f"this client's certificate, {certificate}"):
            arbiter.start(10.0)
        arbiter.close()
        server.restart()
        use(joined(server.hosts, Access(tls=tls(security, **files))))
