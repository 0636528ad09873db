import sys

import pytest

from arbiter.access import Access, Tls
from setl.cli import main as command
from setl.cli.access.zookeeper import read_access, weaknesses, zookeeper_access
from setl.cli.nodes.process import node
from setl.errors import ConfigurationError
from setl.node import process


def read(**variables):
    return read_access({f"SETL_ZOOKEEPER_{name}": value for name, value in variables.items()})


def mistakes(**variables):
    with pytest.raises(ConfigurationError) as caught:
        read(**variables)
    return str(caught.value).split("\n")[1:]


def test_nothing_set_is_no_protection():
    assert read_access({"SETL_ZOOKEEPER": "zk1:2181", "PATH": "/bin"}) == Access()


def test_empty_variables_are_not_set():
    assert read(DIGEST="", SASL="", CA="", KEY_PASSWORD="", TLS="", CHECK_HOSTNAME="") == Access()


def test_everything_set():
    assert read(
        DIGEST="setl:a:b c",
        SASL="node:p:w",
        CA="/etc/ca.pem",
        CERTIFICATE="/etc/n1.pem",
        KEY="/etc/n1-key.pem",
        KEY_PASSWORD="k",
        CHECK_HOSTNAME="No",
    ) == Access(
        digest="setl:a:b c",
        sasl={"mechanism": "DIGEST-MD5", "username": "node", "password": "p:w"},
        tls=Tls("/etc/ca.pem", "/etc/n1.pem", "/etc/n1-key.pem", "k", check_hostname=False),
    )


@pytest.mark.parametrize(
    ("variables", "tls"),
    [
        ({"TLS": "yes"}, Tls()),
        ({"CA": "ca.pem"}, Tls(ca="ca.pem")),
        ({"CERTIFICATE": "c.pem"}, Tls(certificate="c.pem")),
        ({"CERTIFICATE": "c.pem", "KEY_PASSWORD": "k"}, Tls(certificate="c.pem", key_password="k")),
        ({"CHECK_HOSTNAME": "on"}, Tls()),
        ({"CHECK_HOSTNAME": "0"}, Tls(check_hostname=False)),
        ({"TLS": "no"}, None),
    ],
)
def test_tls_is_on_when_any_of_its_variables_is_set(variables, tls):
    assert read(**variables).tls == tls


def test_all_mistakes_are_named_at_once_and_no_value_is_shown():
    found = mistakes(
        DIGEST="hunter2", SASL="me@home:hunter2", TLS="no", CA="hunter2", KEY="hunter2"
    )
    assert found == [
        "  SETL_ZOOKEEPER_TLS says no, but there is SETL_ZOOKEEPER_CA, SETL_ZOOKEEPER_KEY",
        "  SETL_ZOOKEEPER_KEY is of no use without SETL_ZOOKEEPER_CERTIFICATE",
        "  SETL_ZOOKEEPER_DIGEST is not of the form user:password",
        "  SETL_ZOOKEEPER_SASL has a / or @ in the user's name",
    ]


@pytest.mark.parametrize("name", ["TLS", "CHECK_HOSTNAME"])
def test_a_switch_is_yes_or_no(name):
    assert mistakes(**{name: "maybe"}) == [f"  SETL_ZOOKEEPER_{name} is neither yes nor no"]


@pytest.mark.parametrize("login", ["user", "user:", ":password", ":"])
@pytest.mark.parametrize("name", ["DIGEST", "SASL"])
def test_a_login_has_a_user_and_a_password(name, login):
    assert mistakes(**{name: login}) == [
        f"  SETL_ZOOKEEPER_{name} is not of the form user:password"
    ]


def test_files_that_cannot_be_used_are_wrong_configuration(tmp_path):
    missing = tmp_path / "ca.pem"
    with pytest.raises(ConfigurationError, match=r"TLS with ZooKeeper: .*ca\.pem: No such file"):
        zookeeper_access({"SETL_ZOOKEEPER_CA": str(missing)})


def test_what_was_read_shows_no_secret():
    access = read(DIGEST="u:hunter2", SASL="u:hunter2", CERTIFICATE="c", KEY_PASSWORD="hunter2")
    assert "hunter2" not in f"{access!r} {access}"


@pytest.mark.parametrize("arguments", [["list"], ["node"]])
def test_wrong_variables_are_wrong_usage(arguments, monkeypatch, capsys):
    monkeypatch.setenv("SETL_ZOOKEEPER_DIGEST", "hunter2")
    monkeypatch.setattr(sys, "argv", ["setl", *arguments])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == command.EXIT_CONFIGURATION
    printed = capsys.readouterr()
    assert "SETL_ZOOKEEPER_DIGEST is not of the form user:password" in printed.err
    assert "hunter2" not in printed.out + printed.err


def test_a_node_logs_in_with_what_the_environment_says(monkeypatch, capfd):
    made = []

    class Recorded(process.NodeProcess):
        def __init__(self, settings, engine, **_):
            super().__init__(settings, engine)
            made.append(self)

        def run(self):
            return

    monkeypatch.setattr(process, "NodeProcess", Recorded)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("SETL_ZOOKEEPER_DIGEST", "u:hunter2")
    node.main(["--id", "n1", "--zookeeper", "zk1:2181"], standalone_mode=False)
    assert "the password of SETL_ZOOKEEPER_DIGEST goes in plain" in capfd.readouterr().err
    (recorded,) = made
    assert recorded._arbiter._session_of_kazoo._access == Access(digest="u:hunter2")
    assert "hunter2" not in repr(recorded._settings)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, ["no login with ZooKeeper"]),
        ({"TLS": "yes"}, ["no login with ZooKeeper"]),
        ({"DIGEST": "a:hunter2"}, ["SETL_ZOOKEEPER_DIGEST goes in plain"]),
        ({"SASL": "a:hunter2"}, ["take over a connection"]),
        ({"DIGEST": "a:hunter2", "CA": "/ca.pem"}, []),
        ({"SASL": "a:hunter2", "TLS": "yes"}, []),
        ({"SASL": "a:hunter2", "CHECK_HOSTNAME": "no"}, ["SETL_ZOOKEEPER_CHECK_HOSTNAME is no"]),
        ({"CHECK_HOSTNAME": "no"}, ["no login", "SETL_ZOOKEEPER_CHECK_HOSTNAME is no"]),
    ],
)
def test_what_is_not_protected_is_said(variables, words):
    found = weaknesses(read(**variables), "127.0.0.1:2181,zk2:2181/root")
    assert len(found) == len(words)
    assert all(word in said for word, said in zip(words, found, strict=True))
    assert "hunter2" not in "".join(found)
    # Nobody else is on the way to servers of this machine.
    assert not weaknesses(read(**variables), "127.0.0.1:2181,localhost:2182,[::1]:2183")


def test_what_are_no_addresses_is_said_elsewhere():
    assert not weaknesses(Access(), "zk1:not a port")
