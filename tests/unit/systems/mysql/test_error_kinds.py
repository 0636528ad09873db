"""Which errors of a server pass, and which are somebody's to fix."""

from contextlib import ExitStack
from ssl import SSLCertVerificationError

import pymysql
import pytest

from setl.channel.fields.endpoints import MysqlTarget
from setl.channel.reading import parse_channel
from setl.errors import (
    ConfigurationError,
    DataError,
    LoginRefusedError,
    TransientError,
    UntrustedServerError,
)
from setl.systems.finding import Report
from setl.systems.mysql import connection
from setl.systems.mysql.connection import MysqlEndpoint, connect, translate
from setl.systems.mysql.login import PlainConnection
from setl.systems.mysql.preflight import origin
from tests.unit.cli.cluster_in_memory import definition


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1004, "Can't create file './x' (Errcode: 28)"),
        (1020, "Record has changed since last read in table 't'"),
        (1021, "Disk full (/tmp)"),
        (1026, "Error writing file (Errcode: 28)"),
        (1030, "Got error 28 from storage engine"),
        (1114, "The table 't' is full"),
        (1129, "Host is blocked because of many connection errors"),
        (1135, "Can't create a new thread"),
        (1180, "Got error 28 during COMMIT"),
        (1205, "Lock wait timeout exceeded"),
        (1213, "Deadlock found"),
        (1226, "User 'u' has exceeded the 'max_questions' resource"),
        (1412, "Table definition has changed, please retry transaction"),
        (1615, "Prepared statement needs to be re-prepared"),
        (1792, "Cannot execute statement in a READ ONLY transaction"),
        (3032, "The server is currently in offline mode"),
        (9001, "Max connect timeout reached while reaching hostgroup 0 after 10000ms"),
        (9501, "Timed-out waiting to acquire database connection"),
    ],
)
def test_what_passes(number, text):
    error = translate(pymysql.err.OperationalError(number, text))
    assert isinstance(error, TransientError)
    assert error.message == f"MySQL: {text} [{number}]"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (pymysql.err.OperationalError(1045, "Access denied"), LoginRefusedError),
        (pymysql.err.OperationalError(1130, "Host is not allowed to connect"), LoginRefusedError),
        (pymysql.err.OperationalError(1862, "Your password has expired"), LoginRefusedError),
        (pymysql.err.OperationalError(3955, "Account is blocked for 1 day"), LoginRefusedError),
        (pymysql.err.OperationalError(4150, "User is blocked because of"), LoginRefusedError),
        (pymysql.err.OperationalError(3118, "Account is locked"), LoginRefusedError),
        (
            pymysql.err.OperationalError(4151, "Access denied, this account is locked"),
            LoginRefusedError,
        ),
        (pymysql.err.ProgrammingError(1146, "Table doesn't exist"), ConfigurationError),
        (pymysql.err.IntegrityError(1062, "Duplicate entry"), DataError),
        (pymysql.err.DataError(1406, "Data too long"), DataError),
        (pymysql.err.OperationalError(4025, "CONSTRAINT `c` failed"), DataError),
        (pymysql.err.OperationalError(1194, "Table is marked as crashed"), DataError),
    ],
)
def test_what_does_not(error, kind):
    assert isinstance(translate(error), kind)


def test_a_connection_that_is_not_made_is_the_fault_of_no_row(monkeypatch):
    """A row is put aside for a DataError, where dead letters are kept."""
    refusal = pymysql.err.OperationalError(3159, "Connections using insecure transport prohibited")

    def refuse(**_):
        raise refusal

    monkeypatch.setattr(connection, "PlainConnection", refuse)
    with pytest.raises(ConfigurationError, match="3159"):
        connect(MysqlEndpoint("db"))


def test_a_trigger_that_refuses_a_row_is_named():
    error = translate(pymysql.err.OperationalError(1644, "no way"))
    assert isinstance(error, DataError)
    assert error.message == "MySQL: no way [1644]"
    assert "trigger" in error.hint


@pytest.mark.parametrize(
    ("code", "hint"), [(10, "Renew the certificate"), (62, "names its address")]
)
def test_a_certificate_that_is_not_trusted_says_what_to_mend(code, hint):
    cause = SSLCertVerificationError("certificate verify failed")
    cause.verify_code = code
    refused = pymysql.err.OperationalError(2003, "Can't connect to MySQL server on 'db1'")
    vars(refused)["original_exception"] = cause
    error = translate(refused)
    assert type(error) is UntrustedServerError
    assert hint in error.hint


def test_check_takes_no_untrusted_certificate_for_a_refused_account(monkeypatch):
    def opened(_):
        raise UntrustedServerError("MySQL: TLS fails", hint="Renew the certificate")

    monkeypatch.setattr(origin.Server, "opened", opened)
    report = Report("ab, source db1:3306")
    end = parse_channel(definition()).pipelines[0].target
    assert isinstance(end, MysqlTarget)
    with ExitStack() as stack:
        assert origin.connected(end, stack, report) is None
    (found,) = report.findings
    assert (found.code, found.hint) == ("untrusted-server", ("Renew the certificate",))


def test_an_error_of_a_mariadb_says_so(monkeypatch):
    def fails(self, unbuffered):
        raise pymysql.err.OperationalError(1273, "Unknown collation: 'x'")

    monkeypatch.setattr(pymysql.connections.Connection, "_read_query_result", fails)
    for version, product in (("5.5.5-10.11.19-MariaDB", "MariaDB"), ("9.7.4", "MySQL")):
        connection = PlainConnection(defer_connect=True)
        connection.server_version = version
        with pytest.raises(pymysql.err.OperationalError) as caught:
            connection._read_query_result()
        assert translate(caught.value).message == f"{product}: Unknown collation: 'x' [1273]"
