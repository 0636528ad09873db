"""Connections to a server that offers TLS."""

import ssl
from dataclasses import replace
from typing import cast

import pytest

from setl.errors import ConfigurationError, UntrustedServerError
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.load.bulk_connection import BulkConnection, bulk_of
from setl.systems.mysql.login import PlainConnection
from setl_embedded.certificates import CertificateAuthority
from tests.integration.pipelines import execute, fresh_name
from tests.mysql_servers import mariadb_version, needs_mariadb


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(another_server, authority, tmp_path_factory):
    certificate, key = authority.issue("server", hosts=["127.0.0.1"])
    options = (f"--ssl-cert={certificate}", f"--ssl-key={key}")
    with another_server(tmp_path_factory.mktemp("server"), "tls", 7, options=options) as started:
        yield started


def cipher(server, ssl_ca=""):
    """What a connection is encrypted with, "" for nothing."""
    endpoint = MysqlEndpoint(server.host, server.port, server.user, server.password, ssl_ca=ssl_ca)
    with connect(endpoint) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return cursor.fetchall()[0][1]


def test_a_connection_is_encrypted_if_the_server_offers_it(server):
    assert cipher(server)


@pytest.mark.family("mariadb", why="MySQL always offers it")
def test_a_connection_to_a_server_that_does_not_offer_it(site_a, another_server, tmp_path):
    with site_a.connect() as connection:
        offers = (mariadb_version(connection) or ()) >= (11, 4)  # also without a certificate
    if not offers:
        assert not cipher(site_a)
        return
    assert cipher(site_a)
    with another_server(tmp_path / "plain", "plain", 8, options=["--skip-ssl"]) as server:
        assert not cipher(server)


def test_the_systems_certificates_are_not_read_where_none_is_compared(server, monkeypatch):
    # It costs more than the connection, each time.
    def read(*_):
        raise AssertionError("the system's certificates were read")

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", read)
    assert cipher(server)


def test_a_certificate_is_compared_to_the_authority_that_is_named(server, authority):
    assert cipher(server, str(authority.certificate))


def test_another_authority_or_a_file_that_is_none_is_said(server, tmp_path):
    other = CertificateAuthority(tmp_path).certificate
    with pytest.raises(UntrustedServerError, match="CERTIFICATE_VERIFY_FAILED"):
        cipher(server, str(other))
    with pytest.raises(ConfigurationError, match="ssl_ca"):
        cipher(server, str(tmp_path / "missing.pem"))


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
@pytest.mark.parametrize("named", [False, True])
def test_a_statement_is_executed_for_many_rows_over_tls_too(server, authority, named):
    ssl_ca = str(authority.certificate) if named else ""
    endpoint = MysqlEndpoint(server.host, server.port, server.user, server.password, ssl_ca=ssl_ca)
    with connect(endpoint, kind=BulkConnection) as connection, connection.cursor() as cursor:
        needs_mariadb(connection, 10, 11, 11, what="such statements that lose no rows")
        cursor.execute("CREATE DATABASE IF NOT EXISTS bulk")
        cursor.execute("CREATE OR REPLACE TABLE bulk.t (v VARCHAR(9))")
        rows = [b"\0\1" + letter for letter in (b"a", b"b", b"c")]
        bulk = bulk_of(connection)
        assert bulk is not None
        bulk.execute_bulk("INSERT INTO bulk.t VALUES (?)", b"\xfd\0", rows, len(rows))
        cursor.execute("SELECT GROUP_CONCAT(v) FROM bulk.t")
        assert cursor.fetchall() == (("a,b,c",),)
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        assert cursor.fetchall()[0][1]


ACCOUNT = "CREATE USER {0} IDENTIFIED WITH caching_sha2_password BY 'p'"
PUBLIC_KEY = "SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'"


@pytest.mark.family("mysql", why="MariaDB has no caching_sha2_password")
def test_a_password_that_the_server_does_not_know_yet(server, tmp_path, monkeypatch):
    monkeypatch.setattr("setl.systems.mysql.connection.stays_here", lambda _: False)
    account = fresh_name("user")
    execute(server, ACCOUNT.format(account))
    key = tmp_path / "key.pem"
    key.write_text(execute(server, PUBLIC_KEY)[0][1])
    far = MysqlEndpoint(server.host, server.port, account, "p")
    with pytest.raises(ConfigurationError, match="asks for the password itself"):
        connect(far)
    with connect(replace(far, server_public_key=str(key))) as connection:
        assert cast("PlainConnection", connection).encrypted, "rows are as safe as before"
    connect(far).close()  # the server remembers it
    execute(server, "FLUSH PRIVILEGES")
    with pytest.raises(ConfigurationError, match="asks for the password itself"):
        connect(far)
    connect(replace(far, insecure_login=True)).close()
    execute(server, f"DROP USER {account}")
